package consul

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// member is an instance at one of its ports, as the mesh knows it: all but the service's port, which depends on the
// others.
type member struct {
	// of is the instance's id.
	of       string
	port     served
	endpoint sdk.Endpoint
	external bool
}

// members makes an instance's members. lost is called with a reason for each thing that can't be mapped.
func (c *Config) members(e *entry, lost func(reason, string)) (all []member) {
	if k := e.Service.Kind; k != "" && k != "typical" {
		lost(lostKind, e.id())
		return nil
	}
	address, override := c.address(e)
	if !hosts.IsIP(address) && !hosts.ValidName(address, false) {
		lost(lostAddress, e.id())
		return nil
	}
	labels := labels(e, lost)
	health, weight := c.health(e)
	account := e.Service.Meta[c.Meta.ServiceAccount]
	external := e.Service.Meta[c.Meta.External]
	for _, p := range c.ports(e, override, lost) {
		all = append(all, member{of: e.id(), port: p, external: external != "" && external != "false", endpoint: sdk.Endpoint{
			Address: address, Port: p.at, Labels: labels, Locality: c.locality(e, labels), Network: hosts.Network("", labels), Weight: weight,
			ServiceAccount: account, TlsMode: hosts.TLSMode(labels, account), Health: health,
			Cluster: c.Cluster, Workload: e.Service.ID, Node: e.Node.Node,
		}})
	}
	return all
}

// address is where an instance is: its tagged address, its own, or its node's. override is the tagged address's port,
// if it has one.
// Source: Consul, "Health HTTP Endpoint": an empty Service.Address means the node's.
func (c *Config) address(e *entry) (address string, override int) {
	if t, ok := e.Service.TaggedAddresses[c.TaggedAddress]; ok && t.Address != "" {
		return t.Address, t.Port
	}
	if e.Service.Address != "" {
		return e.Service.Address, 0
	}
	if a := e.Node.TaggedAddresses[c.TaggedAddress]; a != "" {
		return a, 0
	}
	return e.Node.Address, 0
}

// health is what an instance's checks say, and its weight by it. One of weight 0 is sent nothing.
func (c *Config) health(e *entry) (health pb.EndpointHealth, weight uint32) {
	status, weight := e.status(), uint32(1)
	if w := e.Service.Weights; w != nil && status == warning {
		weight = uint32(max(w.Warning, 0))
	} else if w != nil {
		weight = uint32(max(w.Passing, 0))
	}
	switch {
	case status == maintenance:
		return pb.EndpointHealthDraining, max(weight, 1)
	case weight == 0 || !slices.Contains(c.Healthy, status):
		return pb.EndpointHealthUnhealthy, max(weight, 1)
	}
	return pb.EndpointHealthHealthy, weight
}

// assemble makes a service and its endpoints of all its members; nil where there are none.
func (c *Config) assemble(name string, all []member, lost func(reason, string)) (*sdk.Service, []*sdk.Endpoint) {
	host := c.host(name)
	if !hosts.ValidName(host, false) {
		lost(lostHost, name)
		return nil, nil
	}
	all = distinct(all, lost)
	if len(all) == 0 {
		return nil, nil
	}
	s := &sdk.Service{
		Host: host, Namespace: c.MeshNamespace, Name: name, Registry: "Consul", Ports: servicePorts(all, lost),
		External: slices.ContainsFunc(all, func(m member) bool { return m.external }),
	}
	if !slices.ContainsFunc(all, func(m member) bool { return hosts.IsIP(m.endpoint.Address) }) {
		s.Resolution = pb.ServiceResolutionDns
	}
	var endpoints []*sdk.Endpoint
	for _, m := range all {
		if s.Resolution == pb.ServiceResolutionStatic && !hosts.IsIP(m.endpoint.Address) {
			lost(lostName, m.endpoint.Address)
			continue
		}
		at := slices.IndexFunc(s.Ports, func(p *sdk.Port) bool { return p.Number == m.port.service })
		if at < 0 {
			continue // counted as a port too many
		}
		e := m.endpoint
		e.Host, e.Namespace, e.PortName, e.ServicePort = host, c.MeshNamespace, s.Ports[at].Name, m.port.service
		endpoints = append(endpoints, &e)
	}
	return s, endpoints
}

// distinct sorts members, and leaves out those that serve the same port at the same address as another one: the
// healthiest stays.
func distinct(all []member, lost func(reason, string)) []member {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b member) int {
		return cmp.Or(strings.Compare(a.endpoint.Address, b.endpoint.Address), cmp.Compare(a.port.service, b.port.service), cmp.Compare(a.port.at, b.port.at),
			cmp.Compare(a.endpoint.Health, b.endpoint.Health), strings.Compare(a.endpoint.Node, b.endpoint.Node), strings.Compare(a.endpoint.Workload, b.endpoint.Workload))
	})
	return slices.CompactFunc(all, func(a, b member) bool {
		same := a.endpoint.Address == b.endpoint.Address && a.port.service == b.port.service && a.port.at == b.port.at
		if same {
			lost(lostSame, a.of) // CompactFunc keeps b
		}
		return same
	})
}
