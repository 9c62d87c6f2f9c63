package pipeline

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// SourceLost notes that a session says that its source is away.
func (in *Intake) SourceLost(s *state.Session, reason string, now time.Time) {
	if s.Source.Lost = budget.Line(reason, 300); s.Source.Lost == "" {
		s.Source.Lost = "it does not say why"
	}
	s.Source.LostAt = now
	if s.Shadow == nil {
		in.GoesAway(s.Plugin, s.Source.Lost, now)
	}
}

// SourceFound notes that a session says that its source is back.
func (in *Intake) SourceFound(s *state.Session, now time.Time) {
	s.Source.Lost = ""
	if s.Shadow == nil && s.Source.Synced {
		in.comesBack(s.Plugin, now)
	}
}

func (in *Intake) GoesAway(k *state.Plugin, why string, now time.Time) {
	news := k.Absence.Since.IsZero()
	if k.Absence.Begins(why, now); !news {
		return
	}
	args := []any{"plugin", k.Name(), "reason", why}
	if k.Absence.After == 0 && why == state.NoSession || !k.Absence.Said.AllowN(now, 1) {
		return // that it ended is said elsewhere
	}
	if due := k.Absence.Due(); !due.IsZero() {
		in.log.Warn("a plugin's source is away: its rows are served until they are dropped (onLoss)", append(args, "dropped", due.UTC().Format(time.RFC3339))...)
		return
	}
	in.log.Warn("a plugin's source is away: its rows stay served", args...)
}

func (in *Intake) comesBack(k *state.Plugin, now time.Time) {
	if k.Absence.Since.IsZero() {
		return
	}
	if (k.Absence.After > 0 || k.Absence.Why != state.NoSession) && k.Absence.Said.AllowN(now, 1) {
		in.log.Info("a plugin's source is back", "plugin", k.Name(), "away", now.Sub(k.Absence.Since).Round(time.Millisecond))
	}
	k.Absence.Ends()
}

// there notes that a session that is served has said all: its source is there, if it doesn't say otherwise.
func (in *Intake) there(s *state.Session, now time.Time) {
	if s.Source.Lost == "" {
		in.comesBack(s.Plugin, now)
	}
}

// Intake takes rows from plugins.
type Intake struct {
	log               *slog.Logger
	env               *environment.Environment
	clock             *state.Clock
	roster            *state.Roster
	course            *state.Course
	instances         *state.Instances
	sleepers          *Sleepers
	debounceEndpoints bool
}

// ForceReaders makes a revision begin for those who read what changed without a commit.
func (in *Intake) ForceReaders(changes environment.Changes) {
	for s := range in.roster.Sessions() {
		if state.Concerns(s.Plugin.Ready, changes) {
			in.course.Forced[s.Name()] = true
		}
	}
}

// TakeRows keeps rows until they count: a deriver's until its Done, a source's until its Synced, later ones go to the next commit.
func (in *Intake) TakeRows(s *state.Session, m *pb.Rows, now time.Time) error {
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
		in.Touched(s.Name(), now)
	}
	return nil
}

// TakeSynced makes the candidate the shard: rows of an earlier session that did not come again are gone.
func (in *Intake) TakeSynced(s *state.Session, now time.Time) error {
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
	in.Touched(s.Name(), now)
	return nil
}

// Touched starts the debounce for what now waits to be committed, after a source has changed something.
func (in *Intake) Touched(source string, now time.Time) {
	endpoints, rest := in.env.Pending()
	if rest || endpoints && in.debounceEndpoints {
		in.course.Debounce.Touch(source, now)
	}
}

// derived takes in what a deriver made of a revision.
func (in *Intake) derived(s *state.Session, now time.Time) {
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
		in.MarkDirty(changes)
		return
	}
	for _, t := range staged {
		in.env.Update(s.Plugin.Shard, t.Table, t.Upserts, t.Deletes)
	}
	in.Touched(s.Name(), now)
}

// MarkDirty notes changed keys for all plugins that read them.
func (in *Intake) MarkDirty(changes environment.Changes) {
	for _, k := range in.roster.Plugins {
		k.Suspect(changes)
	}
	for s := range in.roster.AllSessions() {
		s.Feed.Changed(changes)
	}
	in.sleepers.rouseReaders(changes)
	in.instances.Mark(changes)
}
