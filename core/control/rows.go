package control

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/outbox"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// takeRows keeps rows until they count: a deriver's until its Done, a source's until its Synced, later ones go to the next commit.
func (in *intake) takeRows(s *session, m *pb.Rows, now time.Time) error {
	for _, t := range m.Tables {
		if !slices.Contains(s.plugin.ready.Publishes, t.Table) {
			return fmt.Errorf("it published rows of table %q, which its Ready doesn't declare", t.Table)
		}
		if err := wellFormed(t, s.Limits()); err != nil {
			return err
		}
	}
	if err := s.Source.Live.count(m.Tables, s.Limits()); err != nil {
		return err
	}
	switch {
	case s.plugin.ready.Derives:
		s.Source.Staged = append(s.Source.Staged, m.Tables...)
	case !s.Source.Synced:
		s.Source.collect(m.Tables)
	case s.shadow != nil:
		s.shadow.Take(m.Tables)
	default:
		for _, t := range m.Tables {
			in.env.Update(s.plugin.shard, t.Table, t.Upserts, t.Deletes)
		}
		in.touched(s.Name(), now)
	}
	return nil
}

// collect adds rows to the candidate shard.
func (s *Source) collect(tables []*pb.TableRows) {
	for _, t := range tables {
		if s.Candidate[t.Table] == nil {
			s.Candidate[t.Table] = map[string]*pb.Row{}
		}
		for _, r := range t.Upserts {
			s.Candidate[t.Table][r.Key] = r
		}
		for _, k := range t.Deletes {
			delete(s.Candidate[t.Table], k)
		}
	}
}

// takeSynced makes the candidate the shard: rows of an earlier session that did not come again are gone.
func (in *intake) takeSynced(s *session, now time.Time) error {
	if s.Source.Synced || s.plugin.ready.Derives {
		return nil
	}
	s.Source.Synced = true
	if s.shadow != nil {
		s.shadow.Synced(s.Source.Candidate)
		s.Source.Candidate = nil
		return nil
	}
	in.env.Replace(s.plugin.shard, s.Source.Candidate)
	s.Source.Candidate = nil
	in.there(s, now)
	in.roster.serving(s.Name())
	in.touched(s.Name(), now)
	return nil
}

// touched starts the debounce for what now waits to be committed, after a source has changed something.
func (in *intake) touched(source string, now time.Time) {
	endpoints, rest := in.env.Pending()
	if rest || endpoints && in.debounceEndpoints {
		in.course.debounce.Touch(source, now)
	}
}

// derived takes in what a deriver made of a revision.
func (in *intake) derived(s *session, now time.Time) {
	if s.shadow != nil {
		s.Source.Synced, s.Source.Candidate = true, nil
		s.shadow.Take(s.Source.Staged)
		s.Source.Staged = nil
		return
	}
	if !s.Source.Synced {
		s.Source.Synced = true
		s.Source.collect(s.Source.Staged)
		s.Source.Staged = nil
		in.env.Replace(s.plugin.shard, s.Source.Candidate)
		s.Source.Candidate = nil
		in.there(s, now)
		in.roster.serving(s.Name())
	}
	staged := s.Source.Staged
	s.Source.Staged = nil
	if in.course.flight != nil && in.course.flight.Owes(s.Name(), s.State.Done) {
		changes := in.env.Amend(s.plugin.shard, staged)
		in.course.flight.Changes.Merge(changes)
		in.markDirty(changes)
		return
	}
	for _, t := range staged {
		in.env.Update(s.plugin.shard, t.Table, t.Upserts, t.Deletes)
	}
	in.touched(s.Name(), now)
}

// markDirty notes changed keys for all plugins that read them.
func (in *intake) markDirty(changes environment.Changes) {
	for _, k := range in.roster.known {
		k.suspect(changes)
	}
	for s := range in.roster.everybody() {
		s.feed.Changed(changes)
	}
	in.sleepers.rouseReaders(changes)
	in.instances.mark(changes)
}

