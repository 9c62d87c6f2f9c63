package control

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestLetGo: while anything waits that a plugin said before, what it spoke of is kept.
func TestLetGo(t *testing.T) {
	var next op = func() error { return nil }
	for _, s := range []*session{
		{}, {ops: []op{next}}, {overtakenOps: []op{next}}, {ops: []op{next}, overtakenOps: []op{next}},
	} {
		s.views, s.unused = view.NewViews(), placement.NewUnused()
		s.views.Describe(&pb.View{Type: typeA, View: 1})
		s.unused.Emptied(s.views.Get(typeA, 1))
		s.unused.Sent(nil)
		s.unused.Done()
		s.letGo()
		if kept, waits := s.views.Get(typeA, 1) != nil, len(s.ops)+len(s.overtakenOps) > 0; kept != waits {
			t.Errorf("with %d and %d steps to come it is kept: %v", len(s.ops), len(s.overtakenOps), kept)
		}
	}
}
