package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Origins are what resources come from, as far as the core knows: which generator made them of a
// view, and what rows there are. What a generator read it says itself.
type Origins struct {
	state   *state.State
	patches *serving.Patches
	pins    *serving.Pins
	// served says when a revision began to be served; the zero time: it is not remembered.
	served func(number uint64) time.Time
}

// NewOrigins returns those of a state. served says when a revision began to be served.
func NewOrigins(st *state.State, sv *serving.Parts, served func(number uint64) time.Time) *Origins {
	return &Origins{state: st, patches: sv.Patches, pins: sv.Pins, served: served}
}

// Subject is a resource of a view, and the session that made it.
type Subject struct {
	Session *state.Session
	View    *view.View
	Type    string
	Name    string
	// Body is nil, or doesn't exist, where there is no such resource.
	Body *view.Body
	// Piece is the one that is meant; nil: all of it.
	Piece *serving.Question
}

// Question asks its generator what it was made from.
func (s Subject) Question() *pb.Explain {
	q := &pb.Explain{Type: s.Type, View: s.View.ID, Name: s.Name}
	if p := s.Piece; p != nil {
		q.Piece, q.FilterChain = p.Piece.Host+p.Piece.Filter, uint32(p.Chain) // one of them is empty
	}
	return q
}

// connection is the newest one of a node; nil: there is none.
func (o *Origins) connection(node string) (found *state.Connection) {
	for _, conn := range o.state.Connections.All {
		if conn.Peer.Node.GetId() == node && (found == nil || conn.ID > found.ID) {
			found = conn
		}
	}
	return found
}

// Proxy says which views a node's newest connection is in, and what it gets of them; false: it is
// not connected.
func (o *Origins) Proxy(node string) (report.Proxy, bool) {
	conn := o.connection(node)
	if conn == nil {
		return report.Proxy{}, false
	}
	p := report.Proxy{Node: node, Connection: conn.ID, Since: conn.Since.UTC()}
	if pin := o.pins.Of(conn); pin != nil {
		p.Pinned, p.Staged = pin.Revision, pin == o.pins.Stage()
	}
	for _, url := range slices.Sorted(maps.Keys(conn.Subs)) {
		t := report.ProxyType{Type: url, Plugin: conn.Generators[url], View: placed(conn.Places.View(url)), Names: []report.NamedState{}}
		for name, b := range wished(conn, url) {
			t.Names = append(t.Names, report.NamedState{Name: name, Version: versionOf(b)})
		}
		slices.SortFunc(t.Names, func(a, b report.NamedState) int { return cmp.Compare(a.Name, b.Name) })
		p.Types = append(p.Types, t)
	}
	return p, true
}

// wished is what a connection has of a type, and what it asks for by name, with or without an
// answer.
func wished(conn *state.Connection, url string) map[string]*view.Body {
	all := map[string]*view.Body{}
	sub, seen := conn.Subs[url], conn.Seen[url]
	if sub.Wildcard {
		for _, b := range seen.Bodies() {
			all[b.Name()] = b
		}
	}
	for _, n := range sub.Names {
		all[n] = seen.Get(n)
	}
	return all
}

func placed(v *view.View) *report.PlacedView {
	if v == nil {
		return nil
	}
	return &report.PlacedView{ID: v.ID, Label: v.Label, Facts: v.Facts, Connections: v.Connections}
}

func versionOf(b *view.Body) string {
	if b == nil || !b.Exists() {
		return ""
	}
	return b.Version()
}

