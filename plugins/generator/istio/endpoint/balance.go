package endpoint

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// Balance says which localities a client's requests go to. The zero value: all alike, by the
// weights of endpoints.
type Balance struct {
	// Shares of localities, as joinShares writes them; those without a share get nothing.
	Shares string
	// Priorities are labels (of endpoints) and the values that the client wants them to have, as
	// joinLabels writes them.
	Priorities string
	// Near: endpoints near From, the client's own locality, come first. Where Redirected, To is the
	// region to go to from there.
	Near bool
	From string
	// Regions: of localities the regions alone count for that; what is nearer is left to the
	// client.
	Regions    bool
	Redirected bool
	To         string
}

// Place is where a client is.
type Place struct {
	// Locality is REGION/ZONE/SUBZONE.
	Locality string
	Labels   map[string]string
}

// BalanceFor is what a setting means for a client; nil: nothing. failover: endpoints that fail are
// noticed, so that others can come after them.
func BalanceFor(s *networking.LocalityLoadBalancerSetting, from Place, failover bool) Balance {
	switch {
	case s == nil:
		return Balance{}
	case len(s.Distribute) > 0:
		return Balance{Shares: joinShares(sharesFrom(s.Distribute, from.Locality))}
	case !failover:
		return Balance{}
	}
	out := Balance{Priorities: joinLabels(wanted(s.FailoverPriority, from.Labels))}
	if len(s.FailoverPriority) == 0 || len(s.Failover) > 0 {
		out.Near, out.From = true, from.Locality
		region, _, _ := strings.Cut(from.Locality, "/")
		if i := slices.IndexFunc(s.Failover, func(f *networking.LocalityLoadBalancerSetting_Failover) bool { return f.From == region }); i >= 0 {
			out.Redirected, out.To = true, s.Failover[i].To
		}
	}
	return out
}

// HeedsZones reports whether a setting leaves it to clients to heed zones.
func HeedsZones(s *networking.ZoneAwareLoadBalancerSetting) bool {
	return s != nil && (s.Enabled == nil || s.Enabled.Value)
}

// BalanceByZone is what a setting means for a client that heeds zones itself: it does so within a
// priority, so that the client's region has one.
func BalanceByZone(s *networking.ZoneAwareLoadBalancerSetting, from Place) Balance {
	out := Balance{Priorities: joinLabels(wanted(s.FailoverPriority, from.Labels)), Near: true, Regions: true, From: from.Locality}
	region, _, _ := strings.Cut(from.Locality, "/")
	if i := slices.IndexFunc(s.Failover, func(f *networking.ZoneAwareLoadBalancerSetting_Failover) bool { return f.From == region }); i >= 0 {
		out.Redirected, out.To = true, s.Failover[i].To
	}
	return out
}

func sharesFrom(list []*networking.LocalityLoadBalancerSetting_Distribute, locality string) map[string]uint32 {
	for _, d := range list {
		if within(locality, d.From) {
			return d.To
		}
	}
	return nil
}

// within reports whether a locality is in an area: REGION/ZONE/SUBZONE, each of which may be `*`,
// and the last ones missing.
func within(locality, area string) bool {
	l, a := Locality(locality), Locality(area)
	return (a.Region == "*" || a.Region == l.Region) &&
		(a.Zone == "*" || a.Zone == "" || a.Zone == l.Zone) &&
		(a.SubZone == "*" || a.SubZone == "" || a.SubZone == l.SubZone)
}

type labelValue struct{ label, value string }

// wanted are the labels that count, each with the value that the setting gives (`label=value`) or
// the client has.
func wanted(priorities []string, labels map[string]string) []labelValue {
	var out []labelValue
	for _, p := range priorities {
		label, value, given := strings.Cut(p, "=")
		if !given {
			value = labels[label]
		}
		out = append(out, labelValue{label, value})
	}
	return out
}

func joinLabels(list []labelValue) string {
	var b strings.Builder
	for _, l := range list {
		b.WriteString(strconv.Quote(l.label) + "=" + strconv.Quote(l.value) + ",")
	}
	return b.String()
}

func splitLabels(s string) []labelValue {
	var out []labelValue
	for s != "" {
		label, rest, ok := unquote(s)
		if !ok || rest == "" {
			return out
		}
		value, rest, ok := unquote(rest[1:])
		if !ok || rest == "" {
			return out
		}
		out, s = append(out, labelValue{label, value}), rest[1:]
	}
	return out
}

type share struct {
	area   string
	weight uint32
}

func joinShares(to map[string]uint32) string {
	var list []labelValue
	for _, area := range slices.Sorted(maps.Keys(to)) {
		list = append(list, labelValue{area, strconv.FormatUint(uint64(to[area]), 10)})
	}
	return joinLabels(list)
}

// splitShares reads shares, the narrowest areas first.
func splitShares(s string) []share {
	var out []share
	for _, l := range splitLabels(s) {
		n, _ := strconv.ParseUint(l.value, 10, 32)
		out = append(out, share{l.label, uint32(n)})
	}
	slices.SortStableFunc(out, func(a, b share) int { return cmp.Compare(stars(a.area), stars(b.area)) })
	return out
}

func stars(area string) int { return strings.Count(area, "*") }
