package scope

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// routedKey is a virtual service (key) as one scope sees it, for what goes out by one egress
// listener (see Sidecars.Via).
type routedKey struct {
	Scope   Scope
	Via     int
	Service string
}

func (x *Scopes) addUnregistered(graph *incr.Graph) {
	x.routedPorts = incr.NewFunc(graph, "ports of virtual service", slices.Equal, func(c *incr.Ctx, k routedKey) ([]uint32, error) {
		v, ok := x.tables.VirtualServices.Get(c, k.Service)
		if !ok {
			return nil, incr.Absent
		}
		return x.findRoutedPorts(c, k, v.Value), nil
	})
	ports := incr.FlatMap(x.Visible, "HTTP ports", SameService,
		func(c *incr.Ctx, h Host, s *config.Service) ([]incr.Item[HostPort, *config.Service], error) {
			return x.requestPorts(c, h, s), nil
		})
	x.OnPort = incr.NewIndex(ports, "hosts on port", func(k HostPort, _ *config.Service) []ScopePort { return []ScopePort{{k.Scope, k.Port}} })
	x.anyKnown = incr.NewFunc(graph, "services of a wildcard on port", incr.Same[bool], x.findAnyKnown)
}

// findRoutedPorts are the ports of the services that a virtual service names: there it counts for
// hosts that no registry knows, too, so that one set of routes has the same hosts at each.
func (x *Scopes) findRoutedPorts(c *incr.Ctx, k routedKey, v *config.VirtualService) []uint32 {
	var out []uint32
	for _, h := range v.Spec.Hosts {
		for _, service := range x.servicesOf(c, k, h) {
			for _, p := range service.Ports {
				if protocol := config.ParseProtocol(p.Protocol); protocol.IsHTTP() || protocol == config.Sniffed {
					out = append(out, p.Number)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// servicesOf are the services that a host of a virtual service means: of those that a wildcard
// covers, such as have no closer one.
func (x *Scopes) servicesOf(c *incr.Ctx, k routedKey, h string) []*config.Service {
	if !istio.IsWildcard(h) {
		if service, ok := x.Visible.Get(c, Host{k.Scope, h}); ok {
			return []*config.Service{service}
		}
		return nil
	}
	var out []*config.Service
	for _, i := range x.Hosts.Of(c, k.Scope) {
		if !istio.Covers(h, i.Key.Host) {
			continue
		}
		if list := x.VirtualServices.For(c, Sought{i.Key, k.Via}); len(list) > 0 && list[0].Key == k.Service {
			out = append(out, i.Value)
		}
	}
	return out
}

// RoutedAt are the virtual services that count for what goes out by an egress listener, and whose
// services have such ports, in order.
func (x *Scopes) RoutedAt(c *incr.Ctx, s Scope, via int, such func(ports []uint32) bool) []*config.VirtualService {
	var list []*config.VirtualService
	for _, i := range x.VirtualServices.atGateway.Of(c, config.MeshGateway) {
		v := i.Value.Value
		if x.VirtualServices.imports(c, s, v, via) && such(x.routedPorts.Of(c, routedKey{s, via, v.Key})) {
			list = append(list, v)
		}
	}
	return x.VirtualServices.inOrder(c, s.Namespace, list)
}

// OnlyPort is the port of a service that has one, otherwise the one at which the request came.
func (x *Scopes) OnlyPort(c *incr.Ctx, h Host, fallback uint32) uint32 {
	if s, ok := x.Visible.Get(c, h); ok && len(s.Ports) == 1 {
		return s.Ports[0].Number
	}
	return fallback
}

type ScopePort struct {
	Scope Scope
	Port  uint32
}

type HostPort struct {
	Scope Scope
	Host  string
	Port  uint32
}

// Known reports whether a host, or one that a wildcard has to do with, is a service at a port in
// the scope.
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
	list := x.Sidecars.Egress(c, h.Scope)
	l := Ruling(list, port)
	return len(list) == 0 || l != nil && x.Sidecars.importedBy(c, h, s, l, port)
}
