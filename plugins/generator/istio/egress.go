package istio

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// egressListener is an egress listener of a scope's Sidecar: which hosts it imports, and where they are dialled.
type egressListener struct {
	// at is its place in the list.
	at int
	// port is 0 for the listener of all other ports. Others are given; protocol is theirs.
	port     uint32
	name     string
	protocol config.Protocol
	// proxy: requests name their destination themselves, so that the port says nothing of services.
	proxy bool
	// bind is an IP address or a Unix socket; empty: the services' own addresses.
	bind string
	// capture says whether connections are intercepted.
	capture networking.CaptureMode
	hosts   []egressHost
}

// egressHost is an entry of a Sidecar's egress: NAMESPACE/HOST, or ~NAMESPACE/HOST for what isn't imported whatever other entries say.
type egressHost struct {
	namespace, host string
	not             bool
}

// covers reports whether the entry is about a host of a namespace.
func (e egressHost) covers(namespace, host string) bool {
	return (e.namespace == everywhere || e.namespace == namespace) && istio.Covers(e.host, host)
}

// excludes reports whether some entry leaves out a host of a namespace.
func (l *egressListener) excludes(namespace, host string) bool {
	return slices.ContainsFunc(l.hosts, func(e egressHost) bool { return e.not && e.covers(namespace, host) })
}

// httpProxy is the protocol of requests that name their destination in full, as towards a proxy.
const httpProxy = "HTTP_PROXY"

const (
	ownNamespace = "."
	// notNamespace stands before the namespace of what isn't imported; alone it means any.
	notNamespace = "~"
)

// addEgress adds the egress listeners of scopes; those without have none, and import everything.
func (g *graph) addEgress() {
	g.egress = incr.NewFunc(g.Graph, "egress of scope", func(a, b []egressListener) bool { return reflect.DeepEqual(a, b) },
		func(c *incr.Ctx, s Scope) ([]egressListener, error) {
			r, ok := g.tables.Sidecars.Get(c, s.Sidecar)
			if !ok {
				return nil, nil
			}
			var out []egressListener
			for i, l := range r.Value.Spec.Egress {
				out = append(out, readEgress(l, s.Namespace))
				out[i].at = i
			}
			return out, nil
		})
}

func (g *graph) egressOf(c *incr.Ctx, s Scope) []egressListener {
	if s.Sidecar == "" {
		return nil
	}
	return g.egress.Of(c, s)
}

func readEgress(l *networking.IstioEgressListener, namespace string) egressListener {
	return egressListener{
		port:     l.GetPort().GetNumber(),
		name:     l.GetPort().GetName(),
		protocol: config.ParseProtocol(l.GetPort().GetProtocol()),
		proxy:    strings.EqualFold(l.GetPort().GetProtocol(), httpProxy),
		bind:     l.Bind,
		capture:  l.CaptureMode,
		hosts:    egressHosts(l.Hosts, namespace),
	}
}

// egressHosts reads hosts.
func egressHosts(list []string, namespace string) []egressHost {
	var out []egressHost
	for _, h := range list {
		in, name, _ := strings.Cut(h, "/")
		in, not := strings.CutPrefix(in, notNamespace)
		switch in {
		case "":
			in = everywhere
		case ownNamespace:
			in = namespace
		}
		out = append(out, egressHost{in, name, not})
	}
	return out
}

// nameOf is the name of the port at which a service's port is dialled.
func (l *egressListener) nameOf(p *pb.Port) string {
	if l == nil || l.isCatchAll() {
		return p.Name
	}
	return l.name
}

// place is a listener's in its list; 0 without one (nil).
func (l *egressListener) place() int {
	if l == nil {
		return 0
	}
	return l.at
}

// via is the place of the egress listener that rules what goes out to a port: 0 in scopes that have none, -1 where none of them does.
func (g *graph) via(c *incr.Ctx, s Scope, port uint32) int {
	list := g.egressOf(c, s)
	if l := ruling(list, port); l != nil || len(list) == 0 {
		return l.place()
	}
	return -1
}

