package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/serving"
	"github.com/coxswain-mesh/coxswain/core/state"
)

// Pages are what is shown of all this.
type Pages struct {
	holdMax time.Duration
	env     *environment.Environment
	clock   *state.Clock
	roster  *state.Roster
	course  *state.Course
	conns   *state.Connections
	losses  *serving.Losses
	// overdue is how many questions a session has not answered in time, and since when.
	overdue func(*state.Session) (n int, since time.Time)
}

func (pg *Pages) Held() []state.Held {
	var all []state.Held
	for _, name := range pg.losses.Holds.Plugins() {
		all = append(all, pg.losses.Held(name))
	}
	return all
}

func (pg *Pages) HoldOf(plugin string) (*state.Held, error) {
	if pg.losses.Holds.Of(plugin) == nil {
		return nil, serving.ErrNotHeld(plugin)
	}
	out := pg.losses.Held(plugin)
	before, after := environment.Tables{}, environment.Tables{}
	if k := pg.roster.Plugins[plugin]; k != nil {
		for u := range pg.env.Held(k.Shard) {
			if u.Before != nil {
				before.Put(u.Table, u.Before)
			}
			if u.Now != nil {
				now := *u.Now
				now.Key = u.Key
				after.Put(u.Table, &now)
			}
		}
	}
	out.Difference = guard.Rows(before, after, func(string, string) bool { return false })
	out.Difference.Emptied, out.Difference.Silent = nil, false
	return &out, nil
}

// Hiding are numbers of a plugin that is a source of rows.
type Hiding struct {
	// Hidden is how many of its rows are not served, Away since when its source is (the zero time: it is there).
	Hidden int
	Away   time.Time
}

func (pg *Pages) Hiding() map[string]Hiding {
	all := map[string]Hiding{}
	for name, k := range pg.roster.Plugins {
		if state.Publishes(k) {
			all[name] = Hiding{pg.env.HiddenRows(k.Shard), k.Absence.Since}
		}
	}
	return all
}

// atOnce is how many hidden rows are looked at before others have their turn.
const atOnce = 10_000

func (pg *Pages) TableRows(plugin string, pause func()) []report.TableRows {
	k := pg.roster.Plugins[plugin]
	if k == nil {
		return nil
	}
	tables := map[string]*report.TableRows{}
	of := func(name string) *report.TableRows {
		if tables[name] == nil {
			tables[name] = &report.TableRows{Table: name}
		}
		return tables[name]
	}
	for name, n := range pg.env.LenOf(k.Shard) {
		if n > 0 {
			of(name).Served = n
		}
	}
	for u := range pg.env.Held(k.Shard) {
		of(u.Table).Held++
	}
	type why struct {
		table string
		why   environment.Why
		by    *environment.Shard
	}
	hidden, seen := map[why]*report.HiddenRows{}, 0
	for h := range pg.env.HiddenOf(k.Shard) {
		if seen++; seen%atOnce == 0 { // others have work to do, which may change what is still to come
			pause()
		}
		of(h.Table).Served = max(0, of(h.Table).Served-1)
		w := why{h.Table, h.Why, h.By}
		if hidden[w] == nil {
			hidden[w] = k.Hidden(h)
		}
		if hidden[w].Rows++; h.Key < hidden[w].Example {
			hidden[w].Example = h.Key
		}
	}
	for w, rows := range hidden {
		of(w.table).Hidden = append(of(w.table).Hidden, *rows)
	}
	all := make([]report.TableRows, 0, len(tables))
	for _, t := range tables {
		slices.SortFunc(t.Hidden, func(a, b report.HiddenRows) int {
			return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Reason, b.Reason))
		})
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b report.TableRows) int { return cmp.Compare(a.Table, b.Table) })
	return all
}

func NewPages(st *state.State, sv *serving.Parts, holdMax time.Duration, overdue func(*state.Session) (int, time.Time)) *Pages {
	return &Pages{
		holdMax: holdMax, env: st.Env, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections, losses: sv.Losses,
		overdue: overdue,
	}
}

func (pg *Pages) Revision() report.Revision {
	r := report.Revision{Epoch: pg.course.Epoch, Number: pg.course.Served.Number, Partial: slices.Clone(pg.course.Served.Partial)}
	for _, name := range r.Partial {
		if k := pg.roster.Plugins[name]; k != nil && !k.Late.IsZero() {
			if r.PartialSince == nil {
				r.PartialSince = map[string]time.Time{}
			}
			r.PartialSince[name] = k.Late.UTC()
		}
	}
	return r
}

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
	// Held is what is kept back; nil: nothing.
	Held *report.Hold
	// Away is since when its source is; nil: it is there.
	Away *report.Away
}

func (pg *Pages) PluginRows() map[string]PluginRows {
	now := pg.clock.Now()
	out := make(map[string]PluginRows, len(pg.roster.Plugins))
	for name, k := range pg.roster.Plugins {
		r := PluginRows{Stale: pg.staleness(k, now), Withheld: k.Suspects.Withheld(), Away: k.Seen()}
		for _, f := range k.Faults {
			w := report.WorkFault{What: f.What, Reason: f.Reason, Since: f.Since.UTC()}
			for _, row := range f.Rows {
				w.Rows = append(w.Rows, report.RowName{Table: row.Table, Key: row.Key})
			}
			r.Faults = append(r.Faults, w)
		}
		r.Faults = append(r.Faults, pg.RefusedOf(name)...)
		r.Rows = state.RowsOf(pg.env, k.Shard)
		if s := pg.roster.Session(name); s != nil {
			r.Revision, r.Sign = s.State.Done, s.Link.LastProgress()
		}
		if pg.losses.Holds.Of(name) != nil {
			h := pg.losses.Held(name)
			r.Held = &report.Hold{Since: h.Since, Rows: h.Rows, Proxies: h.Proxies, Reasons: h.Reasons}
			for u := range pg.env.Held(k.Shard) {
				r.Held.Names = append(r.Held.Names, report.RowName{Table: u.Table, Key: u.Key})
			}
		}
		out[name] = r
	}
	return out
}

