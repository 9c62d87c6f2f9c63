package istio

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// ingressKey names what a Sidecar says of the workload's own ports; the zero value where it says nothing.
type ingressKey struct {
	Sidecar string
	// Address is the proxy's own, where ports are named: listeners and clusters hold it.
	Address string
}

// ingressOf is what the scope's Sidecar says of a proxy's ports.
func (g *graph) ingressOf(c *incr.Ctx, s Scope, n *node.Node) ingressKey {
	spec := g.sidecarSpec(c, s.Sidecar)
	switch {
	case len(spec.GetIngress()) > 0:
		return ingressKey{s.Sidecar, unicast(n.Addresses)}
	case spec.GetInboundConnectionPool() != nil:
		return ingressKey{Sidecar: s.Sidecar}
	}
	return ingressKey{}
}

// sidecarSpec is a Sidecar's spec, nil without one.
func (g *graph) sidecarSpec(c *incr.Ctx, key string) *networking.Sidecar {
	if key == "" {
		return nil
	}
	r, ok := g.sidecars.Get(c, key)
	if !ok {
		return nil
	}
	return r.value.Spec
}

// unicast is the first address that others can dial.
func unicast(addresses []string) string {
	for _, a := range addresses {
		if ip, err := netip.ParseAddr(a); err == nil && ip.IsGlobalUnicast() {
			return a
		}
	}
	return addresses[0]
}

// named reports whether the Sidecar names the ports; it may say something of their connections alone.
func (k ingressKey) named() bool { return k.Address != "" }

// ingressPorts are the ports that the Sidecar names, as listeners have them; own says which stand by themselves.
func (g *graph) ingressPorts(c *incr.Ctx, k ingressKey, dialed, own bool) []listener.Port {
	r, ok := g.sidecars.Get(c, k.Sidecar)
	if !ok {
		return nil
	}
	var out []listener.Port
	for _, l := range r.value.Spec.Ingress {
		number := l.GetPort().GetNumber()
		if standsAlone(l.CaptureMode, dialed) != own {
			continue
		}
		out = append(out, listener.Port{
			Target: number, Number: number, Host: r.value.Name + "." + r.value.Namespace, Bind: cmp.Or(l.Bind, k.Address),
			Protocol: config.ParseProtocol(l.GetPort().GetProtocol()), Config: r.value.Path("sidecar"),
		})
	}
	slices.SortStableFunc(out, func(a, b listener.Port) int { return cmp.Compare(a.Target, b.Target) })
	return out
}

// standsAlone reports whether clients dial a listener itself, because nothing intercepts their connections.
func standsAlone(capture networking.CaptureMode, dialed bool) bool {
	return capture == networking.CaptureMode_NONE || capture == networking.CaptureMode_DEFAULT && dialed
}

// ownListeners are those of ports that clients dial themselves.
func (g *graph) ownListeners(c *incr.Ctx, k inboundKey) []sdk.Resource {
	if !k.Ingress.named() {
		return nil
	}
	var out []sdk.Resource
	for _, p := range g.ingressPorts(c, k.Ingress, k.Proxy.Dialed, true) {
		l := listener.BuildInboundPort(g.inboundOf(c, k), p)
		out = append(out, sdk.Resource{Name: l.Name, Body: encode.Bytes(l)})
	}
	return out
}

// ingressClusters are those behind the ports that a Sidecar names.
func (g *graph) ingressClusters(c *incr.Ctx, k inboundClusterKey) []sdk.Resource {
	var out []sdk.Resource
	for _, l := range g.sidecarSpec(c, k.Ingress.Sidecar).GetIngress() {
		number := l.GetPort().GetNumber()
		in := cluster.Inbound{
			Port:           number,
			Protocol:       config.ParseProtocol(l.GetPort().GetProtocol()),
			Endpoint:       defaultEndpoint(l.DefaultEndpoint, k),
			Services:       g.servicesBehind(c, k.Targets, number),
			Source:         k.Families.Source(),
			ConnectTimeout: g.clusterSettings.Of(c, only).ConnectTimeout,
		}
		g.limit(c, &in, k.Ingress, slices.DeleteFunc(decodeTargets(k.Targets), func(t target) bool { return t.Target != number }))
		out = append(out, sdk.Resource{Name: cluster.InboundName(number), Body: encode.Bytes(cluster.BuildInbound(in))})
	}
	return out
}

// servicesBehind are the services that name a port of the workload; the first alone counts.
func (g *graph) servicesBehind(c *incr.Ctx, targets string, port uint32) []cluster.Service {
	for _, t := range decodeTargets(targets) {
		if s, ok := g.services.Get(c, t.Service); ok && t.Target == port {
			return []cluster.Service{{Host: s.value.Host, Name: s.value.Name, Namespace: s.value.Namespace}}
		}
	}
	return nil
}

// limit sets what is said of connections to a port of the workload: by the Sidecar, and otherwise by the rule for the first of the
// services that name it (targets), so that a server takes what its clients may send.
func (g *graph) limit(c *incr.Ctx, in *cluster.Inbound, k ingressKey, targets []target) {
	if len(targets) > 0 {
		if s, ok := g.services.Get(c, targets[0].Service); ok {
			if rule := g.ruleFor(c, Scope{Namespace: s.value.Namespace}, s.value); rule != nil && rule.Spec.TrafficPolicy != nil {
				in.RulePath = rule.Path("destination-rule")
				in.Pool = cluster.PolicyFor(rule.Spec, "", targets[0].Number).GetConnectionPool()
			}
		}
	}
	if pool := g.inboundPool(c, k, in.Port); pool != nil {
		in.Pool = pool
	}
}

// inboundPool is what the Sidecar says of connections to a port of the workload: for the port, and otherwise for all.
func (g *graph) inboundPool(c *incr.Ctx, k ingressKey, port uint32) *networking.ConnectionPoolSettings {
	spec := g.sidecarSpec(c, k.Sidecar)
	for _, l := range spec.GetIngress() {
		if l.GetPort().GetNumber() == port && l.ConnectionPool != nil {
			return l.ConnectionPool
		}
	}
	return spec.GetInboundConnectionPool()
}

// defaultEndpoint is where the workload serves a port: a Unix socket, or the address with the loopback and unspecified addresses made
// the proxy's. Empty: where the client wanted to go.
func defaultEndpoint(s string, k inboundClusterKey) string {
	if s == "" || strings.HasPrefix(s, unixPrefix) {
		return s
	}
	address, port, err := net.SplitHostPort(s)
	if err != nil {
		return ""
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return ""
	}
	ip, err := netip.ParseAddr(address)
	switch {
	case err == nil && ip.IsUnspecified():
		address = k.Ingress.Address
	case err == nil && ip.IsLoopback():
		address = loopbackOf(k.Families, ip)
	}
	return net.JoinHostPort(address, port)
}

// loopbackOf is the loopback address of the families; of both, the one that was meant.
func loopbackOf(f config.Families, meant netip.Addr) string {
	list := f.Loopback()
	if slices.Contains(list, meant.String()) {
		return meant.String()
	}
	return list[0]
}
