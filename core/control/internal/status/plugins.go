package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// PluginRows is what control knows of a plugin.
type PluginRows struct {
	Rows int
	// Stale: its rows and views are kept, and may be out of date; the zero value: they are not.
	Stale Stale
	// Sign is when it last said rows, bodies, Done or Progress; zero without a session.
	Sign     time.Time
	Revision uint64
	// Withheld are rows, as "TABLE KEY", that it died over and gets as they were before.
	Withheld []string
	// Faults are pieces of its work that failed and kept their last good result.
	Faults []report.WorkFault
	// Refused are rows that are refused because their namespace is full, mostRefused at most.
	Refused []report.RefusedRow
	// Held is what is kept back; nil: nothing.
	Held *report.Hold
	// Away is since when its source is; nil: it is there.
	Away *report.Away
	// Reads and Publishes are tables, as it has said; none until it has.
	Reads, Publishes []string
}

// PluginRows returns what is known of each declared plugin, by name.
func (pg *Pages) PluginRows() map[string]PluginRows {
	now := pg.state.Clock.Now()
	out := make(map[string]PluginRows, len(pg.state.Roster.Plugins))
	for name, k := range pg.state.Roster.Plugins {
		r := PluginRows{Stale: pg.staleness(k, now), Withheld: k.Suspects.Withheld(), Away: k.Seen()}
		if k.Ready != nil {
			r.Publishes = slices.Clone(k.Ready.Publishes)
			for _, of := range k.Ready.Reads {
				r.Reads = append(r.Reads, of.Table)
			}
		}
		for _, f := range k.Faults {
			w := report.WorkFault{What: f.What, Reason: f.Reason, Since: f.Since.UTC()}
			for _, row := range f.Rows {
				w.Rows = append(w.Rows, report.RowName{Table: row.Table, Key: row.Key})
			}
			r.Faults = append(r.Faults, w)
		}
		r.Faults = append(r.Faults, pg.RefusedOf(name)...)
		r.Rows = state.RowsOf(pg.state.Env.Tally, k.Shard)
		if s := pg.state.Roster.Session(name); s != nil {
			r.Revision, r.Sign = s.State.Done, s.Link.LastProgress()
		}
		if pg.losses.Holds.Of(name) != nil {
			h := pg.losses.Held(name)
			r.Held = &report.Hold{Since: h.Since, Rows: h.Rows, Proxies: h.Proxies, Reasons: h.Reasons}
			for u := range pg.state.Env.Held.Of(k.Shard) {
				r.Held.Names = append(r.Held.Names, report.RowName{Table: u.Table, Key: u.Key})
			}
		}
		out[name] = r
	}
	pg.crowded(out)
	return out
}

// RefusedOf are the resources of a generator that are not taken now, and those that a patch fails
// at: once each, by name.
func (pg *Pages) RefusedOf(plugin string) []report.WorkFault {
	var out []report.WorkFault
	if s := pg.state.Roster.Session(plugin); s != nil && s.Generates() {
		for _, r := range s.Maker.Refusals.Standing() {
			out = append(out, report.WorkFault{What: r.Type + " " + r.Name, Reason: r.Reason.Error(), Since: r.Since.UTC()})
		}
	}
	if p := pg.state.Roster.Patcher(plugin); p != nil {
		for r := range p.Failures() {
			out = append(out, report.WorkFault{What: "patch of " + r.Type() + " " + r.Name(), Reason: r.Failed(), Since: r.Since().UTC(), Skipped: p.Skips})
		}
	}
	slices.SortFunc(out, func(a, b report.WorkFault) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Reason, b.Reason), a.Since.Compare(b.Since))
	})
	return slices.CompactFunc(out, func(a, b report.WorkFault) bool { return a.What == b.What && a.Reason == b.Reason })
}

// Stale says since when, and why, what a plugin said last may be out of date.
type Stale struct {
	Since time.Time
	Why   string
}

// Stale returns for each plugin whether its last words may be out of date.
func (pg *Pages) Stale() map[string]Stale {
	now := pg.state.Clock.Now()
	all := map[string]Stale{}
	for name, k := range pg.state.Roster.Plugins {
		all[name] = pg.staleness(k, now)
	}
	return all
}

// staleness is the zero value for a plugin that is there and owes nothing for long.
func (pg *Pages) staleness(k *state.Plugin, now time.Time) Stale {
	if !k.Away.IsZero() {
		if k.Ready == nil {
			return Stale{}
		}
		return Stale{k.Away, "away"}
	}
	s := pg.state.Roster.Session(k.Name())
	if s == nil {
		return Stale{}
	}
	overdue, since := pg.overdue(s)
	missed := Stale{}
	if p := pg.state.Roster.Patcher(k.Name()); p != nil {
		missed.Since, missed.Why = p.Stale()
	}
	switch {
	case s.Watch.Silent:
		return Stale{s.Watch.Pinged.At, "hung: it answers no ping"}
	case missed.Why != "":
		return missed
	case overdue > 0:
		return Stale{since, fmt.Sprintf("hung: %d questions without an answer", overdue)}
	case !s.State.Busy.IsZero() && now.Sub(s.State.Busy) >= pg.holdMax:
		return Stale{s.State.Busy, fmt.Sprintf("late: it is not done with revision %d", s.State.Sent)}
	}
	return Stale{}
}
