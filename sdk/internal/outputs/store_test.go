package outputs

import "testing"

// TestFreed: once the core has let a body go, no number of it may be given out, even where an entry
// names it that the core dropped with what it wanted. Such an entry's body is kept as long as the
// entry, for the core may ask for it.
func TestFreed(t *testing.T) {
	s := New()
	view := Place{Number: 1}
	id, fresh := s.Number(Body{bytes: []byte("x")})
	if !fresh {
		t.Fatal("the first is not new")
	}
	s.Set(view, "t", "dropped", id)
	s.Freed([]uint64{id})
	again, fresh := s.Number(Body{bytes: []byte("x")})
	if !fresh || again == id {
		t.Errorf("number %d again for what the core let go as %d", again, id)
	}
	if s.bodies[id] == nil {
		t.Error("it can't be sent to a core that asks for it")
	}
	s.Set(view, "t", "dropped", again)
	if s.bodies[id] != nil {
		t.Error("it is kept, though nothing names it")
	}
	s.Remove(view, "t", "dropped")
	s.Freed([]uint64{again, id})
	if len(s.bodies)+len(s.byHash) > 0 {
		t.Errorf("left: %v, %v", s.bodies, s.byHash)
	}
}
