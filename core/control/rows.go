package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/outbox"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// takeRows keeps rows until they count: a deriver's until its Done, a source's until its Synced, later ones go to the next commit.
func (in *intake) takeRows(s *state.Session, m *pb.Rows, now time.Time) error {
	for _, t := range m.Tables {
		if !slices.Contains(s.Plugin.Ready.Publishes, t.Table) {
			return fmt.Errorf("it published rows of table %q, which its Ready doesn't declare", t.Table)
		}
		if err := state.WellFormed(t, s.Limits()); err != nil {
			return err
		}
	}
	if err := s.Source.Live.Count(m.Tables, s.Limits()); err != nil {
		return err
	}
	switch {
	case s.Plugin.Ready.Derives:
		s.Source.Staged = append(s.Source.Staged, m.Tables...)
	case !s.Source.Synced:
		s.Source.Collect(m.Tables)
	case s.Shadow != nil:
		s.Shadow.Take(m.Tables)
	default:
		for _, t := range m.Tables {
			in.env.Update(s.Plugin.Shard, t.Table, t.Upserts, t.Deletes)
		}
		in.touched(s.Name(), now)
	}
	return nil
}

// takeSynced makes the candidate the shard: rows of an earlier session that did not come again are gone.
func (in *intake) takeSynced(s *state.Session, now time.Time) error {
	if s.Source.Synced || s.Plugin.Ready.Derives {
		return nil
	}
	s.Source.Synced = true
	if s.Shadow != nil {
		s.Shadow.Synced(s.Source.Candidate)
		s.Source.Candidate = nil
		return nil
	}
	in.env.Replace(s.Plugin.Shard, s.Source.Candidate)
	s.Source.Candidate = nil
	in.there(s, now)
	in.roster.Serving(s.Name())
	in.touched(s.Name(), now)
	return nil
}

// touched starts the debounce for what now waits to be committed, after a source has changed something.
func (in *intake) touched(source string, now time.Time) {
	endpoints, rest := in.env.Pending()
	if rest || endpoints && in.debounceEndpoints {
		in.course.Debounce.Touch(source, now)
	}
}

// derived takes in what a deriver made of a revision.
func (in *intake) derived(s *state.Session, now time.Time) {
	if s.Shadow != nil {
		s.Source.Synced, s.Source.Candidate = true, nil
		s.Shadow.Take(s.Source.Staged)
		s.Source.Staged = nil
		return
	}
	if !s.Source.Synced {
		s.Source.Synced = true
		s.Source.Collect(s.Source.Staged)
		s.Source.Staged = nil
		in.env.Replace(s.Plugin.Shard, s.Source.Candidate)
		s.Source.Candidate = nil
		in.there(s, now)
		in.roster.Serving(s.Name())
	}
	staged := s.Source.Staged
	s.Source.Staged = nil
	if in.course.Flight != nil && in.course.Flight.Owes(s.Name(), s.State.Done) {
		changes := in.env.Amend(s.Plugin.Shard, staged)
		in.course.Flight.Changes.Merge(changes)
		in.markDirty(changes)
		return
	}
	for _, t := range staged {
		in.env.Update(s.Plugin.Shard, t.Table, t.Upserts, t.Deletes)
	}
	in.touched(s.Name(), now)
}

// markDirty notes changed keys for all plugins that read them.
func (in *intake) markDirty(changes environment.Changes) {
	for _, k := range in.roster.Plugins {
		k.Suspect(changes)
	}
	for s := range in.roster.AllSessions() {
		s.Feed.Changed(changes)
	}
	in.sleepers.rouseReaders(changes)
	in.instances.Mark(changes)
}

// sendState sends what the session has not been sent yet, at a revision; if it still owes a Done, the Done will.
func (fd *feeder) sendState(s *state.Session, number uint64) {
	if !s.State.Busy.IsZero() {
		return
	}
	tables, whole := s.Feed.Take(fd.env, !fd.course.Started && fd.course.Flight == nil, s.Plugin.Suspects)
	s.Out.State(&outbox.Job{Revision: pb.Revision{Epoch: fd.course.Epoch, Number: number}, Whole: whole, Tables: tables})
	s.State.Sent, s.State.Busy, s.State.BusyLost = number, fd.clock.Now(), s.Watch.Lost
	if s.Generates() {
		s.Maker.Unused.Sent(s.Maker.Views.Unused())
	}
}

// tellEarly sends sources what they read of the first revision, as soon as nobody whom they wait for lacks in it.
func (fd *feeder) tellEarly() {
	for s := range fd.roster.Sessions() {
		if s.Untold() && !fd.waits(s) {
			fd.sendState(s, fd.env.Number())
		}
	}
}

// waits reports whether a source's first state is to wait: before the first revision, for other sources that may publish what it reads and have not
// synced, so that it can say from the first row on what it will say. Sources that read themselves are not waited for, so that nobody waits in a circle.
func (fd *feeder) waits(s *state.Session) bool {
	if fd.course.Started || !s.Untold() {
		return false
	}
	for _, k := range fd.roster.Plugins {
		if k == s.Plugin || k.Expected.Optional || k.Sleep.Asleep || k.Kind() != pb.KindRegistry && k.Kind() != pb.KindConfig {
			continue
		}
		if k.Ready == nil {
			return true // nobody knows yet what it publishes
		}
		if of := fd.roster.Session(k.Name()); of != nil && of.Source.Synced || k.Ready.Derives || len(k.Ready.Reads) > 0 {
			continue
		}
		if slices.ContainsFunc(k.Ready.Publishes, s.Feed.Reads) {
			return true
		}
	}
	return false
}

// stateSent is called when a state was handed to the carrier. Sources that read owe no Done: they are ready for the next one.
func (fd *feeder) stateSent(s *state.Session, number uint64) {
	if s.Generates() || s.Plugin.Ready.Derives || s.State.Sent != number {
		return
	}
	s.State.Busy, s.State.Done = time.Time{}, number
	if len(s.Feed.Left()) > 0 {
		fd.sendState(s, fd.env.Number())
	}
}
