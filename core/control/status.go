package control

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/pipeline"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/report"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Ready returns why proxies aren't served; none: they are.
func (c *Control) Ready() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stages.Pipeline.NotReady()
}

// Revision returns the revision that is served.
func (c *Control) Revision() report.Revision {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.revision()
}

func (pg *pages) revision() report.Revision {
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

// PluginRows returns what is known of each declared plugin, by name.
func (c *Control) PluginRows() map[string]PluginRows {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.pluginRows()
}

func (pg *pages) pluginRows() map[string]PluginRows {
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
		r.Faults = append(r.Faults, pg.refusedOf(name)...)
		r.Rows = pipeline.RowsOf(pg.env, k.Shard)
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

// refusedOf are the resources of a generator that are not taken now, and those that a patch fails at: once each, by name.
func (pg *pages) refusedOf(plugin string) []report.WorkFault {
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

// Views returns all views that connections are in.
func (c *Control) Views() []report.View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.views()
}

func (pg *pages) views() []report.View {
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

// Streams returns the connected streams.
func (c *Control) Streams() []report.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.streams()
}

func (pg *pages) streams() []report.Stream {
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

// Tables returns the tables that have rows, or that a plugin reads or publishes.
func (c *Control) Tables() []report.Table {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.tables()
}

func (pg *pages) tables() []report.Table {
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

// Rows returns the rows of a table.
func (c *Control) Rows(table string) []*pb.Row {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*pb.Row
	for _, r := range c.state.Env.Rows(table, false) {
		out = append(out, r)
	}
	return out
}

// Dump returns what the streams of a node are to have.
func (c *Control) Dump(nodeID string) ([]report.TypeDump, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.dumpOf(nodeID)
}

func (pg *pages) dumpOf(nodeID string) ([]report.TypeDump, bool) {
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

func (pg *pages) dump(conn *state.Connection, url string) report.TypeDump {
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
