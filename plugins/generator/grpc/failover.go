package grpc

import (
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// failsOver reports whether a rule lets clients go to the next locality when one fails: it looks
// for outliers somewhere, as Istio asks.
func failsOver(r resource[*networking.DestinationRule]) bool {
	watches := func(t *networking.TrafficPolicy) bool {
		return t.GetOutlierDetection() != nil || slices.ContainsFunc(t.GetPortLevelSettings(), func(l *networking.TrafficPolicy_PortTrafficPolicy) bool {
			return l.OutlierDetection != nil
		})
	}
	return watches(r.spec.TrafficPolicy) || slices.ContainsFunc(r.spec.Subsets, func(s *networking.Subset) bool { return watches(s.TrafficPolicy) })
}

// failover is the setting by which localities come one after the other; nil where they don't.
// https://istio.io/latest/docs/tasks/traffic-management/locality-load-balancing/failover/
func (c *catalog) failover(policies []*networking.TrafficPolicy) *networking.LocalityLoadBalancerSetting {
	watches := func(t *networking.TrafficPolicy) bool { return t.GetOutlierDetection() != nil }
	if !slices.ContainsFunc(policies, watches) {
		return nil
	}
	setting := c.mesh.GetLocalityLbSetting()
	for _, t := range policies {
		if s := t.GetLoadBalancer().GetLocalityLbSetting(); s != nil {
			setting = s
			break
		}
	}
	switch {
	case setting == nil:
		return &networking.LocalityLoadBalancerSetting{}
	case setting.Enabled != nil && !setting.Enabled.Value, len(setting.Distribute) > 0, len(setting.FailoverPriority) > 0:
		return nil
	}
	return setting
}

// prioritize gives places their turn: the client's own, its zone, its region, the region that takes
// over for it, the others. gRPC wants priorities without a gap, from 0 (A27).
func prioritize(a *endpointv3.ClusterLoadAssignment, client string, setting *networking.LocalityLoadBalancerSetting) {
	if client == "" {
		return
	}
	used := map[uint32]bool{}
	for _, place := range a.Endpoints {
		place.Priority = distance(locality(client), place.Locality, setting)
		used[place.Priority] = true
	}
	for _, place := range a.Endpoints {
		turn := uint32(0)
		for n := range place.Priority {
			if used[n] {
				turn++
			}
		}
		place.Priority = turn
	}
}

func distance(from, to *corev3.Locality, setting *networking.LocalityLoadBalancerSetting) uint32 {
	const own, zone, region, next, far = 0, 1, 2, 3, 4
	switch {
	case from.Region == to.Region && from.Zone == to.Zone && from.SubZone == to.SubZone:
		return own
	case from.Region == to.Region && from.Zone == to.Zone:
		return zone
	case from.Region == to.Region:
		return region
	}
	for _, f := range setting.GetFailover() {
		if strings.EqualFold(f.From, from.Region) && f.To != to.Region {
			return far
		}
	}
	return next
}
