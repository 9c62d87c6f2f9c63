package control

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/placement"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestLetGo: while anything waits that a plugin said before, what it spoke of is kept.
func TestLetGo(t *testing.T) {
	var next state.Op = func() error { return nil }
	for _, s := range []*state.Session{
		{}, {Maker: state.Maker{Ops: []state.Op{next}}}, {Maker: state.Maker{OvertakenOps: []state.Op{next}}},
		{Maker: state.Maker{Ops: []state.Op{next}, OvertakenOps: []state.Op{next}}},
	} {
		s.Maker.Unused = placement.NewUnused()
		s.Maker.Begin(&pb.Ready{})
		s.Maker.Views.Describe(&pb.View{Type: typeA, View: 1})
		s.Maker.Unused.Emptied(s.Maker.Views.Get(typeA, 1))
		s.Maker.Unused.Sent(s.Maker.Views)
		s.Maker.Unused.Done()
		s.LetGo()
		if kept, waits := s.Maker.Views.Get(typeA, 1) != nil, len(s.Maker.Ops)+len(s.Maker.OvertakenOps) > 0; kept != waits {
			t.Errorf("with %d and %d steps to come it is kept: %v", len(s.Maker.Ops), len(s.Maker.OvertakenOps), kept)
		}
	}
}
