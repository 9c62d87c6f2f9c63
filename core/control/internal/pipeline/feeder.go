package pipeline

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/control/internal/outbox"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Feeder sends plugins what they read.
type Feeder struct {
	state *state.State
}

// SendState sends what the session has not been sent yet, at a revision; if it still owes a Done,
// the Done will.
func (fd *Feeder) SendState(s *state.Session, number uint64) {
	if !s.State.Busy.IsZero() {
		return
	}
	var coming *environment.Pending
	if !fd.state.Course.Started && fd.state.Course.Flight == nil {
		coming = fd.state.Env.Pending
	}
	tables, whole := s.Feed.Drain(fd.state.Env.Committed, coming, s.Plugin.Suspects)
	s.Out.State(&outbox.Job{Revision: pb.Revision{Epoch: fd.state.Course.Epoch, Number: number}, Whole: whole, Tables: tables})
	s.Told(number, fd.state.Clock.Now())
	if s.Generates() {
		s.Maker.Unused.Sent(s.Maker.Views)
	}
}

// TellEarly sends sources what they read of the first revision, as soon as nobody whom they wait
// for lacks in it.
func (fd *Feeder) TellEarly() {
	for s := range fd.state.Roster.Sessions() {
		if s.Untold() && !fd.Waits(s) {
			fd.SendState(s, fd.state.Env.Committed.Number())
		}
	}
}

// Waits reports whether a source's first state is to wait: before the first revision, for other
// sources that may publish what it reads and have not synced, so that it can say from the first row
// on what it will say. Sources that read themselves are not waited for, so that nobody waits in a
// circle.
func (fd *Feeder) Waits(s *state.Session) bool {
	if fd.state.Course.Started || !s.Untold() {
		return false
	}
	for _, k := range fd.state.Roster.Plugins {
		if k == s.Plugin || k.Expected.Optional || k.Sleep.Asleep || !k.Kind().Source() {
			continue
		}
		if k.Ready == nil {
			return true // nobody knows yet what it publishes
		}
		if of := fd.state.Roster.Session(k.Name()); of != nil && of.Source.Synced || k.Ready.Derives || len(k.Ready.Reads) > 0 {
			continue
		}
		if slices.ContainsFunc(k.Ready.Publishes, s.Feed.Reads) {
			return true
		}
	}
	return false
}

// StateSent is called when a state was handed to the carrier. Sources that read owe no Done: they
// are ready for the next one.
func (fd *Feeder) StateSent(s *state.Session, number uint64) {
	if s.Generates() || s.Plugin.Ready.Derives || s.State.Sent != number {
		return
	}
	s.Finished(number)
	if len(s.Feed.Left()) > 0 {
		fd.SendState(s, fd.state.Env.Committed.Number())
	}
}

// FeedShadows sends shadows what they lack, once all rows of a revision are made.
func (fd *Feeder) FeedShadows() {
	if fd.state.Course.Flight != nil && !fd.state.Course.Flight.Generating() {
		return
	}
	for s := range fd.state.Roster.RivalSessions() {
		if s.Lacks() && s.State.Busy.IsZero() {
			fd.SendState(s, fd.state.Env.Committed.Number())
			if s.Plugin.Patcher != nil {
				s.Plugin.Patcher.Forget()
				fd.state.Roster.Rivals[s.Plugin].Made.Clear()
			}
		}
	}
}
