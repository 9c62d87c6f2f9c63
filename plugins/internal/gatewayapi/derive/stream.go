package derive

import (
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// tcpRules makes the rules of a TCPRoute.
func (t *translation) tcpRules() *translated {
	out := &translated{}
	for _, rule := range t.route.TCP.Rules {
		to, problem, done := t.forwarded(rule.BackendRefs)
		if !done {
			return &translated{problem: problem}
		}
		if problem != nil {
			out.problem = problem
		}
		out.tcp = append(out.tcp, &networking.TCPRoute{Route: to})
	}
	return out
}

// udpRules makes the rules of a UDPRoute: those of a VirtualService for connections. That they are
// for datagrams is said by the route that it is made of (ParentsAnnotation).
func (t *translation) udpRules() *translated {
	out := &translated{}
	for _, rule := range t.route.UDP.Rules {
		to, problem, done := t.forwarded(rule.BackendRefs)
		if !done {
			return &translated{problem: problem}
		}
		if problem != nil {
			out.problem = problem
		}
		out.tcp = append(out.tcp, &networking.TCPRoute{Route: to})
	}
	return out
}

// tlsRules makes the rules of a TLSRoute.
func (t *translation) tlsRules() *translated {
	out := &translated{}
	for _, rule := range t.route.TLS.Rules {
		to, problem, done := t.forwarded(rule.BackendRefs)
		if !done {
			return &translated{problem: problem}
		}
		if problem != nil {
			out.problem = problem
		}
		made := &networking.TLSRoute{Route: to}
		if _, total := weighted(rule.BackendRefs, func(r gateway.BackendRef) backend[struct{}] { return backend[struct{}]{BackendRef: r} }); total != 0 {
			made.Match = []*networking.TLSMatchAttributes{{SniHosts: t.route.hostnames()}}
		}
		out.tls = append(out.tls, made)
	}
	return out
}

// inMesh has rules match a port of a service, and TLS without hostnames the service's own.
func (r rules) inMesh(port *gateway.PortNumber, hosts []string) (out rules) {
	for _, one := range r.tcp {
		one = proto.CloneOf(one)
		if port != nil {
			if len(one.Match) == 0 {
				one.Match = []*networking.L4MatchAttributes{{}}
			}
			for _, m := range one.Match {
				m.Port = uint32(*port)
			}
		}
		out.tcp = append(out.tcp, one)
	}
	for _, one := range r.tls {
		one = proto.CloneOf(one)
		if len(one.Match) == 1 && slices.Equal(one.Match[0].SniHosts, []string{"*"}) {
			one.Match[0].SniHosts = hosts
		}
		for _, m := range one.Match {
			if port != nil {
				m.Port = uint32(*port)
			}
		}
		out.tls = append(out.tls, one)
	}
	return out
}

// ofHost leaves in rules of TLS those names that a host of the mesh may have.
func ofHost(list []*networking.TLSRoute, host string) (out []*networking.TLSRoute) {
	for _, one := range list {
		if len(one.Match) == 1 && len(one.Match[0].SniHosts) > 1 {
			one = proto.CloneOf(one)
			one.Match[0].SniHosts = slices.DeleteFunc(one.Match[0].SniHosts, func(h string) bool { return !istio.Overlaps(host, h) })
		}
		out = append(out, one)
	}
	return out
}

// narrowed are the names that both some host of a list and another host mean.
func narrowed(list []string, host string) []string {
	out := []string{}
	for _, h := range list {
		if istio.Overlaps(h, host) {
			if n := istio.Narrower(host, h); !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// narrowedRules are rules of TLS for the names that a listener has.
func narrowedRules(list []*networking.TLSRoute, host string) (out []*networking.TLSRoute) {
	for _, one := range list {
		one = proto.CloneOf(one)
		has := len(one.Match) == 0
		for _, m := range one.Match {
			m.SniHosts = narrowed(m.SniHosts, host)
			has = has || len(m.SniHosts) > 0
		}
		if has {
			out = append(out, one)
		}
	}
	return out
}
