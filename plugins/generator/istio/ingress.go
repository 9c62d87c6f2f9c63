package istio

import (
	"bytes"
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
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/rule"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// ingressPorts are the ports that the Sidecar names, as listeners have them; own says which stand by themselves.
func (g *graph) ingressPorts(c *incr.Ctx, k ingress.Key, p *listener.Proxy, own bool) []listener.Port {
	sidecar := g.ingress.Sidecar(c, k.Sidecar)
	if sidecar == nil {
		return nil
	}
	var out []listener.Port
	for _, l := range sidecar.Spec.Ingress {
		number := l.GetPort().GetNumber()
		if standsAlone(l.CaptureMode, p.Dialed) != own || !freeFor(l, p, own) {
			continue
		}
		name := sidecar.Name + "." + k.Namespace
		port := listener.Port{
			Target: number, Number: number, Host: name, Short: name, Service: sidecar.Name, Name: l.GetPort().GetName(), Bind: cmp.Or(l.Bind, k.Address),
			Protocol: config.ParseProtocol(l.GetPort().GetProtocol()), Config: config.Meta{Namespace: k.Namespace, Name: sidecar.Name}.Path("sidecar"),
		}
		if g.ingressTLS && l.Tls != nil {
			port.TLS, port.Protocol = l.Tls, port.Protocol.Opened()
		}
		out = append(out, port)
	}
	slices.SortStableFunc(out, func(a, b listener.Port) int { return cmp.Compare(a.Target, b.Target) })
	return out
}

// freeFor reports whether a port that a Sidecar names isn't one that the proxy has for itself.
func freeFor(l *networking.IstioIngressListener, p *listener.Proxy, own bool) bool {
	b, f := listener.Bind{Address: l.Bind, Port: l.GetPort().GetNumber()}, p.Dialing.Families
	if b.Address == "" && config.ParseProtocol(l.GetPort().GetProtocol()).IsHTTP() {
		b.Address = f.Any()[0]
	}
	return p.Ports.FreeInbound(b, f, own)
}

// standsAlone reports whether clients dial a listener itself, because nothing intercepts their connections.
func standsAlone(capture networking.CaptureMode, dialed bool) bool {
	return capture == networking.CaptureMode_NONE || capture == networking.CaptureMode_DEFAULT && dialed
}

// ownListeners are those of ports that clients dial themselves.
func (g *graph) ownListeners(c *incr.Ctx, k inboundKey) []sdk.Resource {
	if !k.Ingress.Named() {
		return nil
	}
	var out []sdk.Resource
	for _, p := range g.ingressPorts(c, k.Ingress, &k.Proxy, true) {
		name := listener.InboundPortBind(k.Proxy, p).Name()
		out = append(out, sdk.Resource{Name: name, Body: g.ownListener.Of(c, ownKey{k, name})})
	}
	return out
}

// ownKey names the listener of a port that clients dial themselves.
type ownKey struct {
	Inbound inboundKey
	Name    string
}

func (g *graph) addOwnListeners() {
	g.ownListener = incr.NewFunc(g.Graph, "own listener", bytes.Equal, func(c *incr.Ctx, k ownKey) ([]byte, error) {
		for _, p := range g.ingressPorts(c, k.Inbound.Ingress, &k.Inbound.Proxy, true) {
			if listener.InboundPortBind(k.Inbound.Proxy, p).Name() == k.Name {
				return encode.Bytes(listener.BuildInboundPort(g.inboundOf(c, k.Inbound), p)), nil
			}
		}
		return nil, incr.Absent
	})
}

// ingressClusters are those behind the ports that a Sidecar names.
func (g *graph) ingressClusters(c *incr.Ctx, k inboundClusterKey) []sdk.Resource {
	var out []sdk.Resource
	for _, l := range g.ingress.Spec(c, k.Ingress.Sidecar).GetIngress() {
		number := l.GetPort().GetNumber()
		in := cluster.Inbound{
			Port:     number,
			Protocol: config.ParseProtocol(l.GetPort().GetProtocol()),
			Endpoint: defaultEndpoint(l.DefaultEndpoint, k),
			Services: g.servicesBehind(c, k.Targets, number),
		}
		g.limit(c, &in, k, slices.DeleteFunc(workload.DecodeTargets(k.Targets), func(t workload.Target) bool { return t.Target != number }))
		in.Stat = g.ingressStat(c, k, l)
		out = append(out, sdk.Resource{Name: cluster.InboundName(number), Body: g.buildBehind(c, in, k)})
	}
	return out
}

// ingressStat names the cluster behind a port that a Sidecar names in statistics: by the service that names the port too, or else by the
// Sidecar. Empty: Istio's name.
func (g *graph) ingressStat(c *incr.Ctx, k inboundClusterKey, l *networking.IstioIngressListener) string {
	pattern := g.mesh.Clusters(c).InboundStat
	if pattern == "" {
		return ""
	}
	sidecar := g.ingress.Sidecar(c, k.Ingress.Sidecar)
	number := l.GetPort().GetNumber()
	of := cluster.StatOf{Host: sidecar.Name + "." + k.Ingress.Namespace, Name: sidecar.Name}
	of.Short = of.Host
	for _, s := range g.servicesBehind(c, k.Targets, number) {
		of.Host, of.Short, of.Name = s.Host, s.Host, s.Name
	}
	of.Port, of.PortName, of.Target = number, l.GetPort().GetName(), number
	return cluster.StatName(pattern, of)
}

// servicesBehind are the services that name a port of the workload; the first alone counts.
func (g *graph) servicesBehind(c *incr.Ctx, targets string, port uint32) []cluster.Service {
	for _, t := range workload.DecodeTargets(targets) {
		if s, ok := g.targets.Service(c, t.Service); ok && t.Target == port {
			return []cluster.Service{serviceNamed(s.Value)}
		}
	}
	return nil
}

// limit sets what is said of connections to a port of the workload: by the Sidecar, and otherwise by the rule for the first of the
// services that name it (targets), so that a server takes what its clients may send. A rule counts for who imports its host.
func (g *graph) limit(c *incr.Ctx, in *cluster.Inbound, k inboundClusterKey, targets []workload.Target) {
	if len(targets) > 0 {
		if s, ok := g.targets.Service(c, targets[0].Service); ok && g.ruled(c, k.Scope, s.Value.Host) {
			if rule := g.rules.For(c, rule.Client{Namespace: s.Value.Namespace}, s.Value); rule != nil && rule.Spec.TrafficPolicy != nil {
				in.RulePath = rule.Path("destination-rule")
				policy := cluster.PolicyFor(rule.Spec, "", targets[0].Number)
				in.Pool, in.Budget = policy.GetConnectionPool(), policy.GetRetryBudget()
			}
		}
	}
	in.Pool = cmp.Or(g.ingress.Pool(c, k.Ingress, in.Port), in.Pool, g.mesh.Clusters(c).Baseline.GetConnectionPool())
}

// ruled reports whether rules for a host count for who receives what is sent there; in is empty
// where no Sidecar narrows what it sees.
func (g *graph) ruled(c *incr.Ctx, in scope.Scope, h string) bool {
	if in == (scope.Scope{}) {
		return true
	}
	_, imported := g.scopes.Visible.Get(c, scope.Host{Scope: in, Host: h})
	return imported
}

// defaultEndpoint is where the workload serves a port: a Unix socket, or the address. In the place
// of the unspecified address stands the proxy's of its family, or without one that of the host
// itself. Empty: where the client wanted to go.
func defaultEndpoint(s string, k inboundClusterKey) string {
	if s == "" || strings.HasPrefix(s, hosts.Unix) {
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
		address = anyOf(k.Ingress, ip)
	case err == nil && ip.IsLoopback():
		address = loopbackOf(k.Families, ip)
	}
	return net.JoinHostPort(address, port)
}

// anyOf is a proxy's address of the family of an unspecified one, or the family's loopback address where it has none.
func anyOf(k ingress.Key, ip netip.Addr) string {
	family := config.FamiliesOf([]string{ip.String()}, false)
	for _, a := range []string{k.Address, k.Other} {
		if a != "" && family.Reach(a) {
			return a
		}
	}
	return family.Loopback()[0]
}

// loopbackOf is the loopback address of the families; of both, the one that was meant.
func loopbackOf(f config.Families, meant netip.Addr) string {
	list := f.Loopback()
	if slices.Contains(list, meant.String()) {
		return meant.String()
	}
	return list[0]
}