// RefusedOf are the resources of a generator that are not taken now, and those that a patch fails at: once each, by name.
func (pg *Pages) RefusedOf(plugin string) []report.WorkFault {
	var out []report.WorkFault
	if s := pg.roster.Session(plugin); s != nil && s.Generates() {
		for _, r := range s.Maker.Views.Standing() {
			out = append(out, report.WorkFault{What: r.Type + " " + r.Name, Reason: r.Reason.Error(), Since: r.Since.UTC()})
		}
	}
	if p := pg.roster.Patcher(plugin); p != nil {
		for r := range p.Failures() {
			out = append(out, report.WorkFault{What: "patch of " + r.Type() + " " + r.Name(), Reason: r.Failed(), Since: r.Since().UTC(), Skipped: p.Skips})
		}
	}
	slices.SortFunc(out, func(a, b report.WorkFault) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Reason, b.Reason), a.Since.Compare(b.Since))
	})
	return slices.CompactFunc(out, func(a, b report.WorkFault) bool { return a.What == b.What && a.Reason == b.Reason })
}

func (pg *Pages) Views() []report.View {
	var out []report.View
	for _, name := range slices.Sorted(maps.Keys(pg.roster.Plugins)) {
		s := pg.roster.Session(name)
		if s == nil || !s.Generates() {
			continue
		}
		for _, v := range s.Maker.Views.All() {
			if v.Connections == 0 {
				continue
			}
			a := report.View{Type: v.Type, ID: v.ID, Plugin: name, Label: v.Label, Facts: v.Facts, Connections: v.Connections}
			for _, b := range v.Snapshot().Bodies() {
				a.Resources++
				a.Bytes += b.Size(false)
			}
			out = append(out, a)
		}
	}
	return out
}

func (pg *Pages) Streams() []report.Stream {
	var out []report.Stream
	for _, conn := range pg.conns.Sorted() {
		s := report.Stream{
			Connection: conn.ID, Node: conn.Peer.Node.GetId(), Protocol: conn.Peer.Protocol, Remote: conn.Peer.RemoteAddress,
			Since: conn.Since, Identities: conn.Peer.Identities, Types: map[string]report.StreamType{},
		}
		for url, sub := range conn.Subs {
			t := report.StreamType{Wildcard: sub.Wildcard, Names: len(sub.Names)}
			if v := conn.Places.View(url); v != nil {
				t.View = v.ID
			}
			o := conn.Outcomes[url]
			t.Acked, t.AckedRevision, t.Refused = o.Acked, o.Revision, o.Refused
			s.Types[url] = t
		}
		out = append(out, s)
	}
	return out
}

func (pg *Pages) Tables() []report.Table {
	all := map[string]map[string]int{}
	for _, k := range pg.roster.Plugins {
		if k.Ready == nil {
			continue
		}
		for _, r := range k.Ready.Reads {
			all[r.Table] = nil
		}
		for _, t := range k.Ready.Publishes {
			all[t] = nil
		}
	}
	maps.Copy(all, pg.env.Counts())
	var out []report.Table
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, report.Table{Name: name, Shards: maps.Clone(all[name])})
	}
	return out
}

func (pg *Pages) DumpOf(nodeID string) ([]report.TypeDump, bool) {
	var out []report.TypeDump
	found := false
	for _, conn := range pg.conns.Sorted() {
		if conn.Peer.Node.GetId() != nodeID {
			continue
		}
		found = true
		for _, url := range slices.Sorted(maps.Keys(conn.Subs)) {
			out = append(out, pg.dump(conn, url))
		}
	}
	return out, found
}

func (pg *Pages) dump(conn *state.Connection, url string) report.TypeDump {
	d := report.TypeDump{Type: url, Sensitive: pg.roster.Traits(conn.Generators[url], url).Sensitive}
	visible, sub := conn.Seen[url], conn.Subs[url]
	if sub.Wildcard {
		d.Bodies = visible.Bodies()
		return d
	}
	for _, n := range sub.Names {
		if b := visible.Get(n); b != nil && b.Exists() {
			d.Bodies = append(d.Bodies, b)
		}
	}
	return d
}

// Stale says since when, and why, what a plugin said last may be out of date.
type Stale struct {
	Since time.Time
	Why   string
}

// staleness is the zero value for a plugin that is there and owes nothing for long.
func (pg *Pages) staleness(k *state.Plugin, now time.Time) Stale {
	if !k.Away.IsZero() {
		if k.Ready == nil {
			return Stale{}
		}
		return Stale{k.Away, "away"}
	}
	s := pg.roster.Session(k.Name())
	if s == nil {
		return Stale{}
	}
	overdue, since := pg.overdue(s)
	missed := Stale{}
	if p := pg.roster.Patcher(k.Name()); p != nil {
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

func (pg *Pages) Stale() map[string]Stale {
	now := pg.clock.Now()
	all := map[string]Stale{}
	for name, k := range pg.roster.Plugins {
		all[name] = pg.staleness(k, now)
	}
	return all
}
