package pipeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Intake takes rows from plugins.
type Intake struct {
	state             *state.State
	sleepers          *Sleepers
	debounceEndpoints bool
}

// ForceReaders makes a revision begin for those who read what changed without a commit.
func (in *Intake) ForceReaders(changes environment.Changes) {
	for s := range in.state.Roster.Sessions() {
		if state.Concerns(s.Plugin.Ready, changes) {
			in.state.Course.Force(s.Name())
		}
	}
}

// HandleRows keeps rows until they count: a deriver's until its Done, a source's until its Synced,
// later ones go to the next commit.
func (in *Intake) HandleRows(s *state.Session, m *pb.Rows, now time.Time) error {
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
	if !s.Plugin.Ready.Derives {
		for _, t := range m.Tables {
			in.state.Seen.Date(t.Table, t.Upserts, in.state.Course.Started, now)
		}
	}
	switch {
	case s.Plugin.Ready.Derives:
		s.Source.Stage(m.Tables)
	case !s.Source.Synced:
		s.Source.Collect(m.Tables)
	case s.Shadow != nil:
		s.Shadow.Put(m.Tables)
	default:
		for _, t := range m.Tables {
			in.state.Env.Pending.Update(s.Plugin.Shard, t.Table, t.Upserts, t.Deletes)
		}
		in.Touched(s.Name(), now)
	}
	return nil
}

// HandleSynced makes the candidate the shard: rows of an earlier session that did not come again
// are gone.
func (in *Intake) HandleSynced(s *state.Session, now time.Time) error {
	if s.Source.Synced || s.Plugin.Ready.Derives {
		return nil
	}
	rows := s.Source.Sync()
	if !s.Generates() && !s.Lines.Faults {
		in.state.Roster.HandleFaults(s, nil, now) // what the session before said is over
	}
	if s.Shadow != nil {
		s.Shadow.Synced(rows)
		return nil
	}
	in.state.Env.Pending.Replace(s.Plugin.Shard, rows)
	in.there(s, now)
	in.state.Roster.Serving(s.Name())
	in.Touched(s.Name(), now)
	return nil
}

// Touched starts the debounce for what now waits to be committed, after a source has changed
// something.
func (in *Intake) Touched(source string, now time.Time) {
	endpoints, rest := in.state.Env.Pending.Waits()
	if rest || endpoints && in.debounceEndpoints {
		in.state.Course.Debounce.Touch(source, now)
	}
}

// derived takes in what a deriver made of a revision.
func (in *Intake) derived(s *state.Session, now time.Time) {
	staged := s.Source.Unstage()
	if s.Shadow != nil {
		s.Source.Sync()
		s.Shadow.Put(staged)
		return
	}
	if !s.Source.Synced {
		s.Source.Collect(staged)
		staged = nil
		in.state.Env.Pending.Replace(s.Plugin.Shard, s.Source.Sync())
		in.there(s, now)
		in.state.Roster.Serving(s.Name())
	}
	if in.state.Course.Flight != nil && in.state.Course.Flight.Owes(s.Name(), s.State.Done) {
		changes := in.state.Env.Pending.Amend(s.Plugin.Shard, staged)
		in.state.Course.Flight.Changes.Merge(changes)
		in.MarkDirty(changes)
		return
	}
	for _, t := range staged {
		in.state.Env.Pending.Update(s.Plugin.Shard, t.Table, t.Upserts, t.Deletes)
	}
	in.Touched(s.Name(), now)
}

// MarkDirty notes changed keys for all plugins that read them.
func (in *Intake) MarkDirty(changes environment.Changes) {
	for _, k := range in.state.Roster.Plugins {
		k.Suspect(changes)
	}
	for s := range in.state.Roster.AllSessions() {
		s.Feed.Changed(changes)
	}
	in.sleepers.rouseReaders(changes)
	in.state.Instances.Mark(changes)
}
