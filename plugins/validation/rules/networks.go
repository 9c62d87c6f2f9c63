package rules

import (
	"net/netip"

	mesh "istio.io/api/mesh/v1alpha1"
)

func (c *checker) meshNetworks(m *mesh.MeshNetworks) {
	for _, name := range sorted(m.Networks) {
		here := path("networks").key(name)
		if name == "" {
			c.fail(badNetwork, here, "a network's name must not be empty")
		}
		for i, e := range m.Networks[name].GetEndpoints() {
			c.networkEndpoints(here.field("endpoints").index(i), e)
		}
		for i, g := range m.Networks[name].GetGateways() {
			c.networkGateway(here.field("gateways").index(i), g)
		}
	}
}

func (c *checker) networkEndpoints(at path, e *mesh.Network_NetworkEndpoints) {
	switch of := e.GetNe().(type) {
	case *mesh.Network_NetworkEndpoints_FromCidr:
		if _, err := netip.ParsePrefix(of.FromCidr); err != nil {
			c.fail(badAddress, at.field("fromCidr"), "%s is not a valid CIDR", quote(of.FromCidr)).hint("write such as 10.0.0.0/8")
		}
	case *mesh.Network_NetworkEndpoints_FromRegistry:
		if !isLabel(of.FromRegistry) {
			c.fail(badNetwork, at.field("fromRegistry"), "invalid registry name: %s", quote(of.FromRegistry)).hint(
				"it is a cluster's id: letters, digits and '-'",
			)
		}
	default:
		c.fail(badNetwork, at, "one of fromCidr and fromRegistry must be set")
	}
}

func (c *checker) networkGateway(at path, g *mesh.Network_IstioNetworkGateway) {
	switch by := g.GetGw().(type) {
	case *mesh.Network_IstioNetworkGateway_RegistryServiceName:
		c.fqdn(at.field("registryServiceName"), by.RegistryServiceName)
	case *mesh.Network_IstioNetworkGateway_Address:
		c.nameOrIP(at.field("address"), by.Address)
	default:
		c.fail(badNetwork, at, "one of registryServiceName and address must be set")
	}
	c.port(at.field("port"), g.GetPort())
}
