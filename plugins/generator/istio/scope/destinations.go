package scope

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

func destinationsOf(s *networking.VirtualService) []string {
	var out []string
	eachDestination(s, "", func(d *networking.Destination) { out = append(out, d.Host) })
	slices.Sort(out)
	return slices.Compact(out)
}

// eachDestination visits what a virtual service leads to, but for requests that only other
// namespaces than the client's may send. Without a client's namespace it visits all.
func eachDestination(s *networking.VirtualService, client string, visit func(*networking.Destination)) {
	add := func(d *networking.Destination) {
		if d != nil {
			visit(d)
		}
	}
	for _, h := range s.Http {
		if client != "" && isForOthers(h.Match, client) {
			continue
		}
		for _, d := range h.Route {
			add(d.Destination)
		}
		add(h.Mirror)
		for _, m := range h.Mirrors {
			add(m.Destination)
		}
	}
	for _, t := range s.Tcp {
		for _, d := range t.Route {
			add(d.Destination)
		}
	}
	for _, t := range s.Tls {
		for _, d := range t.Route {
			add(d.Destination)
		}
	}
}

// isForOthers reports whether matches ask for namespaces, and for none that is the client's.
func isForOthers(matches []*networking.HTTPMatchRequest, client string) bool {
	asked := func(m *networking.HTTPMatchRequest) bool { return m.SourceNamespace != "" }
	return slices.ContainsFunc(matches, asked) &&
		!slices.ContainsFunc(matches, func(m *networking.HTTPMatchRequest) bool { return m.SourceNamespace == client })
}

// routedPortsOf are, for each virtual service that leads to a host for what goes out by an egress
// listener, the ports that it names; none for one that names no port in some place.
func (x *VirtualServices) routedPortsOf(c *incr.Ctx, h Host, via int) [][]uint32 {
	var out [][]uint32
	for _, i := range x.byDestination.Of(c, h.Host) {
		v := i.Value.Value
		if !x.imports(c, h.Scope, v, via) {
			continue
		}
		var ports []uint32
		eachDestination(v.Spec, h.Scope.Namespace, func(d *networking.Destination) {
			if d.Host == h.Host {
				ports = append(ports, d.GetPort().GetNumber())
			}
		})
		switch {
		case slices.Contains(ports, 0):
			out = append(out, nil)
		case len(ports) > 0:
			out = append(out, ports)
		}
	}
	return out
}

// routedTo reports whether a virtual service that a scope imports leads to a host.
func (x *VirtualServices) routedTo(c *incr.Ctx, s Scope, h string) bool {
	for i := range x.sidecars.Egress(c, s) {
		if len(x.routedPortsOf(c, Host{s, h}, i)) > 0 {
			return true
		}
	}
	return false
}
