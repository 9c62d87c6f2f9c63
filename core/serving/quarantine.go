package serving

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/state"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// Quarantine knows which resources proxies refuse. Where most of a view's proxies that have
// answered do, it holds the resource at what they accepted before, for all proxies of the view,
// until it is another one. What one proxy of many refuses is left out for that one alone, which
// core/xds does.
type Quarantine struct {
	state *state.State
	stale func(conn *state.Connection, typeURL string)
	// off: nothing is held for others.
	off bool
	// OnRefused is called when a resource is refused that was not; optional.
	OnRefused func(*Refused)
	// of is what is refused of each view; count how much that is.
	of    map[*view.View]*refusals
	count int
	// made are snapshots with what is served instead, looked the views whose refusals are as what
	// they have now: since connections were last shown anything.
	made   map[*view.Snapshot]*view.Snapshot
	looked map[*view.View]bool
	// changes counts how often what Refusals says has become otherwise.
	changes uint64
}

// Changed notes that what is said of a refused resource is otherwise.
func (q *Quarantine) Changed() { q.changes++ }

// refusals are what connections refuse of a view.
type refusals struct {
	names map[string]*Refused
	// by is of how many of them each connection is one that refuses.
	by map[uint64]int
}

// Refused is a resource of a view that proxies refuse.
type Refused struct {
	Session *state.Session
	View    *view.View
	Body    *view.Body
	// Instead is what a proxy accepted of the name before; nil: nothing.
	Instead *view.Body
	Reason  string
	Since   time.Time
	// After and Number are the revisions that the first proxy had, and was sent.
	After, Number uint64
	// Rows are what it was made from, once that is known.
	Rows []report.RowName

	held bool
	by   map[uint64]string // connections that refuse it, and their nodes
	took map[uint64]bool   // those that have accepted it
	left time.Time         // since when none of those that refuse it is connected
}

const (
	// probation is how long a resource is held after the last proxy that refused it has gone.
	probation = 10 * time.Minute
	// mostQuarantined is how many resources are kept track of, mostNamed how many proxies are
	// named.
	mostQuarantined = 10_000
	mostNamed       = 10
)

func newQuarantine(st *state.State, off bool) *Quarantine {
	return &Quarantine{
		state: st, off: off, of: map[*view.View]*refusals{}, made: map[*view.Snapshot]*view.Snapshot{}, looked: map[*view.View]bool{},
	}
}

// Note takes what a connection said to a response.
func (q *Quarantine) Note(conn *state.Connection, o xds.Outcome, had uint64) {
	at := conn.Places.At(o.Type)
	if at.View == nil {
		return
	}
	for _, c := range o.Culprits {
		q.refused(conn, at.Session, at.View, c, o, had)
	}
	if o.Refused != "" {
		return
	}
	for _, r := range q.known(at.View).names {
		r.answered(conn)
		q.judge(r)
	}
}

// answered notes whether a connection of the view has accepted what others refuse.
func (r *Refused) answered(conn *state.Connection) {
	b := conn.Outcomes[r.View.Type].Has.Get(r.Body.Name())
	if b != nil && b.Version() == r.Body.Version() && r.by[conn.ID] == "" {
		r.took[conn.ID] = true
	} else {
		delete(r.took, conn.ID)
	}
}

func (q *Quarantine) refused(conn *state.Connection, s *state.Session, v *view.View, c xds.Culprit, o xds.Outcome, had uint64) {
	if made := v.Snapshot().Get(c.Body.Name()); made == nil || made.Version() != c.Body.Version() {
		return // of another view, or changed meanwhile, or made by a patch
	}
	r := q.known(v).names[c.Body.Name()]
	if r == nil || r.Body.Version() != c.Body.Version() {
		if r != nil {
			q.drop(r)
		}
		if q.count >= mostQuarantined {
			return
		}
		r = &Refused{
			Session: s, View: v, Body: c.Body, Instead: c.Instead, Reason: budget.Clip(o.Refused, state.MostDetail/16), Since: q.state.Clock.Now(),
			After: had, Number: o.Number, by: map[uint64]string{}, took: map[uint64]bool{},
		}
		for _, other := range q.state.Connections.All {
			if other.Places.View(v.Type) == v {
				r.answered(other)
			}
		}
		q.add(r)
	}
	if r.Instead == nil {
		r.Instead = c.Instead
	}
	if r.by[conn.ID] == "" {
		q.of[v].by[conn.ID]++
	}
	r.by[conn.ID], r.left = conn.Peer.Node.GetId(), time.Time{}
	delete(r.took, conn.ID)
	q.judge(r)
}

