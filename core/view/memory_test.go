package view

import (
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// audit compares what is counted with what the bodies use.
func audit(t *testing.T, vs *Views) {
	t.Helper()
	users, sum := map[*memory]int{}, 0
	for _, s := range vs.bodies.sent {
		size := 0
		for _, m := range s.mem {
			if users[m]++; users[m] == 1 {
				sum += m.size
			}
			size += m.size
		}
		own := s.value.size() + s.tail.size()
		if s.fresh != nil {
			own += len(s.middle)
		}
		if s.value == nil && s.body != nil {
			own = len(s.body.fragment)
			if s.body.apart != nil {
				own = s.body.apart.size()
			}
		}
		if own > size {
			t.Fatalf("body %d has %d bytes, and %d are counted", s.id, own, size)
		}
	}
	for m, n := range users {
		if m.users != n {
			t.Fatalf("%d use %d bytes, and %d are counted", n, m.size, m.users)
		}
	}
	if vs.bodies.Held() != sum {
		t.Fatalf("%d bytes are counted of %d", vs.bodies.Held(), sum)
	}
}

// TestHeld: what an edit shares with its base is counted once, as long as one of the two is there;
// a body in pieces while it comes.
func TestHeld(t *testing.T) {
	const large = 1 << 20
	vs := newViews()
	vs.Describe(&pb.View{View: 1, Type: "a.T"})
	store := func(b *pb.Body) {
		t.Helper()
		if err := vs.bodies.Store(&pb.Bodies{Bodies: []*pb.Body{b}}); err != nil {
			t.Fatal(err)
		}
		audit(t, vs)
	}
	field := func(n int) []byte {
		return append([]byte{0x0a, 0x80 | byte(n&0x7f), 0x80 | byte(n>>7&0x7f), byte(n >> 14)}, make([]byte, n)...)
	}
	whole := append(field(large/2), field(large/2)...)
	store(&pb.Body{Id: 1, Bytes: whole[:100], More: true})
	store(&pb.Body{Id: 1, Bytes: whole[100:1000], More: true})
	if vs.bodies.Held() != 1000 {
		t.Errorf("%d bytes while it comes", vs.bodies.Held())
	}
	store(&pb.Body{Id: 1, Bytes: whole[1000:]})
	name := func(id uint64) {
		t.Helper()
		if err := vs.Change(&pb.Change{View: 1, Type: "a.T", Upserts: []*pb.Entry{{Name: "x", Body: id}}}); err != nil {
			t.Fatal(err)
		}
		vs.Publish()
		audit(t, vs)
	}
	name(1)
	half := uint64(len(whole) / 2)
	for id := uint64(2); id < 12; id++ {
		store(&pb.Body{Id: id, Base: id - 1, Bytes: field(200), Head: half, Tail: half})
		name(id)
	}
	if got := vs.bodies.Held(); got < len(whole)+10*200 || got > len(whole)+10*300 {
		t.Errorf("%d bytes for one of %d and ten edits", got, len(whole))
	}
	vs.bodies.Collect(vs.bodies.Freed())
	audit(t, vs)
	if got := vs.bodies.Held(); got < len(whole) || got > len(whole)+300 {
		t.Errorf("%d bytes for the last edit of what had %d", got, len(whole))
	}
	if err := vs.Change(&pb.Change{View: 1, Type: "a.T", Removes: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	vs.Publish()
	if vs.bodies.Collect(vs.bodies.Freed()); vs.bodies.Held() != 0 {
		t.Errorf("%d bytes when nothing is left", vs.bodies.Held())
	}
}
