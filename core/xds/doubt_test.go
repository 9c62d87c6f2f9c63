package xds

import (
	"slices"
	"testing"
)

// TestDoubt: a client that may be in more situations than are kept may be in any, also in that of
// having nothing.
func TestDoubt(t *testing.T) {
	var w watch
	for i := range maxDoubtful {
		s := situation{subscription: &subscription{wildcard: i > 0}}
		w.doubt(s)
		w.doubt(s)
		if len(w.doubtful) != i+1 || slices.Contains(w.doubtful, situation{}) {
			t.Fatalf("%d situations after %d", len(w.doubtful), i+1)
		}
	}
	for range 2 {
		w.doubt(situation{subscription: &subscription{}})
		if len(w.doubtful) != maxDoubtful || w.doubtful[0] != (situation{}) {
			t.Errorf("%d situations; that it has nothing is one of them: %t", len(w.doubtful), w.doubtful[0] == situation{})
		}
	}
}
