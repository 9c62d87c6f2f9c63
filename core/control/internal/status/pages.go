package status

import (
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// Pages are what is shown of all this.
type Pages struct {
	holdMax time.Duration
	state   *state.State
	losses  *serving.Losses
	refused func(conn *state.Connection, typeURL string) (why string)
	crowds  *serving.Crowds
	// overdue is how many questions a session has not answered in time, and since when.
	overdue func(*state.Session) (n int, since time.Time)
}

// NewPages returns those of a state. holdMax is how long a revision waits for a plugin; overdue
// says how many questions a session has not answered in time, and since when.
func NewPages(st *state.State, sv *serving.Parts, holdMax time.Duration, overdue func(*state.Session) (int, time.Time)) *Pages {
	return &Pages{
		holdMax: holdMax, state: st, losses: sv.Losses, refused: sv.Quarantine.Of, crowds: sv.Crowds,
		overdue: overdue,
	}
}

// Revision returns the revision that is served.
func (pg *Pages) Revision() report.Revision {
	r := report.Revision{Epoch: pg.state.Course.Epoch, Number: pg.state.Course.Served.Number, Partial: slices.Clone(pg.state.Course.Served.Partial)}
	for _, name := range r.Partial {
		if k := pg.state.Roster.Plugins[name]; k != nil && !k.Late.IsZero() {
			if r.PartialSince == nil {
				r.PartialSince = map[string]time.Time{}
			}
			r.PartialSince[name] = k.Late.UTC()
		}
	}
	return r
}

// Views returns all views that connections are in.
func (pg *Pages) Views() []report.View {
	var out []report.View
	for _, name := range slices.Sorted(maps.Keys(pg.state.Roster.Plugins)) {
		s := pg.state.Roster.Session(name)
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

// Streams returns the connections.
func (pg *Pages) Streams() []report.Stream {
	var out []report.Stream
	for _, conn := range pg.state.Connections.Sorted() {
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
			t.Acked, t.AckedRevision, t.Refused = o.Acked, o.Revision, pg.refused(conn, url)
			if t.Refused == "" && o.Refused != "" && !hasAll(conn, url) {
				t.Refused = o.Refused
			}
			s.Types[url] = t
		}
		out = append(out, s)
	}
	return out
}

// hasAll reports whether a connection has accepted all that it is to have of a type: what it
// refused before is over then.
func hasAll(conn *state.Connection, url string) bool {
	has := conn.Outcomes[url].Has
	for name, b := range wished(conn, url) {
		if b == nil || !b.Exists() {
			continue
		}
		if old := has.Get(name); old == nil || old.Version() != b.Version() {
			return false
		}
	}
	return true
}

// Tables returns the tables that have rows, or that a plugin reads or publishes.
func (pg *Pages) Tables() []report.Table {
	all := map[string]map[string]int{}
	for _, k := range pg.state.Roster.Plugins {
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
	maps.Copy(all, pg.state.Env.Committed.Counts())
	var out []report.Table
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, report.Table{Name: name, Shards: maps.Clone(all[name])})
	}
	return out
}

// DumpOf returns what a node is to have; of a type that several of its connections ask for, what
// the last of these is to have. false: it has no connection.
func (pg *Pages) DumpOf(nodeID string) (out []report.TypeDump, found bool) {
	last := map[string]*state.Connection{}
	for _, conn := range pg.state.Connections.Sorted() {
		if conn.Peer.Node.GetId() != nodeID {
			continue
		}
		found = true
		for url := range conn.Subs {
			last[url] = conn
		}
	}
	for _, url := range slices.Sorted(maps.Keys(last)) {
		out = append(out, pg.dump(last[url], url))
	}
	return out, found
}

func (pg *Pages) dump(conn *state.Connection, url string) report.TypeDump {
	d := report.TypeDump{Type: url, Sensitive: pg.state.Roster.Traits(conn.Generators[url], url).Sensitive}
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
