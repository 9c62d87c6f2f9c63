// Package listeners makes the listeners of proxies: those by which sidecars send, those of the
// workload's own ports, and those of Gateways. What a listener looks like is in listener.
package listeners

import (
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/destination"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateways"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/policy"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/reports"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/rule"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// From is what listeners are made from.
type From struct {
	Tables       *tables.Tables
	Mesh         *mesh.Settings
	Rules        *rule.Rules
	Scopes       *scope.Scopes
	Destinations *destination.Destinations
	Gateways     *gateways.Gateways
	Workloads    *workload.Workloads
	Targets      *workload.Targets
	Ingress      *ingress.Ingress
	Policies     *policy.Policies
	Reports      *reports.Reports
	Patches      *patches.Patches
	// DualStack: proxies with addresses of both families use both.
	DualStack bool
	// IngressTLS: ports that Sidecars name may open TLS of their own.
	IngressTLS bool
	// QUIC: gateways offer HTTP/3.
	QUIC bool
}

// Listeners are those of all proxies.
type Listeners struct {
	Outbound *Outbound
	// Fixed are those of a sidecar that aren't at a service's place, Gateways those of Gateways:
	// lists that patches may change.
	Fixed    *incr.Func[FixedKey, []sdk.Resource]
	Gateways *incr.Func[GatewayKey, []sdk.Resource]
}

// New adds listeners to a graph.
func New(graph *incr.Graph, from From) *Listeners {
	out := newOutbound(graph, &from)
	return &Listeners{Outbound: out, Fixed: newFixed(graph, &from, out), Gateways: newOfGateways(graph, &from)}
}
