package envoyfilter

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"
)

// Set is the patches that count for proxies, by what they are applied to, in their order. Its zero
// value changes nothing.
type Set struct {
	all []*Patch
	by  map[networking.EnvoyFilter_ApplyTo][]*Patch
}

// NewSet makes a set of patches in the order in which they apply.
func NewSet(patches []*Patch) *Set {
	s := &Set{all: patches, by: map[networking.EnvoyFilter_ApplyTo][]*Patch{}}
	for _, p := range patches {
		s.by[p.applyTo] = append(s.by[p.applyTo], p)
	}
	return s
}

// Equal reports whether both hold the same patches.
func (s *Set) Equal(o *Set) bool { return slices.Equal(s.all, o.all) }

// of are the patches to something on a side.
func (s *Set) of(to networking.EnvoyFilter_ApplyTo, c Context, matches func(*Patch) bool) []*Patch {
	var out []*Patch
	for _, p := range s.by[to] {
		if p.in(c) && matches(p) {
			out = append(out, p)
		}
	}
	return out
}