// known is what is refused of a view.
func (q *Quarantine) known(v *view.View) refusals {
	if r := q.of[v]; r != nil {
		return *r
	}
	return refusals{}
}

// add notes that something is refused.
func (q *Quarantine) add(r *Refused) {
	known := q.of[r.View]
	if known == nil {
		known = &refusals{names: map[string]*Refused{}, by: map[uint64]int{}}
		q.of[r.View] = known
	}
	known.names[r.Body.Name()] = r
	for conn := range r.by {
		known.by[conn]++
	}
	q.count++
	q.Changed()
	if q.OnRefused != nil && r.Rows == nil {
		q.OnRefused(r)
	}
}

// drop notes that something is refused no more.
func (q *Quarantine) drop(r *Refused) {
	known := q.of[r.View]
	for conn := range r.by {
		known.left(conn)
	}
	if delete(known.names, r.Body.Name()); len(known.names) == 0 {
		delete(q.of, r.View)
	}
	q.count--
	q.Changed()
}

// left notes that a connection refuses one resource less.
func (known *refusals) left(conn uint64) {
	if known.by[conn]--; known.by[conn] <= 0 {
		delete(known.by, conn)
	}
}

// judge decides whether a resource is held: where more proxies refuse it than have accepted it, and
// it is not one of several alone.
func (q *Quarantine) judge(r *Refused) {
	refusing := len(r.by)
	held := !q.off && refusing > len(r.took) && (refusing > 1 || refusing >= r.View.Connections)
	if refusing == 0 {
		held = r.held // until its time is over
	}
	held = held && r.Instead != nil // otherwise there is nothing to serve instead
	if held != r.held {
		r.held = held
		q.Changed()
		q.spoil(r.View)
		q.state.Log.Warn("a resource that proxies refuse", "held", held, "type", r.View.Type, "resource", r.Body.Name(), "view", r.View.Label, "refusing", refusing, "reason", r.Reason)
	}
}

// spoil has the connections of a view shown it anew.
func (q *Quarantine) spoil(v *view.View) {
	q.shown()
	for _, conn := range q.state.Connections.All {
		if conn.Places.View(v.Type) == v {
			q.stale(conn, v.Type)
		}
	}
}

// shown forgets what is kept while connections are shown something.
func (q *Quarantine) shown() {
	clear(q.made)
	clear(q.looked)
}

// screened is what a connection of a view gets of a snapshot of it: what is held is as it was
// before. Those that refuse it are not sent it again in any case. What is another one now is
// refused no more.
func (q *Quarantine) screened(conn *state.Connection, v *view.View, snap *view.Snapshot) *view.Snapshot {
	if q.count == 0 || snap == nil {
		return snap
	}
	q.look(conn.Places.At(v.Type).Session, v)
	known := q.of[v]
	if known == nil {
		return snap
	}
	refuses := known.by[conn.ID] > 0
	if made := q.made[snap]; made != nil && !refuses {
		return made
	}
	var instead []*view.Body
	for _, r := range known.names {
		if r.held && r.by[conn.ID] == "" {
			instead = append(instead, r.Instead)
		}
	}
	made := snap
	if len(instead) > 0 {
		made = snap.With(instead)
	}
	if !refuses {
		q.made[snap] = made
	}
	return made
}

// look makes what is known of a view's refusals fit what it has now: what has changed is refused no
// more.
func (q *Quarantine) look(s *state.Session, v *view.View) {
	if q.looked[v] {
		return
	}
	q.looked[v] = true
	q.follow(s, v)
	raw := v.Snapshot()
	for name, r := range q.known(v).names {
		if now := raw.Get(name); now == nil || !now.Exists() || now.Version() != r.Body.Version() {
			q.drop(r)
		}
	}
}

