package config

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// MeshGateway is the name that stands for all sidecars.
const MeshGateway = "mesh"

// VirtualService routes requests for hosts. Hosts, gateways and destinations in Spec are full
// names.
type VirtualService struct {
	Meta
	Spec *networking.VirtualService
	// Route: it was derived of a route of the Gateway API: what has no backend fails as that API
	// says.
	Route bool
	// TLSRoute: of a TLSRoute, which also leads what a listener has opened.
	TLSRoute bool
	// UDPRoute: of a UDPRoute. Its routes for connections lead datagrams, and nothing else.
	UDPRoute bool
	// Delegations say of each route of Spec.Http which virtual service it was delegated to; nil
	// where none was.
	Delegations []*Delegation
	// Separated: prefixes of paths end at a slash, as in the Gateway API and in Ingress.
	Separated bool
}

// Delegation is a route that is left to another virtual service, by its key, and the requests that
// it is for.
type Delegation struct {
	To    string
	Match []*networking.HTTPMatchRequest
}

// ParseVirtualService reads a row and resolves the names in it; domain is the mesh's DNS domain.
func ParseVirtualService(row *pb.Row, domain string) (*VirtualService, error) {
	v := &VirtualService{
		Meta: parseMeta(row), Spec: &networking.VirtualService{}, Route: isRoute(row), TLSRoute: isTLSRoute(row), UDPRoute: isUDPRoute(row),
		Separated: isRoute(row) || isIngress(row),
	}
	if err := unmarshal(row, v.Spec); err != nil {
		return nil, err
	}
	resolver{v.Namespace, domain}.virtualService(v.Spec)
	return v, nil
}

// Serves reports whether the resource counts at a gateway (NAMESPACE/NAME or MeshGateway).
func (v *VirtualService) Serves(gateway string) bool {
	for _, g := range v.Spec.Gateways {
		if g == gateway {
			return true
		}
	}
	return false
}

// Reach is how the resource reaches proxies of a namespace.
func (v *VirtualService) Reach(namespace string, defaults []string) istio.Reach {
	return istio.ReachOf(v.Spec.ExportTo, defaults, v.Namespace, namespace)
}

// MayDelegate reports whether a virtual service of a namespace may leave routes to this one.
func (v *VirtualService) MayDelegate(namespace string, defaults []string) bool {
	return istio.MayDelegate(v.Spec.ExportTo, defaults, v.Namespace, namespace)
}

type resolver struct{ namespace, domain string }

func (r resolver) virtualService(s *networking.VirtualService) {
	for i, h := range s.Hosts {
		s.Hosts[i] = strings.ToLower(istio.Resolve(h, r.namespace, r.domain)) // Envoy doesn't heed their case, and refuses to have them twice
	}
	if len(s.Gateways) == 0 {
		s.Gateways = []string{MeshGateway}
	}
	r.gateways(s.Gateways)
	for _, h := range s.Http {
		r.httpRoute(h)
	}
	for _, t := range s.Tcp {
		for _, m := range t.Match {
			r.gateways(m.Gateways)
		}
		r.destinations(t.Route)
	}
	for _, t := range s.Tls {
		for _, m := range t.Match {
			r.gateways(m.Gateways)
		}
		r.destinations(t.Route)
	}
}

func (r resolver) httpRoute(h *networking.HTTPRoute) {
	for _, m := range h.Match {
		r.gateways(m.Gateways)
	}
	for _, d := range h.Route {
		r.destination(d.Destination)
	}
	r.destination(h.Mirror)
	for _, m := range h.Mirrors {
		r.destination(m.Destination)
	}
}

func (r resolver) destinations(list []*networking.RouteDestination) {
	for _, d := range list {
		r.destination(d.Destination)
	}
}

func (r resolver) destination(d *networking.Destination) {
	if d != nil {
		d.Host = istio.Resolve(d.Host, r.namespace, r.domain)
	}
}

// gateways makes names NAMESPACE/NAME, where `.` is the own namespace; the old form
// NAME.NAMESPACE[.svc…] is understood too.
func (r resolver) gateways(names []string) {
	for i, g := range names {
		switch {
		case g == MeshGateway:
		case strings.HasPrefix(g, "./"):
			names[i] = r.namespace + g[1:]
		case strings.Contains(g, "/"):
		case strings.Contains(g, "."):
			parts := strings.SplitN(g, ".", 3)
			names[i] = parts[1] + "/" + parts[0]
		default:
			names[i] = r.namespace + "/" + g
		}
	}
}
