package xds

import (
	"slices"
	"testing"
)

// TestIntersect: what two subscriptions have in common is a name that both want; a wildcard wants
// all.
func TestIntersect(t *testing.T) {
	subs := newSubscriptions()
	for _, c := range []struct {
		a, b           []string
		wildA, wildB   bool
		want           []string
		wildcard, none bool
	}{
		{a: []string{"a", "b", "d"}, b: []string{"b", "c", "d"}, want: []string{"b", "d"}},
		{a: []string{"a"}, b: []string{"b"}, none: true},
		{a: []string{"a", "b"}, wildB: true, want: []string{"a", "b"}},
		{wildA: true, b: []string{"a", "b"}, want: []string{"a", "b"}},
		{wildA: true, wildB: true, wildcard: true},
		{a: []string{"a"}, wildA: true, b: []string{"b"}, wildB: true, want: []string{"a", "b"}, wildcard: true},
	} {
		got := subs.intersect(subs.get(c.wildA, c.a), subs.get(c.wildB, c.b))
		if c.none {
			if got != nil {
				t.Errorf("%v: %v", c, got)
			}
			continue
		}
		if got == nil || got.wildcard != c.wildcard || !slices.Equal(got.names, c.want) {
			t.Errorf("%v: %+v", c, got)
		}
	}
}