// Subject finds a resource of a node's newest connection. The error says what there is instead.
func (o *Origins) Subject(node, typeURL, name string) (Subject, report.Explanation, error) {
	conn := o.connection(node)
	if conn == nil {
		return Subject{}, report.Explanation{}, fmt.Errorf("proxy %q is not connected", node)
	}
	sub, asks := conn.Subs[typeURL]
	if !asks {
		return Subject{}, report.Explanation{},
			fmt.Errorf("proxy %q asks for no %s; it asks for %s", node, lastWord(typeURL), words(slices.Sorted(maps.Keys(conn.Subs))))
	}
	at := conn.Places.At(typeURL)
	if at.View == nil {
		return Subject{}, report.Explanation{},
			fmt.Errorf("plugin %s has not placed proxy %q into a view of %s yet", conn.Generators[typeURL], node, lastWord(typeURL))
	}
	seen := conn.Seen[typeURL]
	body := seen.Get(name)
	if !slices.Contains(sub.Names, name) && (body == nil || !sub.Wildcard) {
		has := slices.Sorted(maps.Keys(wished(conn, typeURL)))
		return Subject{}, report.Explanation{},
			fmt.Errorf("proxy %q has no %s %q, and does not ask for one; it has %s", node, lastWord(typeURL), name, words(near(has, name)))
	}
	e := report.Explanation{
		Node: node, Connection: conn.ID, Type: typeURL, Name: name, Plugin: at.Session.Name(), View: placed(at.View), Version: versionOf(body),
	}
	made := at.View.Snapshot().Get(name)
	if pin := o.pins.Of(conn); pin != nil && o.pins.Shows(pin, conn, typeURL, body) {
		e.Pinned, e.Staged, e.Live = pin.Revision, pin == o.pins.Stage(), versionOf(made)
	} else if versionOf(made) != e.Version {
		for _, p := range o.patches.Chain(conn, typeURL) {
			e.Patches = append(e.Patches, p.Name)
		}
	}
	return Subject{Session: at.Session, View: at.View, Type: typeURL, Name: name, Body: made}, e, nil
}

// Explained adds to an explanation what its generator said.
func (o *Origins) Explained(e report.Explanation, s Subject, because *pb.Because, err error) report.Explanation {
	if err != nil {
		e.Unknown = err.Error()
		for _, r := range s.Session.Plugin.Ready.Reads {
			e.Reads = append(e.Reads, r.Table)
		}
		return e
	}
	written := o.Derivations()
	for _, n := range because.Rows {
		at := o.Origin(report.RowName{Table: n.Table, Key: n.Key})
		if of, derived := written[at.RowName]; derived {
			at.Of = &of
		}
		e.Rows = append(e.Rows, at)
	}
	for _, n := range because.Missing {
		e.Missing = append(e.Missing, report.RowName{Table: n.Table, Key: n.Key})
	}
	slices.SortStableFunc(e.Rows, func(a, b report.Origin) int { return state.CompareRows(a.RowName, b.RowName) })
	slices.SortStableFunc(e.Missing, state.CompareRows)
	e.Rows, e.Missing = slices.CompactFunc(e.Rows, func(a, b report.Origin) bool { return a.RowName == b.RowName }), slices.Compact(e.Missing)
	return e
}

// Origin says of a row where it comes from.
func (o *Origins) Origin(n report.RowName) report.Origin {
	name := environment.Name{Table: n.Table, Key: n.Key}
	row := o.state.Env.Committed.Row(name, false)
	if row == nil {
		return report.Origin{RowName: n, Gone: true}
	}
	at := report.Origin{RowName: n, Plugin: row.Shard, Source: row.Source, Revision: o.state.Env.Committed.Since(name)}
	at.Since = o.served(at.Revision)
	return at
}

// DerivedFrom are rows that plugins derived from a row, by where both come from.
func (o *Origins) DerivedFrom(of report.Origin) (through []report.RowName) {
	if of.Source == "" {
		return nil
	}
	for n, source := range o.state.Env.Committed.Derived(func(string) bool { return true }) {
		if source == of.Source {
			through = append(through, report.RowName{Table: n.Table, Key: n.Key})
		}
	}
	slices.SortFunc(through, state.CompareRows)
	return through
}

// Derivations are the objects that people wrote, by the rows of config kinds that plugins derived
// from them: both have one source.
func (o *Origins) Derivations() map[report.RowName]report.RowName {
	bySource := map[string][]report.RowName{}
	for n, source := range o.state.Env.Committed.Derived(func(table string) bool { return strings.Contains(table, "/") }) {
		if source != "" {
			bySource[source] = append(bySource[source], report.RowName{Table: n.Table, Key: n.Key})
		}
	}
	all := map[report.RowName]report.RowName{}
	if len(bySource) == 0 {
		return all
	}
	for _, table := range o.state.Env.Committed.Tables() {
		if !strings.Contains(table, "/") {
			continue
		}
		for key, row := range o.state.Env.Committed.Rows(table, true) {
			for _, n := range bySource[row.Source] {
				all[n] = report.RowName{Table: table, Key: key}
			}
		}
	}
	return all
}

// Subjects are the resources of all views that connections are in, each once: views that share a
// resource have it from the same rows.
func (o *Origins) Subjects() (all []Subject) {
	seen := map[*view.Body]bool{}
	for _, k := range o.state.Roster.Sorted() {
		s := o.state.Roster.Session(k.Name())
		if s == nil || !s.Generates() {
			continue
		}
		for _, v := range s.Maker.Views.All() {
			if v.Connections == 0 {
				continue
			}
			for _, b := range v.Snapshot().Known() {
				if !seen[b] {
					seen[b] = true
					all = append(all, Subject{Session: s, View: v, Type: v.Type, Name: b.Name(), Body: b})
				}
			}
		}
	}
	return all
}

