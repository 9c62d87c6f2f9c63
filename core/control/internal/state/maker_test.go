package state

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/core/placement"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestLetGo: while anything waits that a plugin said before, what it spoke of is kept.
func TestLetGo(t *testing.T) {
	var next Op = func() error { return nil }
	for _, s := range []*Session{
		{}, {Maker: Maker{Ops: []Op{next}}}, {Maker: Maker{OvertakenOps: []Op{next}}},
		{Maker: Maker{Ops: []Op{next}, OvertakenOps: []Op{next}}},
	} {
		s.Maker.Unused = placement.NewUnused()
		s.Maker.Begin(&pb.Ready{})
		s.Maker.Views.Describe(&pb.View{Type: "a", View: 1})
		s.Maker.Unused.Emptied(s.Maker.Views.Get("a", 1))
		s.Maker.Unused.Sent(s.Maker.Views)
		s.Maker.Unused.Done()
		s.LetGo()
		if kept, waits := s.Maker.Views.Get("a", 1) != nil, len(s.Maker.Ops)+len(s.Maker.OvertakenOps) > 0; kept != waits {
			t.Errorf("with %d and %d steps to come it is kept: %v", len(s.Maker.Ops), len(s.Maker.OvertakenOps), kept)
		}
	}
}
