package view

import (
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestStrays: names that came when nobody wanted them are known until somebody wants them, they are
// removed, or they are swept.
func TestStrays(t *testing.T) {
	vs := newViews()
	vs.Describe(&pb.View{Type: "t", View: 1})
	v := vs.Get("t", 1)
	change := func(names ...string) {
		t.Helper()
		m := &pb.Change{View: 1, Type: "t"}
		for _, n := range names {
			m.Upserts = append(m.Upserts, &pb.Entry{Name: n})
		}
		if err := vs.Change(m); err != nil {
			t.Fatal(err)
		}
	}
	strayed := func(want bool) {
		t.Helper()
		if got := len(vs.Strayed()) > 0; got != want {
			t.Errorf("the view has strays: %v", got)
		}
	}
	names := []string{"a", "b"}
	v.Want(false, names)
	change("a", "b")
	strayed(false)
	change("c", "d")
	strayed(true)
	v.Want(false, []string{"d"})
	vs.Sweep(v)
	strayed(false)
	vs.Publish()
	if s := v.Snapshot(); s.Get("a") == nil || s.Get("b") == nil || s.Get("c") != nil || s.Get("d") == nil || vs.Waits() {
		t.Errorf("left: %v", s.Known())
	}
	change("c")
	strayed(true)
	v.Want(true, nil)
	strayed(false)
	v.Drop(true, nil)
	change("e")
	if err := vs.Change(&pb.Change{View: 1, Type: "t", Removes: []string{"e"}}); err != nil {
		t.Fatal(err)
	}
	strayed(false)
}

// TestUnwant: what only the wildcard wanted goes with it, since nobody says any more what becomes
// of it.
func TestUnwant(t *testing.T) {
	vs := newViews()
	vs.Describe(&pb.View{Type: "t", View: 1})
	v := vs.Get("t", 1)
	named := []string{"named"}
	v.Want(true, named)
	if err := vs.bodies.Store(&pb.Bodies{Bodies: []*pb.Body{{Id: 1, Bytes: []byte("x")}, {Id: 2, Bytes: []byte("y")}}}); err != nil {
		t.Fatal(err)
	}
	if err := vs.Change(&pb.Change{View: 1, Type: "t", Upserts: []*pb.Entry{{Name: "named", Body: 1}, {Name: "other", Body: 2}}}); err != nil {
		t.Fatal(err)
	}
	vs.Complete(v)
	vs.Publish()
	v.Drop(true, nil)
	vs.Unwant(v, true, nil)
	vs.Publish()
	if s := v.Snapshot(); s.Complete() || s.Get("named") == nil || s.Get("other") != nil {
		t.Errorf("left: %v, complete: %v", s.Bodies(), s.Complete())
	}
	if freed := vs.bodies.Freed(); len(freed) != 1 || freed[0] != 2 {
		t.Errorf("freed %v", freed)
	}
}