// follow applies to a view what is known of one that it takes the place of: the plugin was swapped,
// or started anew, or all proxies of the view were gone for a moment.
func (q *Quarantine) follow(s *state.Session, v *view.View) {
	var next []*Refused
	for old, known := range q.of {
		if old == v || !replaces(known, s, v) {
			continue
		}
		for name, r := range known.names {
			if made := v.Snapshot().Get(name); made != nil && made.Version() == r.Body.Version() {
				n := *r
				n.Session, n.View, n.by, n.took = s, v, maps.Clone(r.by), maps.Clone(r.took)
				next = append(next, &n)
			}
		}
	}
	for _, r := range next {
		if q.known(v).names[r.Body.Name()] == nil && q.count < mostQuarantined {
			q.add(r)
		}
	}
}

// replaces reports whether a view is what that of refused resources was, as its plugin names it.
func replaces(known *refusals, s *state.Session, v *view.View) bool {
	for _, r := range known.names {
		return s != nil && v.Type == r.View.Type && s.Name() == r.Session.Name() && (s != r.Session || r.View.Unused()) &&
			v.Label == r.View.Label && maps.Equal(v.Facts, r.View.Facts)
	}
	return false
}

// Left notes that a connection has gone.
func (q *Quarantine) Left(conn *state.Connection) {
	for _, known := range q.of {
		for _, r := range known.names {
			delete(r.by, conn.ID)
			delete(r.took, conn.ID)
		}
		delete(known.by, conn.ID)
	}
}

// Expire lets go of what nobody refuses any more who is connected, after a while, and reports
// whether anything is to be shown anew.
func (q *Quarantine) Expire(now time.Time, at func(time.Time)) (any bool) {
	for v, known := range q.of {
		for _, r := range known.names {
			if r.left.IsZero() && (len(r.by) == 0 || v.Connections == 0) {
				for conn := range r.by {
					known.left(conn)
				}
				clear(r.by)
				r.left = now
			}
			switch due := r.left.Add(probation); {
			case r.left.IsZero():
			case now.Before(due):
				at(due)
			default:
				q.drop(r)
				q.spoil(v)
				any = true
			}
		}
	}
	return any
}

// Of says why a connection refuses something of a type; empty: it refuses nothing.
func (q *Quarantine) Of(connection uint64, typeURL string) string {
	for v, known := range q.of {
		if v.Type != typeURL || known.by[connection] == 0 {
			continue
		}
		for _, r := range known.names {
			if r.by[connection] != "" {
				return r.Reason
			}
		}
	}
	return ""
}

// Since says of a resource that is refused by a connected proxy, and is of a revision after one,
// which it is; empty: there is none.
func (q *Quarantine) Since(number uint64) string {
	for v, refused := range q.of {
		for name, r := range refused.names {
			if r.Number <= number || v.Connections == 0 {
				continue
			}
			for _, node := range r.by {
				return fmt.Sprintf("%s refuses %s: %s", node, name, r.Reason)
			}
		}
	}
	return ""
}

// Refusals says which resources are refused.
func (q *Quarantine) Refusals() []report.Refusal {
	out := []report.Refusal{}
	for v, known := range q.of {
		for name, r := range known.names {
			if now := q.state.Roster.Session(r.Session.Name()); v.Connections == 0 && now != nil && now != r.Session {
				continue // kept for those who come to the view that took its place
			}
			out = append(out, r.report(name))
		}
	}
	slices.SortFunc(out, func(a, b report.Refusal) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.View.ID, b.View.ID))
	})
	return out
}

func (r *Refused) report(name string) report.Refusal {
	v := r.View
	out := report.Refusal{
		Type: v.Type, Name: name, Plugin: r.Session.Name(), Version: r.Body.Version(), Reason: r.Reason, Since: r.Since.UTC(),
		View: report.PlacedView{ID: v.ID, Label: v.Label, Facts: v.Facts, Connections: v.Connections},
		Held: r.held, Refusing: len(r.by), Rows: slices.Clone(r.Rows), Proxies: []string{},
	}
	if r.Instead != nil {
		out.Instead = r.Instead.Version()
	}
	for _, node := range r.by {
		out.Proxies = append(out.Proxies, node)
	}
	slices.Sort(out.Proxies)
	out.Proxies = out.Proxies[:min(len(out.Proxies), mostNamed)]
	return out
}
