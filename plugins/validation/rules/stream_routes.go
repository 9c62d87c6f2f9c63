package rules

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

func (c *checker) tlsRoute(at path, r *networking.TLSRoute, b binding) {
	if len(r.GetMatch()) == 0 {
		c.fail(badMatch, at, "TLS route must have at least one match condition")
	}
	for i, m := range r.GetMatch() {
		c.tlsMatch(at.field("match").index(i), m, b)
	}
	c.streamDestinations(at.field("route"), "TLS", r.GetRoute())
}

func (c *checker) tlsMatch(at path, m *networking.TLSMatchAttributes, b binding) {
	if len(m.GetSniHosts()) == 0 {
		c.fail(badSNI, at.field("sniHosts"), "TLS match must have at least one SNI host")
	}
	for i, host := range m.GetSniHosts() {
		c.sniHost(at.field("sniHosts").index(i), host, b)
	}
	for i, subnet := range m.GetDestinationSubnets() {
		c.subnet(at.field("destinationSubnets").index(i), subnet)
	}
	if m.GetPort() != 0 {
		c.port(at.field("port"), m.Port)
	}
	c.labels(at.field("sourceLabels"), m.GetSourceLabels())
	c.gatewayNames(at.field("gateways"), m.GetGateways())
}

func (c *checker) sniHost(at path, host string, b binding) {
	switch {
	case isIP(host):
		c.warn(badSNI, at, "using an IP address (%s) as SNI host is not advised: clients send names alone (RFC 6066 3)", host).hint("write the server's name")
		return
	case b.gateways && isClusterSNI(host):
	case !c.host(at, host):
		return
	case isPartial(host):
		c.fail(badSNI, at, "partial wildcard %s not allowed: proxies would refuse the whole listener", quote(host)).hint(
			"a wildcard stands for whole labels: *.example.com",
		)
		return
	}
	for _, of := range b.hosts {
		if covers(of, host) {
			return
		}
	}
	c.fail(badSNI, at, "SNI host %s is not a compatible subset of the virtual service hosts: [%s]", quote(host), strings.Join(b.hosts, ", ")).
		hint("add it to spec.hosts, or choose one that they cover")
}

// covers reports whether each name that b stands for is also one of a's.
func covers(a, b string) bool {
	suffix, wild := strings.CutPrefix(strings.ToLower(a), "*")
	b = strings.ToLower(b)
	if !wild {
		return suffix == b
	}
	return strings.HasSuffix(strings.TrimPrefix(b, "*"), suffix)
}

func (c *checker) tcpRoute(at path, r *networking.TCPRoute) {
	for i, m := range r.GetMatch() {
		here := at.field("match").index(i)
		for j, subnet := range m.GetDestinationSubnets() {
			c.subnet(here.field("destinationSubnets").index(j), subnet)
		}
		if m.GetSourceSubnet() != "" {
			c.subnet(here.field("sourceSubnet"), m.SourceSubnet)
			c.obsolete(here.field("sourceSubnet"), "it says nothing, as in istiod: connections from all addresses match; write sourceLabels or sourceNamespace")
		}
		if m.GetPort() != 0 {
			c.port(here.field("port"), m.Port)
		}
		c.labels(here.field("sourceLabels"), m.GetSourceLabels())
		c.gatewayNames(here.field("gateways"), m.GetGateways())
	}
	c.streamDestinations(at.field("route"), "TCP", r.GetRoute())
}

func (c *checker) streamDestinations(at path, kind string, list []*networking.RouteDestination) {
	if len(list) == 0 {
		c.fail(badAction, at, "%s route is required", kind)
	}
	weights := make([]int32, 0, len(list))
	for i, d := range list {
		c.destination(at.index(i).field("destination"), d.GetDestination())
		weights = append(weights, d.GetWeight())
	}
	c.weights(at, weights)
}
