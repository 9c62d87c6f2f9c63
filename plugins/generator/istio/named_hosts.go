package istio

import (
	"slices"
	"unique"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// namesKey is what the names of a port's hosts depend on.
type namesKey struct {
	Scope   Scope
	Port    uint32
	Domain  string
	Dialing config.Dialing
}

func namesOf(view routeView, port uint32) namesKey {
	return namesKey{view.Scope, port, view.Domain, view.Dialing}
}

// someHostsKey are hostsAtOnce of a port's named hosts, the first of which is given: where one changes, few have to be read to join them all again.
type someHostsKey struct {
	View  routeView
	Port  uint32
	First int
}

const hostsAtOnce = 32

// namedHost is a service and the domains (joined) that are its own. Clients of most namespaces call it by the same names: these are kept once.
type namedHost struct {
	service *config.Service
	domains unique.Handle[string]
}

func (g *graph) addNamedHosts() {
	equal := func(a, b namedHost) bool { return a.domains == b.domains && sameService(a.service, b.service) }
	g.namedHosts = incr.NewFunc(g.Graph, "names of hosts on port", func(a, b []namedHost) bool { return slices.EqualFunc(a, b, equal) },
		func(c *incr.Ctx, k namesKey) ([]namedHost, error) { return g.nameHosts(c, k), nil })
}

// nameHosts gives the services at a port their domains. A domain belongs to the service that has it in full, otherwise to the oldest that
// claims it: Envoy refuses to have it twice.
func (g *graph) nameHosts(c *incr.Ctx, k namesKey) []namedHost {
	members := slices.Clone(g.onPort.Of(c, scopePort{k.Scope, k.Port}))
	slices.SortStableFunc(members, func(a, b incr.Item[hostPort, *config.Service]) int { return config.Older(a.Value, b.Value) })
	taken, full := map[string]bool{"*": true}, make(map[string]bool, len(members))
	for _, m := range members {
		full[m.Key.Host] = true
	}
	out := make([]namedHost, 0, len(members))
	for _, m := range members {
		domains := route.Domains(m.Key.Host, k.Domain, m.Value.AddressesFor(k.Dialing)[0])
		domains = claim(taken, slices.DeleteFunc(domains, func(d string) bool { return d != m.Key.Host && full[d] }))
		if len(domains) > 0 {
			out = append(out, namedHost{m.Value, unique.Make(joinDomains(domains))})
		}
	}
	return out
}
