package pipeline

import (
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/internal/store"
	"github.com/coxswain-mesh/coxswain/core/revision"
)

// Parts lead rows to what connections are served: its parts, lower ones first.
type Parts struct {
	Feeder   *Feeder
	Sleepers *Sleepers
	Intake   *Intake
	Pipeline *Pipeline
	Results  *Results
	Writes   *Writes
}

// Config of Stages.
type Config struct {
	Timing revision.Timing
	// Serving is called before anybody sees anything of a revision.
	Serving func(f *revision.Flight)
	// Served is called when a revision is served.
	Served func(number uint64)
}

// New returns some that have led nothing yet.
func New(st *state.State, sv *serving.Parts, cfg Config) *Parts {
	s := &Parts{}
	s.Feeder = &Feeder{state: st}
	s.Sleepers = &Sleepers{state: st}
	s.Intake = &Intake{
		state: st, sleepers: s.Sleepers, debounceEndpoints: cfg.Timing.DebounceEndpoints,
	}
	s.Pipeline = &Pipeline{
		state: st, timing: cfg.Timing,
		patches: sv.Patches, losses: sv.Losses, screen: sv.Screen, feeder: s.Feeder, intake: s.Intake,
		StartedUp: make(chan struct{}), onServing: cfg.Serving, onServed: cfg.Served,
	}
	s.Results = &Results{
		state: st, patches: sv.Patches, screen: sv.Screen, pipeline: s.Pipeline,
	}
	s.Writes = &Writes{state: st, Stores: store.New[*state.Session](cfg.Timing.HoldMax)}
	return s
}
