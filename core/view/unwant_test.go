package view

import (
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

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
