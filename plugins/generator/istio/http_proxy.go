package istio

import (
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// proxyListener is that listener (outside is the cluster for requests to hosts that nobody knows); none where the proxy has no such port.
func (g *graph) proxyListener(c *incr.Ctx, p listener.Proxy, outside string) []sdk.Resource {
	if p.Ports.Proxy == 0 {
		return nil
	}
	at := p.Dialing.Families.Loopback()
	l := listener.BuildOutbound(listener.Outbound{
		Bind: proxyBind(p), More: strings.Join(at[1:], ","), Dialed: true, HTTP: true,
		Protocol: config.HTTP, Route: route.HTTPProxy, Forwards: true, Outside: outside, Proxy: g.reports.Reporting(c, p, telemetry.Outbound),
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
