package istio

import (
	"bytes"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// inboundKey is what virtualInbound depends on: which ports services name, and the proxy.
type inboundKey struct {
	Targets string
	Ingress ingress.Key
	Proxy   listener.Proxy
}

func (g *graph) addInbound() {
	g.inbound = incr.NewFunc(g.Graph, "virtualInbound", bytes.Equal, func(c *incr.Ctx, k inboundKey) ([]byte, error) {
		in := g.inboundOf(c, k)
		in.Unnamed = g.unnamed(c, k)
		if k.Ingress.Named() {
			in.Ports = g.ingressPorts(c, k.Ingress, &k.Proxy, false)
			return encode.Bytes(listener.BuildInbound(in)), nil
		}
		for _, group := range workload.ByPort(workload.DecodeTargets(k.Targets)) {
			t := group[0]
			s, ok := g.targets.Service(c, t.Service)
			families := k.Proxy.Dialing.Families
			if !ok || s.Value.Port(t.Number) == nil || !k.Proxy.Ports.Free(listener.Bind{Address: families.Any()[0], Port: t.Target}, families, false) {
				continue
			}
			in.Ports = append(in.Ports, portOf(s.Value, t))
		}
		return encode.Bytes(listener.BuildInbound(in)), nil
	})
}

// unnamed are the ports for which the workload's PeerAuthentication says what they take, but that neither its Sidecar nor, without one that
// names ports, a service names.
func (g *graph) unnamed(c *incr.Ctx, k inboundKey) []uint32 {
	modes := authn.ParseModes(k.Proxy.Policies.Peers)
	if len(modes.Ports) == 0 {
		return nil
	}
	named := map[uint32]bool{}
	if k.Ingress.Named() {
		for _, l := range g.ingress.Spec(c, k.Ingress.Sidecar).GetIngress() {
			named[l.GetPort().GetNumber()] = true
		}
	} else {
		for _, t := range workload.DecodeTargets(k.Targets) {
			named[t.Target] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(modes.Ports)), func(port uint32) bool { return named[port] })
}

// portOf is a workload's port that a service names.
func portOf(s *config.Service, t workload.Target) listener.Port {
	p := s.Port(t.Number)
	return listener.Port{
		Target: t.Target, Number: t.Number, Host: s.Host, Name: p.Name, Service: s.Name,
		Short: cluster.ShortHost(s.Registry, s.Host, s.Name, s.Namespace), Protocol: config.ParseProtocol(p.Protocol),
	}
}

// inboundOf is what the listeners of a workload's ports have in common.
func (g *graph) inboundOf(c *incr.Ctx, k inboundKey) listener.Inbound {
	return listener.Inbound{
		Proxy: g.reports.Reporting(c, k.Proxy, telemetry.Inbound), TLS: g.policies.MeshTLS(c), Guards: g.policies.Guards(c, k.Proxy.Policies, false),
		Stat: g.mesh.Clusters(c).InboundStat, Defaults: g.policies.TLSDefaults(c),
	}
}
