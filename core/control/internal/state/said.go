package state

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// HandleLog logs a plugin's line. Floods are cut, and how much was cut is said.
func (r *Roster) HandleLog(s *Session, m *pb.Log) {
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

// complaint is a line about an error, with its fields.
func complaint(m *pb.Log) string {
	text := m.Text
	for _, k := range slices.Sorted(maps.Keys(m.Fields)) {
		text += ", " + k + ": " + m.Fields[k]
	}
	return budget.Line(text, 500)
}

// field is the name under which a plugin's field is logged: never one that the core gives, or a
// plugin could speak in another's name.
func field(name string) string {
	switch name {
	case "", slog.TimeKey, slog.LevelKey, slog.MessageKey, slog.SourceKey, "plugin", "component", "stream", "standby", "audit", "by":
		return "field." + name
	}
	return name
}

// HandleFaults keeps what failed, since when, and logs and counts what did not fail before.
func (r *Roster) HandleFaults(s *Session, faults []*pb.Fault, now time.Time) {
	s.Lines.Faults = true
	type said struct{ what, reason string }
	old := make(map[said]time.Time, len(s.Plugin.Faults))
	for _, f := range s.Plugin.Faults {
		old[said{f.What, f.Reason}] = f.Since
	}
	s.Plugin.Faults = make([]fault, len(faults))
	for i, f := range faults {
		since, ok := old[said{f.What, f.Reason}]
		if ok {
			s.Plugin.Faults[i] = fault{f, since}
			continue
		}
		s.Plugin.Faults[i] = fault{f, now}
		r.metrics.Fault(s.Name())
		rows := make([]string, len(f.Rows))
		for i, r := range f.Rows {
			rows[i] = r.Table + " " + r.Key
		}
		r.log.Warn("work failed; its last good result stays", "plugin", s.Name(), "what", f.What, "reason", f.Reason, "rows", rows)
	}
}

// Died counts deaths of a plugin that owed a Done. After the third in a row it gets the rows that
// had changed since its last Done as they were before, until they change again.
func (r *Roster) Died(s *Session) {
	if s.State.Busy.IsZero() || r.course.Closed || !s.Generates() && !s.Plugin.Ready.Derives {
		return
	}
	names, deaths := s.Plugin.Suspects.Died()
	if len(names) == 0 {
		return
	}
	const most = 10
	r.log.Error("a plugin dies over these rows: it gets them as they were before, until they change again",
		"plugin", s.Name(), "deaths", deaths, "rows", names[:min(len(names), most)], "more", max(0, len(names)-most))
	r.metrics.Fault(s.Name())
}
