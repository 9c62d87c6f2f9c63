package endpoint

import (
	"math"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// apply gives localities their weights and priorities. of tells whose an endpoint is.
func (b *Balance) apply(a *endpointv3.ClusterLoadAssignment, of map[*endpointv3.LbEndpoint]*Endpoint) {
	if b.Shares != "" {
		distribute(a.Endpoints, splitShares(b.Shares))
		return
	}
	if b.Priorities != "" {
		a.Endpoints = byLabels(a.Endpoints, splitLabels(b.Priorities), of)
		closeGaps(a.Endpoints)
	}
	if b.Near {
		b.nearFirst(a.Endpoints)
		closeGaps(a.Endpoints)
	}
}

// distribute shares out the weights of areas among their localities, and empties localities that
// are in none.
func distribute(list []*endpointv3.LocalityLbEndpoints, shares []share) {
	left := slices.Clone(list)
	for _, s := range shares {
		var in []*endpointv3.LocalityLbEndpoints
		left = slices.DeleteFunc(left, func(l *endpointv3.LocalityLbEndpoints) bool {
			if !within(placeOf(l.Locality), s.area) {
				return false
			}
			in = append(in, l)
			return true
		})
		spread(in, s.weight)
	}
	for _, l := range left {
		l.LbEndpoints = nil
	}
}

// spread shares a weight out among localities, by the weights that they have.
func spread(list []*endpointv3.LocalityLbEndpoints, weight uint32) {
	var sum uint64
	for _, l := range list {
		sum += weightIn(l)
	}
	for _, l := range list {
		if w := float64(weightIn(l)*uint64(weight)) / float64(sum); w > 0 {
			l.LoadBalancingWeight = wrapperspb.UInt32(uint32(math.Ceil(w)))
		}
	}
}

func weightIn(l *endpointv3.LocalityLbEndpoints) uint64 {
	if l.LoadBalancingWeight == nil {
		return 1
	}
	return uint64(l.LoadBalancingWeight.Value)
}

// byLabels splits localities by how many of the labels, in order, their endpoints have as wanted.
func byLabels(list []*endpointv3.LocalityLbEndpoints, labels []labelValue, of map[*endpointv3.LbEndpoint]*Endpoint) []*endpointv3.LocalityLbEndpoints {
	var out []*endpointv3.LocalityLbEndpoints
	for _, l := range list {
		levels := map[int][]*endpointv3.LbEndpoint{}
		for _, e := range l.LbEndpoints {
			p := rank(of[e], labels)
			levels[p] = append(levels[p], e)
		}
		for p := range 2*len(labels) + 1 {
			if members := levels[p]; len(members) > 0 {
				out = append(out, &endpointv3.LocalityLbEndpoints{
					Locality: l.Locality, LbEndpoints: members, Priority: uint32(p),
					LoadBalancingWeight: wrapperspb.UInt32(weightOf(members)),
				})
			}
		}
	}
	return out
}

// rank is how far an endpoint is from having all labels as wanted, 0 where it has. The network,
// where it comes first, is preferred and not required: endpoints of others come behind all of its
// own, in the order that the other labels give.
func rank(e *Endpoint, labels []labelValue) int {
	if len(labels) < 2 || labels[0].label != networkLabel {
		return misses(e, labels)
	}
	out := misses(e, labels[1:])
	if v, _ := e.label(networkLabel); v != labels[0].value {
		out += len(labels)
	}
	return out
}

// misses is how many labels are left when an endpoint first lacks one; 0 where it has all.
func misses(e *Endpoint, labels []labelValue) int {
	for i, l := range labels {
		if v, _ := e.label(l.label); v != l.value {
			return len(labels) - i
		}
	}
	return 0
}

// steps from the client's own place: the subzone, the zone, the region, elsewhere, and where it is
// not to go.
const steps = 5

// nearFirst orders by distance within the priorities that there are.
func (b *Balance) nearFirst(list []*endpointv3.LocalityLbEndpoints) {
	from := Locality(b.From)
	for _, l := range list {
		p := distance(from, l.Locality)
		if b.Regions && p < steps-2 {
			p = 0
		}
		if p == steps-2 && b.Redirected && l.GetLocality().GetRegion() != b.To {
			p = steps - 1
		}
		l.Priority = l.Priority*steps + uint32(p)
	}
}

func distance(from, to *core.Locality) int {
	switch {
	case from.GetRegion() != to.GetRegion():
		return steps - 2
	case from.GetZone() != to.GetZone():
		return 2
	case from.GetSubZone() != to.GetSubZone():
		return 1
	}
	return 0
}

// closeGaps numbers priorities from 0 without gaps, as Envoy wants them.
func closeGaps(list []*endpointv3.LocalityLbEndpoints) {
	var used []uint32
	for _, l := range list {
		used = append(used, l.Priority)
	}
	slices.Sort(used)
	used = slices.Compact(used)
	for _, l := range list {
		i, _ := slices.BinarySearch(used, l.Priority)
		l.Priority = uint32(i)
	}
}

func placeOf(l *core.Locality) string {
	return l.GetRegion() + "/" + l.GetZone() + "/" + l.GetSubZone()
}
