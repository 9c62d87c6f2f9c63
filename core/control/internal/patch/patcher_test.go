package patch

import (
	"slices"
	"testing"
)

func TestGlobs(t *testing.T) {
	for _, tt := range []struct {
		glob, name string
		want       bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"a*", "abc", true}, {"a*c", "abc", true}, {"a*c", "ac", true},
		{"a*c", "ab", false}, {"*b*", "abc", true}, {"*b*", "ac", false}, {"a*bc*d", "abxbcxd", true}, {"ab*ba", "aba", false},
	} {
		if got := matches(tt.glob, tt.name); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.glob, tt.name, got)
		}
	}
}

// TestSweep: a call that is under way is kept, though nothing stands on it yet; a result that
// nothing stands on goes.
func TestSweep(t *testing.T) {
	p, m := New(Settings{Name: "upper"}), NewMade()
	open, over := key{name: "open"}, key{name: "over"}
	p.results[open], p.results[over] = &Result{open: true}, &Result{}
	m.Sweep(slices.Values([]*Patcher{p}), slices.Values([]*Made{}))
	if len(p.results) != 2 {
		t.Error("results went though nothing had changed")
	}
	m.unswept = true
	m.Sweep(slices.Values([]*Patcher{p}), slices.Values([]*Made{}))
	if p.results[open] == nil || p.results[over] != nil {
		t.Errorf("kept: %v", p.results)
	}
}