// sendState sends what the session has not been sent yet, at a revision; if it still owes a Done, the Done will.
func (fd *feeder) sendState(s *session, number uint64) {
	if !s.State.Busy.IsZero() {
		return
	}
	tables, whole := s.feed.Take(fd.env, !fd.course.started && fd.course.flight == nil, s.plugin.suspects)
	s.out.State(&outbox.Job{Revision: pb.Revision{Epoch: fd.course.epoch, Number: number}, Whole: whole, Tables: tables})
	s.State.Sent, s.State.Busy, s.State.BusyLost = number, fd.clock.Now(), s.Watch.Lost
	if s.generates() {
		s.Maker.Unused.Sent(s.Maker.Views.Unused())
	}
}

// tellEarly sends sources what they read of the first revision, as soon as nobody whom they wait for lacks in it.
func (fd *feeder) tellEarly() {
	for s := range fd.roster.live() {
		if s.untold() && !fd.waits(s) {
			fd.sendState(s, fd.env.Number())
		}
	}
}

// untold reports whether a source that reads has not been sent its first state.
func (s *session) untold() bool {
	return s.feed.Whole() && (s.Kind() == pb.KindRegistry || s.Kind() == pb.KindConfig) && !s.plugin.ready.Derives && s.feed.ReadsAny()
}

// waits reports whether a source's first state is to wait: before the first revision, for other sources that may publish what it reads and have not
// synced, so that it can say from the first row on what it will say. Sources that read themselves are not waited for, so that nobody waits in a circle.
func (fd *feeder) waits(s *session) bool {
	if fd.course.started || !s.untold() {
		return false
	}
	for _, k := range fd.roster.known {
		if k == s.plugin || k.Expected.Optional || k.Sleep.Asleep || k.Kind() != pb.KindRegistry && k.Kind() != pb.KindConfig {
			continue
		}
		if k.ready == nil {
			return true // nobody knows yet what it publishes
		}
		if of := fd.roster.session(k.Name()); of != nil && of.Source.Synced || k.ready.Derives || len(k.ready.Reads) > 0 {
			continue
		}
		if slices.ContainsFunc(k.ready.Publishes, s.feed.Reads) {
			return true
		}
	}
	return false
}

// stateSent is called when a state was handed to the carrier. Sources that read owe no Done: they are ready for the next one.
func (fd *feeder) stateSent(s *session, number uint64) {
	if s.generates() || s.plugin.ready.Derives || s.State.Sent != number {
		return
	}
	s.State.Busy, s.State.Done = time.Time{}, number
	if len(s.feed.Left()) > 0 {
		fd.sendState(s, fd.env.Number())
	}
}

// complaint is a line about an error, with its fields.
func complaint(m *pb.Log) string {
	text := m.Text
	for _, k := range slices.Sorted(maps.Keys(m.Fields)) {
		text += ", " + k + ": " + m.Fields[k]
	}
	return budget.Line(text, 500)
}

// takeLog logs a plugin's line. Floods are cut, and how much was cut is said.
func (r *roster) takeLog(s *session, m *pb.Log) {
	if m.Level == pb.LogLevelError {
		s.Lines.Complaint = complaint(m)
	}
	if !s.Lines.Limit.Allow() {
		s.Lines.Unsaid++
		return
	}
	if s.Lines.Unsaid > 0 {
		r.log.Warn("lines of a plugin were left out: it logs too much", "plugin", s.Name(), "lines", s.Lines.Unsaid)
		s.Lines.Unsaid = 0
	}
	level := map[pb.LogLevel]slog.Level{
		pb.LogLevelDebug: slog.LevelDebug, pb.LogLevelWarn: slog.LevelWarn, pb.LogLevelError: slog.LevelError,
	}[m.Level]
	args := []any{"plugin", s.Name()}
	for _, k := range slices.Sorted(maps.Keys(m.Fields)) {
		args = append(args, field(k), m.Fields[k])
	}
	r.log.Log(context.Background(), level, m.Text, args...)
}

// field is the name under which a plugin's field is logged: never one that the core gives, or a plugin could speak in another's name.
func field(name string) string {
	switch name {
	case "", slog.TimeKey, slog.LevelKey, slog.MessageKey, slog.SourceKey, "plugin", "component", "stream", "standby", "audit", "by":
		return "field." + name
	}
	return name
}
