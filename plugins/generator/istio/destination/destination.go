// Package destination says what counts of where a scope's proxies send to: the rule for it, and
// what statistics call it.
package destination

import (
	"cmp"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/rule"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Destinations are where proxies send to.
type Destinations struct {
	mesh   *mesh.Settings
	rules  *rule.Rules
	scopes *scope.Scopes
}

// New makes them from the mesh's settings, rules and scopes.
func New(settings *mesh.Settings, rules *rule.Rules, scopes *scope.Scopes) *Destinations {
	return &Destinations{mesh: settings, rules: rules, scopes: scopes}
}

// Rule is a client's rule for a host, nil without one.
func (d *Destinations) Rule(c *incr.Ctx, s scope.Scope, h string) *networking.DestinationRule {
	if to, ok := d.scopes.Visible.Get(c, scope.Host{Scope: s, Host: h}); ok {
		return d.rules.PolicyFor(c, s.Client(), to)
	}
	return nil
}

// Stat names connections towards a cluster in statistics: as the mesh's pattern says, or otherwise
// as given. portName is that of the port at which they came.
func (d *Destinations) Stat(c *incr.Ctx, s scope.Scope, n cluster.Name, portName, otherwise string) string {
	pattern := d.mesh.Clusters(c).OutboundStat
	if pattern == "" {
		return otherwise
	}
	to, ok := d.scopes.Visible.Get(c, scope.Host{Scope: s, Host: n.Host})
	if !ok {
		return otherwise
	}
	of := cluster.TowardsService(to, n.Port, n.Subset)
	of.PortName = portName
	return cmp.Or(cluster.StatName(pattern, of), otherwise)
}

// Forward is where a route leads whose connections come at a port (portNamed is its name).
func (d *Destinations) Forward(c *incr.Ctx, s scope.Scope, v *config.VirtualService,
	route []*networking.RouteDestination, port uint32, portNamed string) listener.Forward {
	out := listener.ToRoute(v, route, func(to *networking.Destination) cluster.Name {
		n := cluster.Name{Host: to.GetHost(), Subset: to.GetSubset(), Port: to.GetPort().GetNumber(), Datagrams: v.UDPRoute}
		if n.Port == 0 {
			n.Port = d.scopes.OnlyPort(c, scope.Host{Scope: s, Host: n.Host}, port)
		}
		return n
	})
	first := route[0].GetDestination()
	out.Rule = d.Rule(c, s, first.GetHost())
	if len(route) == 1 {
		n := cluster.Name{Host: first.GetHost(), Subset: first.GetSubset(), Port: port}
		out.Stat = d.Stat(c, s, n, portNamed, out.Stat)
	}
	return out
}
