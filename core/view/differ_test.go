package view

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDiffer: sets that follow each other, and sets that don't, differ in the same names.
func TestDiffer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var bodies []*Body
	for i := range 50 {
		bodies = append(bodies, NewBody("t", fmt.Sprint("n", i), []byte("0"), 0))
	}
	old := NewSet(bodies)
	for range 300 {
		now := old
		for range r.IntN(4) {
			name := fmt.Sprint("n", r.IntN(60))
			switch r.IntN(3) {
			case 0:
				now = now.With(nil, []string{name})
			case 1:
				now = now.With([]*Body{Absent(name)}, nil)
			default:
				now = now.With([]*Body{NewBody("t", name, []byte(fmt.Sprint(r.IntN(3))), 0)}, nil)
			}
		}
		apart := NewSet(append([]*Body(nil), now.Bodies()...)) // of no lineage
		if by, all := differences(old, now), differences(old, apart); !cmp.Equal(by, all) {
			t.Fatal(cmp.Diff(by, all))
		}
		old = now
	}
	if got := differences(nil, NewSet([]*Body{Absent("a")})); !cmp.Equal(got, []string{"a - absent"}) {
		t.Error(got)
	}
}

func differences(old, now *Set) (out []string) {
	word := func(b *Body) string {
		switch {
		case b == nil:
			return "-"
		case !b.Exists():
			return "absent"
		}
		return b.Version()
	}
	Differ(old, now, func(name string, a, b *Body) { out = append(out, name+" "+word(a)+" "+word(b)) })
	return out
}
