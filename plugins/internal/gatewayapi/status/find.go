package status

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// managedLabel is on services that a controller made for Gateways. Source: Istio, "Resource
// Labels".
const managedLabel = "gateway.istio.io/managed"

// Services are the services that Gateways may be reached by.
type Services interface {
	// Service returns the service of a namespace that has a host; nil: there is none.
	Service(namespace, host string) *pb.Service
	// Elsewhere returns the namespaces that have a service of the host, sorted.
	Elsewhere(host string) []string
	// Endpoints returns what serves a service now.
	Endpoints(namespace, host string) []*pb.Endpoint
	// Pending reports whether the service waits for an address outside.
	Pending(namespace, host string) bool
}

// Find finds out where a Gateway can be reached: by those of its services that have an endpoint for
// one of its ports. Source: Gateway API, GatewayStatus.addresses; Istio's words where it can't.
func Find(at *gatewayapi.Reachable, in Services) (r Reach) {
	r.Prefers = at.Prefers
	var ports []sought
	for _, n := range slices.Compact(slices.Sorted(slices.Values(at.Ports))) {
		ports = append(ports, sought{n, false})
	}
	for _, n := range slices.Compact(slices.Sorted(slices.Values(at.Datagrams))) {
		ports = append(ports, sought{n, true})
	}
	for _, host := range at.Services {
		s := in.Service(at.Namespace, host)
		if s == nil {
			r.missing(at.Namespace, host, in.Elsewhere(host))
			continue
		}
		endpoints := in.Endpoints(at.Namespace, host)
		for _, port := range ports {
			if slices.ContainsFunc(endpoints, func(e *pb.Endpoint) bool { return port.at(s, e) }) {
				r.reached(s, port.number, in.Pending(at.Namespace, host))
			} else {
				r.unreached(s, port, endpoints)
			}
		}
	}
	for _, list := range []*[]string{&r.Internal, &r.InternalAddresses, &r.External, &r.Pending} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	slices.Sort(r.Warnings)
	return r
}

// sought is a port of a service that a listener has, for datagrams or for connections.
type sought struct {
	number    uint32
	datagrams bool
}

// of reports whether a service has the port.
func (w sought) of(s *pb.Service, named func(*pb.Port) bool) bool {
	return slices.ContainsFunc(s.Ports, func(p *pb.Port) bool {
		return p.Number == w.number && (!w.datagrams || p.Protocol == "UDP" && named(p))
	})
}

// at reports whether an endpoint of a service is one of the port: as with istiod, that of one for
// datagrams counts for connections, too.
func (w sought) at(s *pb.Service, e *pb.Endpoint) bool {
	return e.ServicePort == w.number && (!w.datagrams || w.of(s, func(p *pb.Port) bool { return p.Name == e.PortName }))
}

// String is how people are told of it.
func (w sought) String() string {
	if w.datagrams {
		return fmt.Sprintf("%d for UDP", w.number)
	}
	return strconv.Itoa(int(w.number))
}

func (r *Reach) missing(namespace, host string, elsewhere []string) {
	r.Unusable = true
	if len(elsewhere) == 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("hostname %q not found", host))
		return
	}
	quoted := make([]string, len(elsewhere))
	for i, n := range elsewhere {
		quoted[i] = `"` + n + `"`
	}
	r.Warnings = append(r.Warnings, fmt.Sprintf("hostname %q not found in namespace %q, but it was found in namespace(s) %s",
		host, namespace, strings.Join(quoted, ", ")))
}

// reached notes that a service has endpoints for a port. Source: the row's external_addresses are
// by cluster, joined by commas.
func (r *Reach) reached(s *pb.Service, port uint32, pending bool) {
	r.Internal = append(r.Internal, s.Host+":"+strconv.Itoa(int(port)))
	r.InternalAddresses = append(r.InternalAddresses, s.Addresses...)
	for _, list := range s.ExternalAddresses {
		for one := range strings.SplitSeq(list, ",") {
			if one != "" {
				r.External = append(r.External, one)
			}
		}
	}
	if pending && !slices.Contains(r.Pending, s.Host) {
		r.Pending = append(r.Pending, s.Host)
		r.Warnings = append(r.Warnings, fmt.Sprintf("address pending for hostname %q", s.Host))
	}
}

// unreached says why a service doesn't serve a port.
func (r *Reach) unreached(s *pb.Service, port sought, endpoints []*pb.Endpoint) {
	if len(endpoints) == 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("no instances found for hostname %q", s.Host))
		return
	}
	var meant []string
	for _, e := range endpoints {
		if n := strconv.Itoa(int(e.ServicePort)); !port.datagrams && e.Port == port.number && !slices.Contains(meant, n) {
			meant = append(meant, n)
		}
	}
	slices.Sort(meant)
	_, managed := s.Labels[managedLabel]
	switch {
	case len(meant) > 0:
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"port %v not found for hostname %q (hint: the service port should be specified, not the workload port. Did you mean one of these ports: %v?)",
			port, s.Host, meant))
	case managed && port.of(s, func(*pb.Port) bool { return true }):
		return // its endpoints are on their way
	default:
		r.Warnings = append(r.Warnings, fmt.Sprintf("port %v not found for hostname %q", port, s.Host))
	}
	r.Unusable = true
}
