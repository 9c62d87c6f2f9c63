package simulator

import (
	"maps"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// balance spreads a cluster's requests over its endpoints: over priorities by their health, within
// one over localities by their weights if the cluster says so, within these over endpoints by
// theirs.
//
// https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/load_balancing/load_balancing
func (w *walk) balance(c *clusterv3.Cluster, a *endpointv3.ClusterLoadAssignment, want *corev3.Metadata) (list []Endpoint, fault string) {
	levels := levelsOf(a)
	if len(levels) == 0 {
		return nil, noEndpoints
	}
	if narrow(c, levels, want); levels.count() == 0 {
		return nil, noSubset
	}
	over := float64(a.GetPolicy().GetOverprovisioningFactor().GetValue())
	if over == 0 {
		over = 140
	}
	loads, panics := levels.loads(over), false
	if loads == nil {
		if threshold := c.GetCommonLbConfig().GetHealthyPanicThreshold(); threshold != nil && threshold.Value == 0 {
			return nil, noHealthy
		}
		w.assume("all endpoints of %s are tried, for none is healthy", c.Name)
		loads, panics = make([]float64, len(levels)), true
		loads[0] = 100
	}
	for i, l := range levels {
		list = append(list, w.spread(c, l, loads[i], over, panics)...)
	}
	return list, ""
}

// place is a locality of a priority with its endpoints.
type place struct {
	name     string
	weight   float64
	priority uint32
	hosts    []*endpointv3.LbEndpoint
}

// level is what has one priority.
type level []*place

type levels []level

func levelsOf(a *endpointv3.ClusterLoadAssignment) (all levels) {
	by := map[uint32]level{}
	for _, l := range a.GetEndpoints() {
		if len(l.LbEndpoints) > 0 {
			p := &place{localityName(l.Locality), float64(l.GetLoadBalancingWeight().GetValue()), l.Priority, slices.Clone(l.LbEndpoints)}
			by[l.Priority] = append(by[l.Priority], p)
		}
	}
	for _, priority := range slices.Sorted(maps.Keys(by)) {
		all = append(all, by[priority])
	}
	return all
}

func localityName(l *corev3.Locality) string {
	return strings.TrimRight(l.GetRegion()+"/"+l.GetZone()+"/"+l.GetSubZone(), "/")
}

func (l levels) count() (n int) {
	for _, level := range l {
		for _, p := range level {
			n += len(p.hosts)
		}
	}
	return n
}

// loads are the shares of priorities, in percent: each takes as much as its healthy endpoints can,
// and leaves the rest to the next. nil: none is healthy.
//
// https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/load_balancing/priority
func (l levels) loads(over float64) []float64 {
	loads, health, total := make([]float64, len(l)), make([]float64, len(l)), 0.0
	for i, level := range l {
		health[i] = min(100, over*level.healthy())
		total += health[i]
	}
	if total == 0 {
		return nil
	}
	left := 100.0
	for i := range l {
		loads[i] = min(left, health[i]*100/min(100, total))
		left -= loads[i]
	}
	return loads
}

// healthy is the part of endpoints that are.
func (l level) healthy() float64 {
	good, all := 0, 0
	for _, p := range l {
		good += len(p.healthy())
		all += len(p.hosts)
	}
	if all == 0 {
		return 0
	}
	return float64(good) / float64(all)
}

func (p *place) healthy() []*endpointv3.LbEndpoint {
	return slices.DeleteFunc(slices.Clone(p.hosts), func(e *endpointv3.LbEndpoint) bool {
		switch e.HealthStatus {
		case corev3.HealthStatus_UNHEALTHY, corev3.HealthStatus_DRAINING, corev3.HealthStatus_TIMEOUT:
			return true
		}
		return false
	})
}

// spread shares a priority's load.
func (w *walk) spread(c *clusterv3.Cluster, l level, load, over float64, panics bool) (list []Endpoint) {
	if load == 0 {
		return nil
	}
	weigh := weighsLocalities(c)
	weights, sum := make([]float64, len(l)), 0.0
	for i, p := range l {
		hosts := p.taken(panics)
		if weigh {
			weights[i] = p.weight * min(1, over/100*float64(len(hosts))/float64(max(1, len(p.hosts))))
		} else {
			weights[i] = weightOf(hosts)
		}
		sum += weights[i]
	}
	for i, p := range l {
		hosts := p.taken(panics)
		whole := weightOf(hosts)
		for _, h := range hosts {
			e := w.endpoint(c, addressOf(h), h)
			e.Locality, e.Priority = p.name, p.priority
			e.Percent = load * part(weights[i], sum) * part(hostWeight(h), whole)
			list = append(list, e)
		}
	}
	return list
}

func (p *place) taken(panics bool) []*endpointv3.LbEndpoint {
	if panics {
		return p.hosts
	}
	return p.healthy()
}

func part(n, of float64) float64 {
	if of == 0 {
		return 0
	}
	return n / of
}

func hostWeight(e *endpointv3.LbEndpoint) float64 {
	if e.LoadBalancingWeight == nil {
		return 1
	}
	return float64(e.LoadBalancingWeight.Value)
}

func weightOf(list []*endpointv3.LbEndpoint) (sum float64) {
	for _, e := range list {
		sum += hostWeight(e)
	}
	return sum
}
