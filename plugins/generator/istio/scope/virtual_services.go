package scope

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Sought is a host whose virtual services are asked for, for what goes out by one egress listener (see via).
type Sought struct {
	Host
	Via int
}

func (x *Scopes) indexServices(graph *incr.Graph) {
	x.Routings.ByHost = incr.NewIndex(x.tables.VirtualServices, "virtual services by host", func(_ string, r tables.Row[*config.VirtualService]) []string {
		if !r.Value.Serves(config.MeshGateway) {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(r.Value.Spec.Hosts), istio.IsWildcard)
	})
	x.Routings.Wild = incr.NewIndex(x.tables.VirtualServices, "wildcard virtual services", func(_ string, r tables.Row[*config.VirtualService]) []string {
		if r.Value.Serves(config.MeshGateway) && slices.ContainsFunc(r.Value.Spec.Hosts, istio.IsWildcard) {
			return []string{only}
		}
		return nil
	})
	x.Routings.ConnectionsUnder = incr.NewIndex(x.tables.VirtualServices, "routes for connections by wildcard", func(_ string, r tables.Row[*config.VirtualService]) []string {
		if !r.Value.Serves(config.MeshGateway) || !RoutesConnections(r.Value) {
			return nil
		}
		return wildcardsOver(r.Value.Spec.Hosts)
	})
	x.Routings.AtGateway = incr.NewIndex(x.tables.VirtualServices, "virtual services by gateway", func(_ string, r tables.Row[*config.VirtualService]) []string {
		return r.Value.Spec.Gateways
	})
	x.ServicesFor = incr.NewFunc(graph, "virtual services for host", slices.Equal, x.findServices)
	x.addUnregistered(graph)
}

// RoutesConnections reports whether a virtual service has routes for more than requests.
func RoutesConnections(v *config.VirtualService) bool { return len(v.Spec.Tcp)+len(v.Spec.Tls) > 0 }

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

// findServices are the virtual services that may route a sidecar's requests for a host, in the
// order in which they count: those that name it, otherwise the one with the most specific wildcard.
func (x *Scopes) findServices(c *incr.Ctx, h Sought) ([]*config.VirtualService, error) {
	var named []*config.VirtualService
	for _, i := range x.Routings.ByHost.Of(c, h.Host.Host) {
		if v := i.Value.Value; x.Imports(c, h.Scope, v, h.Via) {
			named = append(named, v)
		}
	}
	if len(named) > 0 {
		return x.InOrder(c, h.Scope.Namespace, named), nil
	}
	var wild []*config.VirtualService
	for _, i := range x.Routings.Wild.Of(c, only) {
		if v := i.Value.Value; x.Imports(c, h.Scope, v, h.Via) {
			wild = append(wild, v)
		}
	}
	var best *config.VirtualService
	var by string
	for _, v := range x.InOrder(c, h.Scope.Namespace, wild) {
		for _, w := range v.Spec.Hosts {
			if istio.IsWildcard(w) && istio.Covers(w, h.Host.Host) && (best == nil || istio.MoreSpecific(w, by) < 0) {
				best, by = v, w
			}
		}
	}
	if best == nil {
		return nil, nil
	}
	return []*config.VirtualService{best}, nil
}

// InOrder are those virtual services of a list that a namespace sees, in the order in which they count.
func (x *Scopes) InOrder(c *incr.Ctx, namespace string, list []*config.VirtualService) []*config.VirtualService {
	defaults := x.mesh.Exports(c).VirtualServices
	reach := func(v *config.VirtualService) istio.Reach { return v.Reach(namespace, defaults) }
	list = slices.DeleteFunc(list, func(v *config.VirtualService) bool { return reach(v) == istio.Nobody })
	slices.SortStableFunc(list, func(a, b *config.VirtualService) int {
		return cmp.Or(cmp.Compare(reach(a), reach(b)), a.Before(b.Meta))
	})
	return list
}

// Imports reports whether a virtual service counts in a scope for what goes out by an egress listener (see via).
func (x *Scopes) Imports(c *incr.Ctx, s Scope, v *config.VirtualService, via int) bool {
	if v.Reach(s.Namespace, x.mesh.Exports(c).VirtualServices) == istio.Nobody {
		return false
	}
	list := x.EgressOf(c, s)
	return len(list) == 0 || via >= 0 && list[via].importsRoutes(v)
}

// Known reports whether a host, or one that a wildcard has to do with, is a service at a port in the scope.
func (x *Scopes) Known(c *incr.Ctx, s Scope, h string, port uint32) bool {
	if !istio.IsWildcard(h) {
		return x.isAt(c, Host{s, h}, port)
	}
	return x.anyKnown.Of(c, HostPort{s, h, port})
}

// findAnyKnown reports whether there is a service, of any protocol, at a port, with whose host a
// wildcard overlaps.
func (x *Scopes) findAnyKnown(c *incr.Ctx, k HostPort) (bool, error) {
	return slices.ContainsFunc(x.Hosts.Of(c, k.Scope), func(i incr.Item[Host, *config.Service]) bool {
		return istio.Overlaps(k.Host, i.Key.Host) && x.isAt(c, i.Key, k.Port)
	}), nil
}

// isAt reports whether a host is a service that is dialled at a port.
func (x *Scopes) isAt(c *incr.Ctx, h Host, port uint32) bool {
	s, ok := x.Visible.Get(c, h)
	if !ok || s.Port(port) == nil {
		return false
	}
	list := x.EgressOf(c, h.Scope)
	l := Ruling(list, port)
	return len(list) == 0 || l != nil && x.importedBy(c, h, s, l, port)
}
