package istio

import (
	"bytes"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// inboundKey is what virtualInbound depends on: which ports services name, and the proxy.
type inboundKey struct {
	Targets string
	Ingress ingressKey
	Proxy   listener.Proxy
}

func (g *graph) addInbound() {
	g.inbound = incr.NewFunc(g.Graph, "virtualInbound", bytes.Equal, func(c *incr.Ctx, k inboundKey) ([]byte, error) {
		in := g.inboundOf(c, k)
		if k.Ingress.named() {
			in.Ports = g.ingressPorts(c, k.Ingress, k.Proxy.Dialed, false)
			return encode.Bytes(listener.BuildInbound(in)), nil
		}
		for _, group := range byPort(decodeTargets(k.Targets)) {
			t := group[0]
			s, ok := g.services.Get(c, t.Service)
			if !ok || s.value.Port(t.Number) == nil {
				continue
			}
			in.Ports = append(in.Ports, listener.Port{
				Target: t.Target, Number: t.Number, Host: s.value.Host,
				Protocol: config.ParseProtocol(s.value.Port(t.Number).Protocol),
			})
		}
		return encode.Bytes(listener.BuildInbound(in)), nil
	})
}

// inboundOf is what the listeners of a workload's ports have in common.
func (g *graph) inboundOf(c *incr.Ctx, k inboundKey) listener.Inbound {
	return listener.Inbound{Proxy: g.reporting(c, k.Proxy, telemetry.Inbound), TLS: g.meshTLS.Of(c, only), Guards: g.guardsOf(c, k.Proxy.Policies, false)}
}
