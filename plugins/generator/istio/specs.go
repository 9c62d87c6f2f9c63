package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// endpointView is what load assignments depend on of the proxies that get them.
type endpointView struct {
	Scope  scope.Scope
	Router bool
	// Place is where the proxies are, as far as somebody asks.
	Place workload.Place
	// Network is theirs, as far as it counts.
	Network workload.Network
}

type specKey struct {
	View    endpointView
	Cluster string
}

// addSpecs adds what a load assignment is made from besides endpoints. The assignment itself is made outside of the graph
// (assignments.go), so that endpoints alone need no wave.
func (g *graph) addSpecs() {
	g.specs = incr.NewFunc(g.Graph, "endpoint spec", incr.Same[endpoint.Spec], func(c *incr.Ctx, k specKey) (endpoint.Spec, error) {
		out := endpoint.Spec{Cluster: k.Cluster}
		name, ok := cluster.ParseName(k.Cluster)
		if !ok {
			return out, nil
		}
		s, ok := g.scopes.Visible.Get(c, scope.Host{Scope: k.View.Scope, Host: name.Host})
		if !ok || s.Port(name.Port) == nil {
			return out, nil
		}
		rule := g.rules.PolicyFor(c, k.View.Scope.Client(), s)
		subset := cluster.FindSubset(rule, name.Subset)
		own := cluster.PolicyFor(rule, name.Subset, name.Port)
		policy := g.mesh.Clusters(c).Underlay(own)
		if name.Subset != "" && subset == nil || !cluster.UsesEDS(s, policy, k.View.Router) {
			return out, nil
		}
		out.Service, out.Port, out.PortName = s.Key, name.Port, s.Port(name.Port).Name
		out.Subset = endpoint.Selector(subset.GetLabels())
		out.Unready, out.Unhealthy = s.PublishNotReady, cluster.Unhealthy(policy, s)
		out.Mutual = name.ByName
		// What the mesh says of outliers lets nobody fail over.
		out.Balance = cluster.NearnessOf(own, s, g.mesh.Clusters(c)).Balance(k.View.Place.Endpoint(), k.View.Place.Zones)
		_, out.Sessions = s.Session()
		out.Dual = g.dualStack
		out.Horizon = g.networks.Horizon(c, k.View.Network, s)
		g.speak(c, &out, cluster.TLSTowards(rule, name.Subset, name.Port), s.Namespace)
		return out, nil
	})
}

// speak says how clients speak to endpoints: as a rule's settings say, otherwise as the endpoints and their policies do.
func (g *graph) speak(c *incr.Ctx, s *endpoint.Spec, tls *networking.ClientTLSSettings, namespace string) {
	s.Plaintext = tls != nil && tls.Mode != networking.ClientTLSSettings_ISTIO_MUTUAL
	if tls == nil {
		s.Refusals = g.policies.Refusals(c, namespace)
	}
}
