package grpc

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// policies are what destination rules say of a cluster, the nearest first: of the subset's port,
// the subset, the port, the service. selected are the labels that the subset's endpoints have. ok
// is false where the cluster is of a subset that no rule has.
func (c *catalog) policies(v view, at subset, p *pb.Port) (policies []*networking.TrafficPolicy, selected map[string]string, ok bool) {
	rule := c.rule(v, at.host)
	if at.subset != "" {
		s := subsetIn(rule, at.subset)
		if s == nil {
			return nil, nil, false
		}
		selected = s.Labels
		policies = append(policies, levels(s.TrafficPolicy, p)...)
	}
	return append(policies, levels(rule.GetTrafficPolicy(), p)...), selected, true
}

// levels are a policy's words for a port, then those for all. What is said for a port takes the
// place of all that is said for the others.
func levels(t *networking.TrafficPolicy, p *pb.Port) []*networking.TrafficPolicy {
	if t == nil {
		return nil
	}
	for _, l := range t.PortLevelSettings {
		if l.GetPort().GetNumber() == p.Number {
			return []*networking.TrafficPolicy{
				{Tls: l.Tls, ConnectionPool: l.ConnectionPool, LoadBalancer: l.LoadBalancer, OutlierDetection: l.OutlierDetection},
			}
		}
	}
	return []*networking.TrafficPolicy{t}
}

func subsetIn(rule *networking.DestinationRule, name string) *networking.Subset {
	for _, s := range rule.GetSubsets() {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// rule is the destination rule that a client sees for a host: its own namespace's before others',
// the closest, the oldest of these.
func (c *catalog) rule(v view, host string) *networking.DestinationRule {
	var found *networking.DestinationRule
	best, own := "", false
	for _, r := range c.rules {
		of := istio.Resolve(r.spec.Host, r.namespace, c.domain)
		mine := r.namespace == v.Namespace
		switch {
		case !istio.Covers(of, host) || len(r.spec.GetWorkloadSelector().GetMatchLabels()) > 0:
		case !v.sees(r.spec.ExportTo, c.mesh.DefaultDestinationRuleExportTo, r.namespace):
		case found == nil, mine && !own, mine == own && istio.MoreSpecific(of, best) < 0:
			found, best, own = r.spec, of, mine
		}
	}
	return found
}
