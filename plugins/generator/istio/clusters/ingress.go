package clusters

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
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/rule"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// ingressClusters are those behind the ports that a Sidecar names.
func (x *inbound) ingressClusters(c *incr.Ctx, k InboundKey) []sdk.Resource {
	var out []sdk.Resource
	for _, l := range x.from.Ingress.Spec(c, k.Ingress.Sidecar).GetIngress() {
		number := l.GetPort().GetNumber()
		in := cluster.Inbound{
			Port:     number,
			Protocol: config.ParseProtocol(l.GetPort().GetProtocol()),
			Endpoint: defaultEndpoint(l.DefaultEndpoint, k),
			Services: x.servicesBehind(c, k.Targets, number),
		}
		x.limit(c, &in, k, slices.DeleteFunc(workload.DecodeTargets(k.Targets), func(t workload.Target) bool { return t.Target != number }))
		in.Stat = x.ingressStat(c, k, l)
		out = append(out, sdk.Resource{Name: cluster.InboundName(number), Body: x.buildBehind(c, in, k)})
	}
	return out
}

// ingressStat names the cluster behind a port that a Sidecar names in statistics: by the service
// that names the port too, or else by the Sidecar. Empty: Istio's name.
func (x *inbound) ingressStat(c *incr.Ctx, k InboundKey, l *networking.IstioIngressListener) string {
	pattern := x.from.Mesh.Clusters(c).InboundStat
	if pattern == "" {
		return ""
	}
	sidecar := x.from.Ingress.Sidecar(c, k.Ingress.Sidecar)
	number := l.GetPort().GetNumber()
	of := cluster.StatOf{Host: sidecar.Name + "." + k.Ingress.Namespace, Name: sidecar.Name}
	of.Short = of.Host
	for _, s := range x.servicesBehind(c, k.Targets, number) {
		of.Host, of.Short, of.Name = s.Host, s.Host, s.Name
	}
	of.Port, of.PortName, of.Target = number, l.GetPort().GetName(), number
	return cluster.StatName(pattern, of)
}

// servicesBehind are the services that name a port of the workload; the first alone counts.
func (x *inbound) servicesBehind(c *incr.Ctx, targets string, port uint32) []cluster.Service {
	for _, t := range workload.DecodeTargets(targets) {
		if s, ok := x.from.Targets.Service(c, t.Service); ok && t.Target == port {
			return []cluster.Service{serviceNamed(s.Value)}
		}
	}
	return nil
}

// limit sets what is said of connections to a port of the workload: by the Sidecar, and otherwise
// by the rule for the first of the services that name it (targets), so that a server takes what its
// clients may send. A rule counts for who imports its host.
func (x *inbound) limit(c *incr.Ctx, in *cluster.Inbound, k InboundKey, targets []workload.Target) {
	if len(targets) > 0 {
		if s, ok := x.from.Targets.Service(c, targets[0].Service); ok && x.ruled(c, k.Scope, s.Value.Host) {
			if rule := x.from.Rules.For(c, rule.Client{Namespace: s.Value.Namespace}, s.Value); rule != nil && rule.Spec.TrafficPolicy != nil {
				in.RulePath = rule.Path("destination-rule")
				policy := cluster.PolicyFor(rule.Spec, "", targets[0].Number)
				in.Pool, in.Budget = policy.GetConnectionPool(), policy.GetRetryBudget()
			}
		}
	}
	in.Pool = cmp.Or(x.from.Ingress.Pool(c, k.Ingress, in.Port), in.Pool, x.from.Mesh.Clusters(c).Baseline.GetConnectionPool())
}

// ruled reports whether rules for a host count for who receives what is sent there; in is empty
// where no Sidecar narrows what it sees.
func (x *inbound) ruled(c *incr.Ctx, in scope.Scope, h string) bool {
	if in == (scope.Scope{}) {
		return true
	}
	_, imported := x.from.Scopes.Visible.Get(c, scope.Host{Scope: in, Host: h})
	return imported
}

// defaultEndpoint is where the workload serves a port: a Unix socket, or the address. In the place
// of the unspecified address stands the proxy's of its family, or without one that of the host
// itself. Empty: where the client wanted to go.
func defaultEndpoint(s string, k InboundKey) string {
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

// anyOf is a proxy's address of the family of an unspecified one, or the family's loopback address
// where it has none.
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
