package listeners

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// FixedKey is what virtualInbound and virtualOutbound depend on: Outside is the cluster for what no
// service is.
type FixedKey struct {
	Inbound InboundKey
	Outside string
	// Patches change them (patches.Keys).
	Patches string
}

// fixed are the listeners of a sidecar that aren't at a service's place.
type fixed struct {
	from     *From
	inbound  *inbound
	outbound *Outbound
}

// newFixed adds them to a graph, as a list.
func newFixed(graph *incr.Graph, from *From, out *Outbound) *incr.Func[FixedKey, []sdk.Resource] {
	x := &fixed{from: from, inbound: newInbound(graph, from), outbound: out}
	return patches.List[FixedKey]{
		Name:    "fixed listeners",
		Plain:   x.list,
		Patches: func(k *FixedKey) *string { return &k.Patches },
		Patch: func(c *incr.Ctx, keys string, k FixedKey, r sdk.Resource) ([]byte, bool) {
			side := networking.EnvoyFilter_SIDECAR_INBOUND
			if r.Name == listener.VirtualOutbound || r.Name == proxyBind(k.Inbound.Proxy.Sending()).Name() {
				side = networking.EnvoyFilter_SIDECAR_OUTBOUND
			}
			return from.Patches.Listener(c, keys, side, r.Name, r.Body)
		},
	}.Add(graph)
}

// list are the listeners of a sidecar's own side.
func (x *fixed) list(c *incr.Ctx, k FixedKey) []sdk.Resource {
	out := append(x.inbound.alone(c, k.Inbound), x.proxy(c, k.Inbound.Proxy.Sending(), k.Outside)...)
	if k.Inbound.Proxy.Dialed {
		return out
	}
	return append(out,
		sdk.Resource{Name: listener.VirtualInbound, Body: x.inbound.virtual.Of(c, k.Inbound)},
		sdk.Resource{Name: listener.VirtualOutbound, Body: x.outbound.virtual.Of(c, virtualKey{k.Inbound.Proxy.Sending(), k.Outside})})
}

// proxy is the listener at which the workload finds a proxy for HTTP (outside is the cluster for
// requests to hosts that nobody knows); none where the proxy has no such port.
func (x *fixed) proxy(c *incr.Ctx, p listener.Proxy, outside string) []sdk.Resource {
	if p.Ports.Proxy == 0 {
		return nil
	}
	at := p.Dialing.Families.Loopback()
	l := listener.BuildOutbound(listener.Outbound{
		Bind: proxyBind(p), More: strings.Join(at[1:], ","), Dialed: true, HTTP: true,
		Protocol: config.HTTP, Route: route.HTTPProxy, Forwards: true, Outside: outside, Proxy: x.from.Reports.Reporting(c, p, telemetry.Outbound),
	})
	return []sdk.Resource{{Name: l.Name, Body: encode.Bytes(l)}}
}

// proxyBind is where it listens; the zero value where there is none.
func proxyBind(p listener.Proxy) listener.Bind {
	if p.Ports.Proxy == 0 {
		return listener.Bind{}
	}
	return listener.Bind{Address: p.Dialing.Families.Loopback()[0], Port: p.Ports.Proxy}
}
