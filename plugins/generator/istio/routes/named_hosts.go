package routes

import (
	"slices"
	"strings"
	"unique"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// namesKey is what the names of a port's hosts depend on.
type namesKey struct {
	Scope   scope.Scope
	Port    uint32
	Domain  string
	Dialing config.Dialing
}

func namesOf(view View, port uint32) namesKey {
	return namesKey{view.Scope, port, view.Domain, view.Dialing}
}

// someHostsKey are hostsAtOnce of a port's named hosts, the first of which is given: where one
// changes, few have to be read to join them all again.
type someHostsKey struct {
	View  View
	Port  uint32
	First int
}

const hostsAtOnce = 32

// namedHost is a service and the domains (joined) that are its own. Clients of most namespaces call
// it by the same names: these are kept once.
type namedHost struct {
	service *config.Service
	domains unique.Handle[string]
}

func (h namedHost) equal(b namedHost) bool {
	return h.domains == b.domains && scope.SameService(h.service, b.service)
}

// has reports whether a domain is the host's.
func (h namedHost) has(domain string) bool {
	return strings.Contains(" "+h.domains.Value()+" ", " "+domain+" ")
}

// commonHost is a named host as clients of other namespaces call it. Those of its own, and of those
// that stand for it, also call it by labels.
type commonHost struct {
	namedHost
	labels []localName
}

// localName is a name without a namespace, for clients of one.
type localName struct{ label, namespace string }

// names are those by which hosts are called, at a port.
type names struct {
	from   *From
	common *incr.Func[namesKey, []commonHost]
	named  *incr.Func[namesKey, []namedHost]
	some   *incr.Func[someHostsKey, []namedHost]
}

func newNames(graph *incr.Graph, from *From) *names {
	x := &names{from: from}
	same := func(a, b []namedHost) bool { return slices.EqualFunc(a, b, namedHost.equal) }
	x.common = incr.NewFunc(graph, "common names of hosts on port", func(a, b []commonHost) bool {
		return slices.EqualFunc(a, b, func(a, b commonHost) bool {
			return slices.Equal(a.labels, b.labels) && a.equal(b.namedHost)
		})
	}, func(c *incr.Ctx, k namesKey) ([]commonHost, error) { return x.atPort(c, k).common(k), nil })
	x.named = incr.NewFunc(graph, "names of hosts on port", same,
		func(c *incr.Ctx, k namesKey) ([]namedHost, error) { return x.name(c, k), nil })
	x.some = incr.NewFunc(graph, "some names of hosts", same, func(c *incr.Ctx, k someHostsKey) ([]namedHost, error) {
		named := x.named.Of(c, namesOf(k.View, k.Port))
		return named[min(k.First, len(named)):min(k.First+hostsAtOnce, len(named))], nil
	})
	return x
}

// name gives the services at a port the domains by which clients of a DNS domain may call them.
func (x *names) name(c *incr.Ctx, k namesKey) []namedHost {
	namespace, cluster, ok := route.InCluster(k.Domain)
	if !ok {
		return x.atPort(c, k).named(k)
	}
	k.Domain = cluster
	return calledIn(namespace, x.common.Of(c, k))
}

// calledIn are hosts as clients of a namespace call them.
func calledIn(namespace string, common []commonHost) []namedHost {
	out := make([]namedHost, len(common))
	for i, h := range common {
		out[i] = h.namedHost
		var own []string
		for _, l := range h.labels {
			if l.namespace == namespace {
				own = append(own, l.label)
			}
		}
		if len(own) > 0 {
			first, rest, _ := strings.Cut(h.domains.Value(), " ")
			out[i].domains = unique.Make(strings.TrimSuffix(first+" "+strings.Join(own, " ")+" "+rest, " "))
		}
	}
	return out
}

// atPort are the services at a port, the oldest first, and their full names.
func (x *names) atPort(c *incr.Ctx, k namesKey) portMembers {
	members := slices.Clone(x.from.Scopes.OnPort.Of(c, scope.ScopePort{Scope: k.Scope, Port: k.Port}))
	slices.SortStableFunc(members, func(a, b incr.Item[scope.HostPort, *config.Service]) int { return config.Older(a.Value, b.Value) })
	m := portMembers{make([]*config.Service, len(members)), make(map[string]bool, len(members))}
	for i, s := range members {
		m.services[i], m.full[strings.ToLower(s.Key.Host)] = s.Value, true
	}
	return m
}

// portMembers are services in the order in which their names count, and their full names in lower
// case.
type portMembers struct {
	services []*config.Service
	full     map[string]bool
}

// common names them for the clients of all namespaces of a cluster, whose domain is given.
func (m portMembers) common(k namesKey) []commonHost {
	named := m.named(k)
	out := make([]commonHost, len(named))
	for i, h := range named {
		out[i].namedHost = h
		for _, host := range append([]string{h.service.Host}, h.service.Aliases...) {
			label, namespace, ok := route.Label(host, k.Domain)
			if !ok || label == "*" || m.full[strings.ToLower(label)] || !h.has(host) {
				continue
			}
			out[i].labels = append(out[i].labels, localName{label, namespace})
			if host == h.service.Host && eachNamed(h.service) {
				out[i].labels = append(out[i].labels, localName{"*." + label, namespace})
			}
		}
	}
	return out
}

// named gives them their domains, and puts them in the order of their virtual hosts' names, whoever
// is older, as istiod does. A domain belongs to the service that has it in full, otherwise to the
// oldest that claims it: Envoy refuses to have it twice, in any case.
func (m portMembers) named(k namesKey) []namedHost {
	taken := make(claims, 4*len(m.services))
	taken.take("*")
	out := make([]namedHost, 0, len(m.services))
	for _, s := range m.services {
		domains := domainsOf(s, k.Domain, k.Dialing)
		domains = taken.claim(slices.DeleteFunc(domains, func(d string) bool { return strings.TrimSuffix(d, ".") != s.Host && m.full[strings.ToLower(d)] }))
		if len(domains) > 0 {
			out = append(out, namedHost{s, unique.Make(joinDomains(domains))})
		}
	}
	names := make(map[*config.Service]string, len(out))
	for _, h := range out {
		names[h.service] = route.HostName(h.service.Host, k.Port)
	}
	slices.SortFunc(out, func(a, b namedHost) int { return strings.Compare(names[a.service], names[b.service]) })
	return out
}

// eachNamed reports whether each endpoint of a service has a name of its own below the service's:
// where a cluster's service has no address.
func eachNamed(s *config.Service) bool {
	return s.Resolution == pb.ServiceResolutionNone && s.Registry == config.Kubernetes
}

// domainsOf are the names by which requests mean a service: its own, those of each of its endpoints
// where a cluster's service has no address, and those of the services that stand for it.
func domainsOf(s *config.Service, client string, d config.Dialing) []string {
	addresses := s.AddressesFor(d)
	if d.Families != config.Dual || s.Registry != config.Kubernetes {
		addresses = addresses[:1]
	}
	if s.Registry == config.Kubernetes && !d.Families.Reach(addresses[0]) {
		addresses = nil // it has none of the client's family
	}
	out := route.Domains(s.Host, client, addresses...)
	if eachNamed(s) {
		for _, name := range route.Domains(s.Host, client, "") {
			out = append(out, "*."+name)
		}
	}
	for _, alias := range s.Aliases {
		out = append(out, route.Domains(alias, client, "")...)
	}
	return out
}
