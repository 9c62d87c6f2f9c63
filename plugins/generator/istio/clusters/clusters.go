// Package clusters makes the clusters of proxies: those by which they send, those behind the
// workload's own ports, and those that every proxy has; and says what load assignments are made
// from. What a cluster looks like is in cluster.
package clusters

import (
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/policy"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/rule"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// From is what clusters are made from.
type From struct {
	Tables    *tables.Tables
	Mesh      *mesh.Settings
	Rules     *rule.Rules
	Scopes    *scope.Scopes
	Policies  *policy.Policies
	Patches   *patches.Patches
	Workloads *workload.Workloads
	Targets   *workload.Targets
	Networks  *workload.Networks
	Ingress   *ingress.Ingress
	// DualStack: proxies with addresses of both families use both.
	DualStack bool
}

// Clusters are those of all proxies.
type Clusters struct {
	Outbound *Outbound
	// Static are those that every proxy has, Inbound those behind a workload's ports: lists that
	// patches may change.
	Static  *incr.Func[StaticKey, []sdk.Resource]
	Inbound *incr.Func[InboundKey, []sdk.Resource]
	// Specs are what load assignments are made from, besides endpoints.
	Specs *incr.Func[SpecKey, endpoint.Spec]
}

// New adds clusters to a graph.
func New(graph *incr.Graph, from From) *Clusters {
	return &Clusters{
		Outbound: newOutbound(graph, &from),
		Static:   newStatic(graph, &from),
		Inbound:  newInbound(graph, &from),
		Specs:    newSpecs(graph, &from),
	}
}
