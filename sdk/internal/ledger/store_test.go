package ledger

import "testing"

// TestFreed: once the core has let a body go, no number of it may be given out, even where an entry
// names it that the core dropped with what it wanted. Such an entry's body is kept as long as the
// entry, for the core may ask for it.
func TestFreed(t *testing.T) {
	l := New()
	view := Place{Number: 1}
	id, fresh := l.Number(Body{bytes: []byte("x")})
	if !fresh {
		t.Fatal("the first is not new")
	}
	l.Set(view, "t", "dropped", id)
	l.Freed([]uint64{id})
	again, fresh := l.Number(Body{bytes: []byte("x")})
	if !fresh || again == id {
		t.Errorf("number %d again for what the core let go as %d", again, id)
	}
	if l.bodies[id] == nil {
		t.Error("it can't be sent to a core that asks for it")
	}
	l.Set(view, "t", "dropped", again)
	if l.bodies[id] != nil {
		t.Error("it is kept, though nothing names it")
	}
	l.Remove(view, "t", "dropped")
	l.Freed([]uint64{again, id})
	if len(l.bodies)+len(l.byHash) > 0 {
		t.Errorf("left: %v, %v", l.bodies, l.byHash)
	}
}
