package view

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever was put in and taken out, the names that Between yields are among those that were, and
// none that differs is missing; and Each says the same as Get.
func TestBetweenKnowsWhatWasChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	name := func() string { return fmt.Sprintf("n%03d", r.IntN(400)) }
	short := 0
	for range 100 {
		sets := []*Set{nil}
		for step := range 3 * maxSteps {
			from := sets[max(0, len(sets)-1-r.IntN(3))]
			ups, removes := map[string]*Body{}, []string{}
			for range r.IntN(4) + 300*b2i(step == 0) {
				n := name()
				ups[n] = Absent(n)
			}
			for range r.IntN(3) {
				removes = append(removes, name())
			}
			sets = append(sets, from.With(slices.Collect(maps.Values(ups)), removes))
		}
		now := sets[len(sets)-1]
		for _, old := range sets {
			if _, known := now.since(old); known {
				short++
			}
			got := map[string]bool{}
			for n := range Between(NewSnapshot(old, nil, true), NewSnapshot(now, nil, true)) {
				got[n] = true
			}
			for n := range differing(old.Bodies(), now.Bodies()) {
				if !got[n] {
					t.Fatalf("%s differs, and is not among %d", n, len(got))
				}
			}
		}
		var names []string
		for range 50 {
			names = append(names, name())
		}
		slices.Sort(names)
		asked := 0
		for n, b := range NewSnapshot(now, nil, true).Each(names) {
			if asked++; b != now.Get(n) {
				t.Errorf("%s is %v, not %v", n, b, now.Get(n))
			}
		}
		if asked != len(names) {
			t.Errorf("%d of %d names were yielded", asked, len(names))
		}
	}
	if short < 1000 {
		t.Errorf("what was changed was known %d times", short)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
