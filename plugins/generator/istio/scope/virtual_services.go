package scope

import (
	"cmp"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/contest"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// VirtualServices are those that count for proxies, by what they are looked for.
type VirtualServices struct {
	rows     *incr.Input[string, tables.Row[*config.VirtualService]]
	services *incr.Input[string, tables.Row[*config.Service]]
	mesh     *mesh.Settings
	sidecars *Sidecars

	// byHost are those that name a host, byDestination those that lead to one.
	byHost, wild, connectionsUnder, atGateway, byDestination *incr.Index[string, string, tables.Row[*config.VirtualService]]
	// byDatagrams are those that lead datagrams to a host.
	byDatagrams *incr.Index[string, string, tables.Row[*config.VirtualService]]
	// found are the virtual services of a host; whole is one with its delegates.
	found    *incr.Func[Sought, []*config.VirtualService]
	whole    *incr.Func[string, *config.VirtualService]
	contests *contest.Contests
}

// Sought is a host whose virtual services are asked for, for what goes out by one egress listener
// (see Sidecars.Via).
type Sought struct {
	Host
	Via int
}

func newVirtualServices(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings, sidecars *Sidecars) *VirtualServices {
	x := &VirtualServices{
		rows: t.VirtualServices, services: t.Services, mesh: settings, sidecars: sidecars,
		contests: contest.New(graph, "order in the mesh", t),
	}
	x.byHost = incr.NewIndex(x.rows, "virtual services by host", func(_ string, r tables.Row[*config.VirtualService]) []string {
		if !r.Value.Serves(config.MeshGateway) {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(r.Value.Spec.Hosts), istio.IsWildcard)
	})
	x.wild = incr.NewIndex(x.rows, "wildcard virtual services", func(_ string, r tables.Row[*config.VirtualService]) []string {
		if r.Value.Serves(config.MeshGateway) && slices.ContainsFunc(r.Value.Spec.Hosts, istio.IsWildcard) {
			return []string{only}
		}
		return nil
	})
	x.connectionsUnder = incr.NewIndex(x.rows, "routes for connections by wildcard", func(_ string, r tables.Row[*config.VirtualService]) []string {
		if !r.Value.Serves(config.MeshGateway) || !routesConnections(r.Value) {
			return nil
		}
		return wildcardsOver(r.Value.Spec.Hosts)
	})
	x.atGateway = incr.NewIndex(x.rows, "virtual services by gateway", func(_ string, r tables.Row[*config.VirtualService]) []string {
		return r.Value.Spec.Gateways
	})
	x.found = incr.NewFunc(graph, "virtual services for host", slices.Equal, x.find)
	x.byDestination = incr.NewIndex(x.rows, "virtual services by destination", func(_ string, r tables.Row[*config.VirtualService]) []string {
		if !r.Value.Serves(config.MeshGateway) {
			return nil
		}
		return destinationsOf(r.Value.Spec)
	})
	x.byDatagrams = incr.NewIndex(x.rows, "routes of datagrams by destination", func(_ string, r tables.Row[*config.VirtualService]) []string {
		if !r.Value.UDPRoute {
			return nil
		}
		return destinationsOf(r.Value.Spec)
	})
	x.whole = incr.NewFunc(graph, "virtual service with delegates", sameVirtualService,
		func(c *incr.Ctx, key string) (*config.VirtualService, error) {
			r, ok := x.rows.Get(c, key)
			if !ok {
				return nil, incr.Absent
			}
			if !route.Delegates(r.Value) {
				return r.Value, nil
			}
			return route.WithDelegates(r.Value, func(key string) *config.VirtualService { return x.delegate(c, r.Value, key) }), nil
		})
	return x
}

// For are the virtual services that may route a sidecar's requests for a host, in the order in
// which they count.
func (x *VirtualServices) For(c *incr.Ctx, h Sought) []*config.VirtualService {
	return x.found.Of(c, h)
}

// Whole is the virtual service of a key, with the routes of those that it delegates to; false where
// there is none.
func (x *VirtualServices) Whole(c *incr.Ctx, key string) (*config.VirtualService, bool) {
	return x.whole.Get(c, key)
}

// AtGateway are those of a Gateway that count in a namespace, in the order in which they do.
func (x *VirtualServices) AtGateway(c *incr.Ctx, namespace, gateway string) []*config.VirtualService {
	var out []*config.VirtualService
	for _, i := range x.atGateway.Of(c, gateway) {
		out = append(out, i.Value.Value)
	}
	return x.inOrder(c, namespace, out)
}

// LeadsDatagrams reports whether a route that a namespace sees leads datagrams to a port of a host.
func (x *VirtualServices) LeadsDatagrams(c *incr.Ctx, namespace, host string, port uint32) bool {
	defaults := x.mesh.Exports(c).VirtualServices
	return slices.ContainsFunc(x.byDatagrams.Of(c, host), func(i incr.Item[string, tables.Row[*config.VirtualService]]) bool {
		v, leads := i.Value.Value, false
		eachDestination(v.Spec, "", func(d *networking.Destination) {
			leads = leads || d.Host == host && d.GetPort().GetNumber() == port
		})
		return leads && v.Reach(namespace, defaults) != istio.Nobody
	})
}

// Connections are those that have routes for connections to a host, in the order in which they
// count.
func (x *VirtualServices) Connections(c *incr.Ctx, h Sought) []*config.VirtualService {
	var out []*config.VirtualService
	add := func(list []incr.Item[string, tables.Row[*config.VirtualService]]) {
		for _, i := range list {
			v := i.Value.Value
			overlaps := slices.ContainsFunc(v.Spec.Hosts, func(w string) bool { return istio.Overlaps(w, h.Host.Host) })
			if overlaps && routesConnections(v) && !slices.Contains(out, v) && x.imports(c, h.Scope, v, h.Via) {
				out = append(out, v)
			}
		}
	}
	add(x.byHost.Of(c, h.Host.Host))
	add(x.wild.Of(c, only))
	if istio.IsWildcard(h.Host.Host) {
		add(x.connectionsUnder.Of(c, h.Host.Host))
	}
	return x.inOrder(c, h.Scope.Namespace, out)
}

// routesConnections reports whether a virtual service has routes for more than requests.
func routesConnections(v *config.VirtualService) bool { return len(v.Spec.Tcp)+len(v.Spec.Tls) > 0 }

// wildcardsOver are the wildcards that cover a host: *.b.c and *.c for a.b.c.
func wildcardsOver(hosts []string) []string {
	var out []string
	for _, h := range hosts {
		if istio.IsWildcard(h) {
			continue
		}
		for _, rest, ok := strings.Cut(h, "."); ok; _, rest, ok = strings.Cut(rest, ".") {
			out = append(out, "*."+rest)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// find are the virtual services that may route a sidecar's requests for a host, in the
// order in which they count: those that name it, otherwise the one with the most specific wildcard.
func (x *VirtualServices) find(c *incr.Ctx, h Sought) ([]*config.VirtualService, error) {
	var named []*config.VirtualService
	for _, i := range x.byHost.Of(c, h.Host.Host) {
		if v := i.Value.Value; x.imports(c, h.Scope, v, h.Via) {
			named = append(named, v)
		}
	}
	if len(named) > 0 {
		return x.decided(c, h, x.inOrder(c, h.Scope.Namespace, named)), nil
	}
	var wild []*config.VirtualService
	for _, i := range x.wild.Of(c, only) {
		if v := i.Value.Value; x.imports(c, h.Scope, v, h.Via) {
			wild = append(wild, v)
		}
	}
	var best []*config.VirtualService // that have the same host, the first of which counts
	var by string
	for _, v := range x.inOrder(c, h.Scope.Namespace, wild) {
		for _, w := range v.Spec.Hosts {
			if istio.IsWildcard(w) && istio.Covers(w, h.Host.Host) && (best == nil || istio.MoreSpecific(w, by) < 0) {
				best, by = nil, w
			}
			if w == by && !slices.Contains(best, v) {
				best = append(best, v)
			}
		}
	}
	best = x.decided(c, h, best)
	return best[:min(len(best), 1)], nil
}

// decided are the virtual services of a host but for those of which it is not known whether they
// were there before another one: who would count first has all requests of a host, so none does.
func (x *VirtualServices) decided(c *incr.Ctx, h Sought, list []*config.VirtualService) []*config.VirtualService {
	defaults := x.mesh.Exports(c).VirtualServices
	rival := func(a *config.VirtualService) *config.VirtualService {
		for _, b := range list {
			if a.Ties(b.Meta) && len(a.Spec.Http) > 0 && len(b.Spec.Http) > 0 && a.Reach(h.Scope.Namespace, defaults) == b.Reach(h.Scope.Namespace, defaults) {
				return b
			}
		}
		return nil
	}
	if len(list) < 2 || !list[0].Undated {
		return list
	}
	first := rival(list[0])
	if first == nil {
		return list
	}
	x.contests.Say(c, []config.Contest{{
		Table: config.VirtualServices, A: min(list[0].Key, first.Key), B: max(list[0].Key, first.Key), Thing: "requests for " + h.Host.Host,
	}})
	var out []*config.VirtualService
	for _, v := range list {
		if v != list[0] && rival(v) == nil {
			out = append(out, v)
		}
	}
	return out
}

// inOrder are those virtual services of a list that a namespace sees, in the order in which they
// count.
func (x *VirtualServices) inOrder(c *incr.Ctx, namespace string, list []*config.VirtualService) []*config.VirtualService {
	defaults := x.mesh.Exports(c).VirtualServices
	reach := func(v *config.VirtualService) istio.Reach { return v.Reach(namespace, defaults) }
	list = slices.DeleteFunc(list, func(v *config.VirtualService) bool { return reach(v) == istio.Nobody })
	slices.SortStableFunc(list, func(a, b *config.VirtualService) int {
		return cmp.Or(cmp.Compare(reach(a), reach(b)), cmp.Compare(consumers(a, namespace), consumers(b, namespace)), a.Before(b.Meta))
	})
	return list
}

// consumers is 0 for a route of the Gateway API that a namespace has for what it calls itself,
// which counts before others.
func consumers(v *config.VirtualService, namespace string) int {
	if v.Route && v.Namespace == namespace {
		return 0
	}
	return 1
}

// named reports whether a virtual service names a host that is no route of the Gateway API.
func (x *VirtualServices) named(c *incr.Ctx, host string) bool {
	return slices.ContainsFunc(x.byHost.Of(c, host), func(i incr.Item[string, tables.Row[*config.VirtualService]]) bool {
		return !i.Value.Value.Route
	})
}

// concerns reports whether a route of the Gateway API counts in a namespace: it is its own, or that
// of the service. Source: Gateway API, "Producer routes" and "Consumer routes".
func (x *VirtualServices) concerns(c *incr.Ctx, v *config.VirtualService, namespace string) bool {
	if !v.Route || v.Namespace == namespace {
		return true
	}
	return slices.ContainsFunc(v.Spec.Hosts, func(h string) bool {
		_, own := x.services.Get(c, sdk.ServiceKey(v.Namespace, h))
		return own
	})
}

// imports reports whether a virtual service counts in a scope for what goes out by an egress
// listener (see Sidecars.Via).
func (x *VirtualServices) imports(c *incr.Ctx, s Scope, v *config.VirtualService, via int) bool {
	if v.Reach(s.Namespace, x.mesh.Exports(c).VirtualServices) == istio.Nobody || !x.concerns(c, v, s.Namespace) {
		return false
	}
	list := x.sidecars.Egress(c, s)
	return len(list) == 0 || via >= 0 && list[via].importsRoutes(v)
}
