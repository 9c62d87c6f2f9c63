package scope

import (
	"cmp"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Listener is an egress listener of a scope's Sidecar: which hosts it imports, and where they are
// dialled.
type Listener struct {
	// at is its place in the list.
	at int
	// Port is 0 for the listener of all other ports. Others are given; Protocol is theirs.
	Port     uint32
	Name     string
	Protocol config.Protocol
	// Proxy: requests name their destination themselves, so that the port says nothing of services.
	Proxy bool
	// Bind is an IP address or a Unix socket; empty: the services' own addresses.
	Bind string
	// Capture reports whether connections are intercepted.
	Capture networking.CaptureMode
	hosts   []egressHost
}

// egressHost is an entry of a Sidecar's egress: NAMESPACE/HOST, or ~NAMESPACE/HOST for what isn't
// imported whatever other entries say.
type egressHost struct {
	namespace, host string
	not             bool
}

// covers reports whether the entry is about a host of a namespace.
func (e egressHost) covers(namespace, host string) bool {
	return (e.namespace == everywhere || e.namespace == namespace) && istio.Covers(e.host, host)
}

// excludes reports whether some entry leaves out a host of a namespace.
func (l *Listener) excludes(namespace, host string) bool {
	return slices.ContainsFunc(l.hosts, func(e egressHost) bool { return e.not && e.covers(namespace, host) })
}

// HTTPProxy is the protocol of requests that name their destination in full, as towards a proxy.
const HTTPProxy = "HTTP_PROXY"

const (
	ownNamespace = "."
	// notNamespace stands before the namespace of what isn't imported; alone it means any.
	notNamespace = "~"
)

func readEgress(l *networking.IstioEgressListener, namespace string) Listener {
	return Listener{
		Port:     l.GetPort().GetNumber(),
		Name:     l.GetPort().GetName(),
		Protocol: config.ParseProtocol(l.GetPort().GetProtocol()),
		Proxy:    strings.EqualFold(l.GetPort().GetProtocol(), HTTPProxy),
		Bind:     l.Bind,
		Capture:  l.CaptureMode,
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

// NameOf is the name of the port at which a service's port is dialled.
func (l *Listener) NameOf(p *pb.Port) string {
	if l == nil || l.IsCatchAll() {
		return p.Name
	}
	return l.Name
}

// Place is a listener's in its list; 0 without one (nil).
func (l *Listener) Place() int {
	if l == nil {
		return 0
	}
	return l.at
}

// IsCatchAll reports whether the listener is for all ports that others don't name.
func (l *Listener) IsCatchAll() bool {
	return l.Port == 0 && !strings.HasPrefix(l.Bind, hosts.Unix)
}

// Imports returns what of a service comes in through the listener: all of it, the port that the
// listener names, or nothing.
func (l *Listener) Imports(s *config.Service) *config.Service {
	if !slices.ContainsFunc(l.hosts, func(e egressHost) bool { return !e.not && e.covers(s.Namespace, s.Host) }) || l.excludes(s.Namespace, s.Host) {
		return nil
	}
	return l.narrow(s)
}

// narrow leaves the port that the listener names; nil where the service lacks it.
func (l *Listener) narrow(s *config.Service) *config.Service {
	if l.Port == 0 || l.Proxy {
		return s
	}
	p := s.Port(l.Port)
	switch {
	case p == nil:
		return nil
	case len(s.Ports) == 1:
		return s
	}
	return s.With([]*pb.Port{p})
}

// importsRoutes reports whether a virtual service of a namespace counts for what goes out by the
// listener.
func (l *Listener) importsRoutes(v *config.VirtualService) bool {
	return slices.ContainsFunc(l.hosts, func(e egressHost) bool {
		return !e.not && (e.namespace == everywhere || e.namespace == v.Namespace) &&
			slices.ContainsFunc(v.Spec.Hosts, func(h string) bool { return istio.Overlaps(e.host, h) && !l.excludes(v.Namespace, h) })
	})
}

// Imported is a service as an egress listener of its scope has it; the listener is nil where the
// scope has none.
type Imported struct {
	Listener *Listener
	Service  *config.Service
}

// Ruling is the listener that says which services a port's routes are for: the one that names it,
// otherwise the one for all other ports. nil where there is none.
func Ruling(list []Listener, port uint32) *Listener {
	for i := range list {
		if list[i].Port == port || list[i].IsCatchAll() {
			return &list[i]
		}
	}
	return nil
}

// destinationOf is the service that virtual services mean of those that declare a host: that of the
// own namespace, or else of the first by name.
func destinationOf(own string, candidates []*config.Service) *config.Service {
	return slices.MinFunc(candidates, func(a, b *config.Service) int {
		return cmp.Or(-CompareBool(a.Namespace == own, b.Namespace == own), strings.Compare(a.Namespace, b.Namespace))
	})
}

// leadingTo is what a virtual service that leads to ports (none: to any) brings along of a service:
// those ports, or the one that the listener names. nil where the service has none of them.
func (l *Listener) leadingTo(s *config.Service, ports []uint32) *config.Service {
	if l.Port != 0 && !l.Proxy || len(ports) == 0 {
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