// Affected says which connections have, or ask for, some of the resources.
func (o *Origins) Affected(subjects []Subject) (resources []report.Affected, proxies []string) {
	type name struct{ typeURL, name, plugin string }
	found := map[name]*report.Affected{}
	bodies := map[*view.Body]name{}
	for _, s := range subjects {
		n := name{s.Type, s.Name, s.Session.Name()}
		bodies[s.Body] = n
		if found[n] == nil {
			found[n] = &report.Affected{Type: s.Type, Name: s.Name, Plugin: n.plugin, Absent: true}
		}
		found[n].Absent = found[n].Absent && versionOf(s.Body) == ""
	}
	nodes := map[string]bool{}
	for _, conn := range o.state.Connections.All {
		mine := map[name]bool{}
		for url, at := range conn.Places.All() {
			sub := conn.Subs[url]
			note := func(b *view.Body) {
				if n, ok := bodies[b]; ok {
					mine[n] = true
				}
			}
			if sub.Wildcard {
				for _, b := range at.View.Snapshot().Known() {
					note(b)
				}
				continue
			}
			for _, wanted := range sub.Names {
				note(at.View.Snapshot().Get(wanted))
			}
		}
		for n := range mine {
			found[n].Proxies++
			nodes[conn.Peer.Node.GetId()] = true
		}
	}
	for _, a := range found {
		resources = append(resources, *a)
	}
	slices.SortFunc(resources, func(a, b report.Affected) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Plugin, b.Plugin))
	})
	return resources, slices.Sorted(maps.Keys(nodes))
}

// lastWord is a type without its package.
func lastWord(typeURL string) string { return typeURL[strings.LastIndexAny(typeURL, "/.")+1:] }

// words lists names; none: nothing.
func words(names []string) string {
	const most = 12
	switch {
	case len(names) == 0:
		return "nothing"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d others", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// near puts names that have a part of a name in front.
func near(names []string, of string) []string {
	like := func(n string) int {
		if strings.Contains(n, of) || strings.Contains(of, n) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(like(a), like(b)) })
	return names
}

// mostBlamed is how many rows are blamed for a resource that proxies refuse, where it is not known
// which of them changed.
const mostBlamed = 50

// Blamed are the rows, of those that a refused resource, or a piece of it, was made from, that
// changed when it did or, where that is not remembered or nothing of it did, all that people write:
// none of these if it was patched, for then the patch may be at fault.
func (o *Origins) Blamed(r *serving.Refused, because *pb.Because, patched bool) (rows []report.RowName) {
	var written []report.RowName
	sources := map[string]bool{}
	for _, n := range because.Rows {
		name := report.RowName{Table: n.Table, Key: n.Key}
		changed, known := o.state.Journal.ChangedSince(environment.Name{Table: n.Table, Key: n.Key}, r.After, r.Number)
		config := strings.Contains(n.Table, "/")
		if config {
			written = append(written, name)
		}
		switch {
		case known && changed && config:
			rows = append(rows, name)
		case known && changed:
			if row := o.state.Env.Committed.Row(environment.Name{Table: n.Table, Key: n.Key}, false); row != nil && row.Source != "" {
				sources[row.Source] = true
			}
		}
	}
	if len(rows) == 0 && len(sources) > 0 {
		written := o.Written()
		for source := range sources {
			rows = append(rows, written[source]...)
		}
	}
	if len(rows) == 0 && !patched {
		rows = written[:min(len(written), mostBlamed)]
	}
	slices.SortFunc(rows, state.CompareRows)
	return slices.Compact(rows)
}

// Progress says whom a row has reached.
func (o *Origins) Progress(name report.RowName) report.Progress {
	p := report.Progress{Row: o.Origin(name), Served: o.state.Course.Served.Number, Proxies: len(o.state.Connections.All), Waiting: []string{}}
	until := o.state.Journal.Carried(p.Row.Revision)
	if p.Row.Gone { // when it went is not known: with what is served by now
		until = p.Served
	}
	for _, conn := range o.state.Connections.Sorted() {
		if conn.OwesUntil(until) {
			p.Waiting = append(p.Waiting, conn.Peer.Node.GetId())
		}
	}
	return p
}
