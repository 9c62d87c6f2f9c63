package control

import (
	"testing"
	"testing/synctest"
)

// TestSweep: a call that is under way is kept, though nothing stands on it yet; a result that nothing stands on goes.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		w.mu.Lock()
		defer w.mu.Unlock()
		p, open, over := w.patchers["upper"], patchKey{name: "open"}, patchKey{name: "over"}
		p.results[open], p.results[over] = &patched{open: true}, &patched{}
		w.sweep()
		if p.results[open] == nil || p.results[over] != nil {
			t.Errorf("kept: %v", p.results)
		}
		delete(p.results, open)
	})
}

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
