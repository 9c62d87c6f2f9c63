package listeners

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

// InboundKey is what virtualInbound depends on: which ports services name, and the proxy.
type InboundKey struct {
	Targets string
	Ingress ingress.Key
	Proxy   listener.Proxy
}

// inbound are the listeners of workloads' own ports.
type inbound struct {
	from    *From
	virtual *incr.Func[InboundKey, []byte]
	// own is the listener of a port that clients dial themselves.
	own *incr.Func[ownKey, []byte]
}

func newInbound(graph *incr.Graph, from *From) *inbound {
	x := &inbound{from: from}
	x.virtual = incr.NewFunc(graph, "virtualInbound", bytes.Equal, func(c *incr.Ctx, k InboundKey) ([]byte, error) {
		in := x.common(c, k)
		in.Unnamed = x.unnamed(c, k)
		if k.Ingress.Named() {
			in.Ports = x.ports(c, k.Ingress, &k.Proxy, false)
			return encode.Bytes(listener.BuildInbound(in)), nil
		}
		for _, group := range workload.ByPort(workload.DecodeTargets(k.Targets)) {
			t := group[0]
			s, ok := x.from.Targets.Service(c, t.Service)
			families := k.Proxy.Dialing.Families
			if !ok || s.Value.Port(t.Number) == nil || !k.Proxy.Ports.Free(listener.Bind{Address: families.Any()[0], Port: t.Target}, families, false) {
				continue
			}
			in.Ports = append(in.Ports, portOf(s.Value, t))
		}
		return encode.Bytes(listener.BuildInbound(in)), nil
	})
	x.own = incr.NewFunc(graph, "own listener", bytes.Equal, func(c *incr.Ctx, k ownKey) ([]byte, error) {
		for _, p := range x.ports(c, k.Inbound.Ingress, &k.Inbound.Proxy, true) {
			if listener.InboundPortBind(k.Inbound.Proxy, p).Name() == k.Name {
				return encode.Bytes(listener.BuildInboundPort(x.common(c, k.Inbound), p)), nil
			}
		}
		return nil, incr.Absent
	})
	return x
}

// unnamed are the ports for which the workload's PeerAuthentication says what they take, but that
// neither its Sidecar nor, without one that names ports, a service names.
func (x *inbound) unnamed(c *incr.Ctx, k InboundKey) []uint32 {
	modes := authn.ParseModes(k.Proxy.Policies.Peers)
	if len(modes.Ports) == 0 {
		return nil
	}
	named := map[uint32]bool{}
	if k.Ingress.Named() {
		for _, l := range x.from.Ingress.Spec(c, k.Ingress.Sidecar).GetIngress() {
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

// common is what the listeners of a workload's ports have in common.
func (x *inbound) common(c *incr.Ctx, k InboundKey) listener.Inbound {
	return listener.Inbound{
		Proxy: x.from.Reports.Reporting(c, k.Proxy, telemetry.Inbound), TLS: x.from.Policies.MeshTLS(c),
		Guards: x.from.Policies.Guards(c, k.Proxy.Policies, false),
		Stat:   x.from.Mesh.Clusters(c).InboundStat, Defaults: x.from.Policies.TLSDefaults(c),
	}
}
