package istio

import (
	"reflect"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// egressListener is an egress listener of a scope's Sidecar: which hosts it imports, and where they are dialled.
type egressListener struct {
	// port is 0 for the listener of all other ports. Others are given; protocol is theirs.
	port     uint32
	protocol config.Protocol
	// proxy: requests name their destination themselves, so that the port says nothing of services.
	proxy bool
	// bind is an IP address or a Unix socket; empty: the services' own addresses.
	bind string
	// capture says whether connections are intercepted.
	capture networking.CaptureMode
	hosts   []egressHost
}

// egressHost is an entry of a Sidecar's egress: NAMESPACE/HOST.
type egressHost struct{ namespace, host string }

const (
	ownNamespace = "."
	noNamespace  = "~"
)

// addEgress adds the egress listeners of scopes; those without have none, and import everything.
func (g *graph) addEgress() {
	g.egress = incr.NewFunc(g.Graph, "egress of scope", func(a, b []egressListener) bool { return reflect.DeepEqual(a, b) },
		func(c *incr.Ctx, s Scope) ([]egressListener, error) {
			r, ok := g.sidecars.Get(c, s.Sidecar)
			if !ok {
				return nil, nil
			}
			var out []egressListener
			for _, l := range r.value.Spec.Egress {
				out = append(out, readEgress(l, s.Namespace))
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
		protocol: config.ParseProtocol(l.GetPort().GetProtocol()),
		proxy:    strings.EqualFold(l.GetPort().GetProtocol(), "HTTP_PROXY"),
		bind:     l.Bind,
		capture:  l.CaptureMode,
		hosts:    egressHosts(l.Hosts, namespace),
	}
}

// egressHosts reads hosts; one of namespace `~` means that nothing is imported.
func egressHosts(list []string, namespace string) []egressHost {
	var out []egressHost
	for _, h := range list {
		in, name, _ := strings.Cut(h, "/")
		switch in {
		case noNamespace:
			return nil
		case ownNamespace:
			in = namespace
		}
		out = append(out, egressHost{in, name})
	}
	return out
}

// isCatchAll reports whether the listener is for all ports that others don't name.
func (l *egressListener) isCatchAll() bool {
	return l.port == 0 && !strings.HasPrefix(l.bind, unixPrefix)
}

const unixPrefix = "unix:"

// imports returns what of a service comes in through the listener: all of it, the port that the listener names, or nothing.
func (l *egressListener) imports(s *config.Service) *config.Service {
	if !slices.ContainsFunc(l.hosts, func(e egressHost) bool {
		return (e.namespace == everywhere || e.namespace == s.Namespace) && config.Covers(e.host, s.Host)
	}) {
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
		return (e.namespace == everywhere || e.namespace == v.Namespace) &&
			slices.ContainsFunc(v.Spec.Hosts, func(h string) bool { return config.Overlaps(e.host, h) })
	})
}

// imported is a service as an egress listener of its scope has it; the listener is nil where the scope has none.
type imported struct {
	listener *egressListener
	service  *config.Service
}

// importsOf are the listeners through which a visible service is dialled.
func (g *graph) importsOf(c *incr.Ctx, h host, s *config.Service) []imported {
	list := g.egressOf(c, h.Scope)
	if len(list) == 0 {
		return []imported{{nil, s}}
	}
	var out []imported
	routed := g.routedTo(c, h.Scope, s.Host)
	for i := range list {
		l := &list[i]
		narrow := l.imports(s)
		if narrow == nil && routed {
			narrow = l.narrow(s)
		}
		if narrow != nil {
			out = append(out, imported{l, narrow})
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

// merge is what a host means in a scope with egress listeners: the first service that one imports, with the ports that other listeners
// import of it. Services that only virtual services lead to come last.
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
	}
	if out == nil && len(candidates) > 0 {
		for i := range list {
			add(list[i].narrow(candidates[0]))
		}
	}
	return out
}
