package config

import (
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"
)

// Exports are the namespaces that a rule is for, sorted; none: the mesh's default. One that selects
// workloads is its own namespace's.
func (r *DestinationRule) Exports() []string {
	if r.Spec.GetWorkloadSelector() != nil {
		return []string{"."}
	}
	return slices.Compact(slices.Sorted(slices.Values(r.Spec.GetExportTo())))
}

// Local reports whether the rule counts for clients of its own namespace.
func (r *DestinationRule) Local() bool {
	list := r.Exports()
	return len(list) == 0 || slices.ContainsFunc(list, func(e string) bool { return e == "*" || e == "." || e == r.Namespace })
}

// Private reports whether the rule counts for them alone; defaults are the mesh's exportTo.
func (r *DestinationRule) Private(defaults []string) bool {
	list := r.Exports()
	if len(list) == 0 {
		return slices.Contains(defaults, ".")
	}
	return len(list) == 1 && (list[0] == "." || list[0] == r.Namespace)
}

// GroupRules groups rules for one host, the oldest first, into those that count as one: a rule
// joins those before it that are exported alike and select the same workloads. What was derived of
// policies joins each group, whichever is older, and stands before them, for clients of none.
func GroupRules(list []*DestinationRule) [][]*DestinationRule {
	var groups [][]*DestinationRule
	policies, others := split(list)
	for _, r := range others {
		apart := true
		for i, g := range groups {
			joins, alone := r.meets(g[0])
			if joins {
				groups[i] = append(g, r)
			}
			apart = alone
		}
		if apart {
			groups = append(groups, []*DestinationRule{r})
		}
	}
	if len(policies) == 0 {
		return groups
	}
	for i, g := range groups {
		groups[i] = append(slices.Clip(g), policies...)
	}
	return append([][]*DestinationRule{policies}, groups...)
}

// split tells what was derived of policies from the other rules.
func split(list []*DestinationRule) (policies, others []*DestinationRule) {
	for _, r := range list {
		if r.Policy {
			policies = append(policies, r)
		} else {
			others = append(others, r)
		}
	}
	return policies, others
}

// meets reports whether the rule joins another's group, and whether it stands alone too. istiod
// asks each group in turn, and the last answer counts.
func (r *DestinationRule) meets(o *DestinationRule) (joins, alone bool) {
	own, others := r.Exports(), o.Exports()
	alike := slices.Equal(own, others)
	wider := len(others) > 0 && !slices.ContainsFunc(others, func(e string) bool { return !slices.Contains(own, e) })
	if !alike && !wider {
		return false, true
	}
	a, b := r.Spec.GetWorkloadSelector(), o.Spec.GetWorkloadSelector()
	switch {
	case a == nil && b == nil:
		return true, false
	case a == nil || b == nil:
		return true, !alike
	case maps.Equal(a.MatchLabels, b.MatchLabels):
		return true, false
	}
	return false, true
}

// MergeRules makes one rule of a group: the first, with the subsets that it lacks, and the first
// policy that there is. What was derived of policies for the host fills in what that leaves open,
// and gives it its name, by which metadata know it: istiod takes it for the oldest.
func MergeRules(list []*DestinationRule) *DestinationRule {
	if len(list) == 1 {
		return list[0]
	}
	first := list[0]
	spec := &networking.DestinationRule{
		Host:             first.Spec.Host,
		TrafficPolicy:    first.Spec.TrafficPolicy,
		Subsets:          slices.Clone(first.Spec.Subsets),
		ExportTo:         first.Spec.ExportTo,
		WorkloadSelector: first.Spec.WorkloadSelector,
	}
	out := &DestinationRule{Meta: first.Meta, Host: first.Host, Spec: spec}
	for _, r := range list[1:] {
		if r.Policy && !first.Policy {
			fill(spec, r.Spec.TrafficPolicy)
			out.Name = r.Name
			continue
		}
		if spec.TrafficPolicy == nil {
			spec.TrafficPolicy = r.Spec.TrafficPolicy
		}
		spec.Subsets = appendSubsets(spec.Subsets, r.Spec.Subsets)
	}
	return out
}

// appendSubsets appends those that have new names. istiod compares with the rule as it was before,
// so that a rule's own duplicates stay.
func appendSubsets(have, more []*networking.Subset) []*networking.Subset {
	out := have
	for _, s := range more {
		if !slices.ContainsFunc(have, func(h *networking.Subset) bool { return h.Name == s.Name }) {
			out = append(out, s)
		}
	}
	return out
}
