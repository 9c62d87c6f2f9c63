package control

import (
	"github.com/coxswain-mesh/coxswain/core/pipeline"
	"github.com/coxswain-mesh/coxswain/core/serving"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/trial"
)

// trials are plugins that may take another's place, or were replaced.
type trials struct {
	env      *environment.Environment
	clock    *state.Clock
	roster   *state.Roster
	course   *state.Course
	conns    *state.Connections
	losses   *serving.Losses
	streams  *serving.Streams
	screen   *serving.Screen
	intake   *pipeline.Intake
	pipeline *pipeline.Pipeline
	patches  *serving.Patches
	// all by key; meetings wait for a moment at which a trial and the served plugin have said the
	// same revision.
	all      map[string]*candidate
	meetings trial.Meetings[meeting]
}

// rested says whether the session has said all about what is in the tables.
func (t *candidate) rested() bool {
	s := t.known.Session
	if s.Lacks() || !s.State.Busy.IsZero() || s.Maker.Asked.Len() > 0 || !s.Maker.Turns.Idle() {
		return false
	}
	return (!state.PublishesRows(s.Plugin.Ready) || s.Source.Synced) && t.hasComposed()
}

// said says whether the session has said all about some revision.
func (t *candidate) said() bool {
	switch s := t.known.Session; {
	case s.Generates() || s.Plugin.Ready.Derives:
		return s.State.Done > 0 && s.Maker.Asked.Len() == 0 && s.Maker.Turns.Idle()
	case state.PublishesRows(s.Plugin.Ready):
		return s.Source.Synced
	}
	return t.hasComposed()
}
