package consul

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// members makes an instance's members. lost is called with a reason for each thing that can't be
// mapped.
func (c *Config) members(e *entry, lost func(instances.Reason, string)) (all []instances.Member) {
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
		all = append(all, instances.Member{Of: e.id(), Port: p.port, External: external != "" && external != "false", Endpoint: sdk.Endpoint{
			Address: address, Port: p.at, Labels: labels, Locality: c.locality(e, labels), Network: hosts.Network("", labels), Weight: weight,
			ServiceAccount: account, TlsMode: hosts.TLSMode(labels, account), Health: health,
			Cluster: c.Cluster, Workload: e.Service.ID, Node: e.Node.Node,
		}})
	}
	return all
}

// address is where an instance is: its tagged address, its own, or its node's. override is the
// tagged address's port, if it has one. Source: Consul, "Health HTTP Endpoint": an empty
// Service.Address means the node's.
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
