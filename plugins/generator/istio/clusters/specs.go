package clusters

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/policy"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// EndpointView is what load assignments depend on of the proxies that get them.
type EndpointView struct {
	Scope  scope.Scope
	Router bool
	// Place is where the proxies are, as far as somebody asks.
	Place workload.Place
	// Network is theirs, as far as it counts.
	Network workload.Network
}

// SpecKey names a load assignment of a view.
type SpecKey struct {
	View    EndpointView
	Cluster string
}

// newSpecs adds what a load assignment is made from besides endpoints. The assignment itself is
// made outside of the graph, so that endpoints alone need no wave.
func newSpecs(graph *incr.Graph, from *From) *incr.Func[SpecKey, endpoint.Spec] {
	return incr.NewFunc(graph, "endpoint spec", incr.Same[endpoint.Spec], func(c *incr.Ctx, k SpecKey) (endpoint.Spec, error) {
		out := endpoint.Spec{Cluster: k.Cluster}
		name, ok := cluster.ParseName(k.Cluster)
		if !ok {
			return out, nil
		}
		s, ok := from.Scopes.Visible.Get(c, scope.Host{Scope: k.View.Scope, Host: name.Host})
		if !ok {
			return out, nil
		}
		port := name.PortOf(s)
		if port == nil {
			return out, nil
		}
		rule := from.Rules.PolicyFor(c, k.View.Scope.Client(), s)
		subset := cluster.FindSubset(rule, name.Subset)
		own := cluster.PolicyFor(rule, name.Subset, name.Port)
		policy := from.Mesh.Clusters(c).Underlay(own)
		if name.Subset != "" && subset == nil || !cluster.UsesEDS(s, policy, k.View.Router) {
			return out, nil
		}
		out.Service, out.Port, out.PortName = s.Key, name.Port, port.Name
		out.Subset = endpoint.Selector(subset.GetLabels())
		out.Unready, out.Unhealthy = s.PublishNotReady, cluster.Unhealthy(policy, s)
		out.Mutual = name.ByName
		// What the mesh says of outliers lets nobody fail over.
		out.Balance = cluster.NearnessOf(own, s, from.Mesh.Clusters(c)).Balance(k.View.Place.Endpoint(), k.View.Place.Zones)
		_, out.Sessions = s.Session()
		out.Dual = from.DualStack
		out.Horizon = from.Networks.Horizon(c, k.View.Network, s)
		speak(c, from.Policies, &out, cluster.TLSTowards(rule, name.Subset, name.Port), s.Namespace)
		return out, nil
	})
}

// speak says how clients speak to endpoints: as a rule's settings say, otherwise as the endpoints
// and their policies do.
func speak(c *incr.Ctx, policies *policy.Policies, s *endpoint.Spec, tls *networking.ClientTLSSettings, namespace string) {
	s.Plaintext = tls != nil && tls.Mode != networking.ClientTLSSettings_ISTIO_MUTUAL
	if tls == nil {
		s.Refusals = policies.Refusals(c, namespace)
	}
}