// isCatchAll reports whether the listener is for all ports that others don't name.
func (l *egressListener) isCatchAll() bool {
	return l.port == 0 && !strings.HasPrefix(l.bind, hosts.Unix)
}

// imports returns what of a service comes in through the listener: all of it, the port that the listener names, or nothing.
func (l *egressListener) imports(s *config.Service) *config.Service {
	if !slices.ContainsFunc(l.hosts, func(e egressHost) bool { return !e.not && e.covers(s.Namespace, s.Host) }) || l.excludes(s.Namespace, s.Host) {
		return nil
	}
	return l.narrow(s)
}

// narrow leaves the port that the listener names; nil where the service lacks it.
func (l *egressListener) narrow(s *config.Service) *config.Service {
	if l.port == 0 || l.proxy {
		return s
	}
	p := s.Port(l.port)
	switch {
	case p == nil:
		return nil
	case len(s.Ports) == 1:
		return s
	}
	return s.With([]*pb.Port{p})
}

// importsRoutes reports whether a virtual service of a namespace counts for what goes out by the listener.
func (l *egressListener) importsRoutes(v *config.VirtualService) bool {
	return slices.ContainsFunc(l.hosts, func(e egressHost) bool {
		return !e.not && (e.namespace == everywhere || e.namespace == v.Namespace) &&
			slices.ContainsFunc(v.Spec.Hosts, func(h string) bool { return istio.Overlaps(e.host, h) && !l.excludes(v.Namespace, h) })
	})
}

// imported is a service as an egress listener of its scope has it; the listener is nil where the scope has none.
type imported struct {
	listener *egressListener
	service  *config.Service
}

// importsOf are the listeners through which a visible service is dialled: none where only virtual services lead to it.
func (g *graph) importsOf(c *incr.Ctx, h host, s *config.Service) []imported {
	list := g.egressOf(c, h.Scope)
	if len(list) == 0 {
		return []imported{{nil, s}}
	}
	var out []imported
	for i := range list {
		if narrow := list[i].imports(s); narrow != nil {
			out = append(out, imported{&list[i], narrow})
		}
	}
	return out
}

// ruling is the listener that says which services a port's routes are for: the one that names it, otherwise the one for all other
// ports. nil where there is none.
func ruling(list []egressListener, port uint32) *egressListener {
	for i := range list {
		if list[i].port == port || list[i].isCatchAll() {
			return &list[i]
		}
	}
	return nil
}

// merge is what a host means in a scope with egress listeners: the first service that one imports, or that a virtual service leads to by it,
// with the ports that come with others.
func (g *graph) merge(c *incr.Ctx, h host, candidates []*config.Service) *config.Service {
	var out *config.Service
	add := func(narrow *config.Service) {
		switch {
		case narrow == nil:
		case out == nil:
			out = narrow
		case out.Namespace == narrow.Namespace:
			out = out.Plus(narrow.Ports)
		}
	}
	list := g.egressOf(c, h.Scope)
	for i := range list {
		for _, s := range candidates {
			if narrow := list[i].imports(s); narrow != nil {
				add(narrow)
				break
			}
		}
		for _, ports := range g.routedPortsOf(c, h, i) {
			add(list[i].leadingTo(destinationOf(h.Scope.Namespace, candidates), ports))
		}
	}
	return out
}

// destinationOf is the service that virtual services mean of those that declare a host: that of the own namespace, or else of the first by
// name.
func destinationOf(own string, candidates []*config.Service) *config.Service {
	return slices.MinFunc(candidates, func(a, b *config.Service) int {
		return cmp.Or(-compareBool(a.Namespace == own, b.Namespace == own), strings.Compare(a.Namespace, b.Namespace))
	})
}

// leadingTo is what a virtual service that leads to ports (none: to any) brings along of a service: those ports, or the one that the
// listener names. nil where the service has none of them.
func (l *egressListener) leadingTo(s *config.Service, ports []uint32) *config.Service {
	if l.port != 0 && !l.proxy || len(ports) == 0 {
		return l.narrow(s)
	}
	var found []*pb.Port
	for _, p := range s.Ports {
		if slices.Contains(ports, p.Number) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return nil
	case len(s.Ports):
		return s
	}
	return s.With(found)
}
