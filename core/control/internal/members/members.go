package members

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/pipeline"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
)

// Parts are who takes part: sessions that come and go, plugins that are declared, removed, tried
// and exchanged. Its parts, lower ones first.
type Parts struct {
	Removals *Removals
	Members  *Members
	Orders   *Orders
	Trials   *Trials
}

// New returns it where nobody takes part.
func New(st *state.State, sv *serving.Parts, sg *pipeline.Parts, holdMax time.Duration) *Parts {
	p := &Parts{}
	p.Removals = &Removals{
		state: st, holdMax: holdMax, losses: sv.Losses, streams: sv.Streams, pipeline: sg.Pipeline,
	}
	p.Members = &Members{
		state: st, patches: sv.Patches, placer: sv.Placer, feeder: sg.Feeder, sleepers: sg.Sleepers, intake: sg.Intake, pipeline: sg.Pipeline,
		results: sg.Results, removals: p.Removals,
	}
	p.Orders = &Orders{
		state: st, losses: sv.Losses, streams: sv.Streams, screen: sv.Screen, patches: sv.Patches, intake: sg.Intake, pipeline: sg.Pipeline,
		removals: p.Removals, members: p.Members,
	}
	p.Trials = &Trials{
		state: st, losses: sv.Losses, streams: sv.Streams, screen: sv.Screen, patches: sv.Patches, pins: sv.Pins, intake: sg.Intake, pipeline: sg.Pipeline,
		All: map[string]*Candidate{},
	}
	return p
}
