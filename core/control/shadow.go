package control

import (
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
	intake   *intake
	pipeline *pipeline
	patches  *serving.Patches
	// all by key; meetings wait for a moment at which a trial and the served plugin have said the
	// same revision.
	all      map[string]*candidate
	meetings trial.Meetings[meeting]
}

// feedShadows sends shadows what they lack, once all rows of a revision are made.
func (fd *feeder) feedShadows() {
	if fd.course.Flight != nil && !fd.course.Flight.Generating() {
		return
	}
	for s := range fd.roster.RivalSessions() {
		if s.Lacks() && s.State.Busy.IsZero() {
			fd.sendState(s, fd.env.Number())
			if s.Plugin.Patcher != nil {
				s.Plugin.Patcher.Forget()
				fd.roster.Rivals[s.Plugin].Made.Clear()
			}
		}
	}
}

// shadowDone takes in what a generator said of a revision.
func (p *pipeline) shadowDone(s *state.Session) error {
	if !s.Generates() {
		return nil
	}
	if err := s.Apply(); err != nil {
		return err
	}
	p.screen.Publish(s)
	s.Free()
	return nil
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
