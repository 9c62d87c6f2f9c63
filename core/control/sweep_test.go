package control

import "testing"

// TestLetGo: while anything waits that a plugin said before, what it spoke of is kept.
func TestLetGo(t *testing.T) {
	var next op = func() error { return nil }
	for _, s := range []*session{
		{ops: []op{next}}, {overtakenOps: []op{next}}, {ops: []op{next}, overtakenOps: []op{next}},
	} {
		s.spent = []spent{{parts: []uint64{1}}}
		if s.letGo(); len(s.spent) != 1 {
			t.Errorf("with %d and %d steps to come it is let go of", len(s.ops), len(s.overtakenOps))
		}
	}
}
