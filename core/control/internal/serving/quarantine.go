package serving

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/control/internal/pieces"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// Quarantine knows which resources proxies refuse, and which pieces of them (package pieces).
// What a proxy refuses is left out for that proxy. For others it counts as a vote: where most
// identities of a namespace refuse a piece, the namespace's other proxies have it as most had it
// before, if it is one that may be held. docs/decisions/votes.md says why so.
type Quarantine struct {
	state   *state.State
	patches *Patches
	stale   func(conn *state.Connection, typeURL string)
	// off: nothing is held for others.
	off bool
	// OnRefused is called when pieces are known to be refused that were not: it is to be found out
	// from what they were made (Refused.Own). Optional.
	OnRefused func(*Refused, []Question)
	// of is what is refused of each view; count how much that is.
	of    map[*view.View]map[spot]*Refused
	count int
	store *pieces.Store
	// bytes is what each peer's connections have in place of what they refuse.
	bytes map[string]int
	// made are snapshots with what is served in place of what is refused; looked marks the views
	// whose refusals have been checked since connections were last shown anything.
	made   map[madeOf]*view.Snapshot
	looked map[patch.Key]bool
	// changes counts how often what Refusals says has become otherwise.
	changes uint64
}

// spot is a resource of a view, as a chain of patches leaves it: proxies of one view may have other
// patches, and refuse what these made.
type spot struct{ chain, name string }

// madeOf is a snapshot and what is in it instead.
type madeOf struct {
	of      *view.Snapshot
	instead string
}

// Changed notes that what is said of a refused resource is otherwise.
func (q *Quarantine) Changed() { q.changes++ }

const (
	// probation is how long a resource is held after the last proxy that refused it has gone.
	probation = 10 * time.Minute
	// again is after what time a change of a resource brings pieces again that a proxy refused.
	again = time.Minute
	// recount is how long votes are gathered before they are counted anew.
	recount = 100 * time.Millisecond
	// mostCounted is how many resources' votes are counted in one go.
	mostCounted = 100
	// mostQuarantined is how many resources are kept track of, mostNamed how many proxies are
	// named.
	mostQuarantined = 10_000
	mostNamed       = 10
	// mostOwned is of how many pieces of a resource it is found out from what they were made.
	mostOwned = 100
	// mostInstead is how many bytes one peer's connections have in place of what they refuse: what
	// is more is left out for them whole.
	mostInstead = 32 << 20
)

func newQuarantine(st *state.State, pt *Patches, off bool, spare []string) *Quarantine {
	return &Quarantine{
		state: st, patches: pt, off: off, of: map[*view.View]map[spot]*Refused{}, store: pieces.NewStore(spare...),
		bytes: map[string]int{}, made: map[madeOf]*view.Snapshot{}, looked: map[patch.Key]bool{},
	}
}

// at reports whether a connection gets a resource as others refuse it: it is in the view, after the
// same patches.
func (q *Quarantine) at(r *Refused, conn *state.Connection) bool {
	return conn.Places.View(r.View.Type) == r.View && q.patches.names(conn, r.View.Type) == r.Chain
}

// Note takes what a connection said to a response; had is the revision that it had accepted before.
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
	chain := q.patches.names(conn, o.Type)
	for is, r := range q.of[at.View] {
		if is.chain != chain {
			continue
		}
		q.accepted(conn, r, o.Has.Get(r.Body.Name()), o.Left != "")
	}
}

// accepted notes what a connection has of a name that others refuse, or it did; partly: its stream
// leaves out what it refuses of that.
func (q *Quarantine) accepted(conn *state.Connection, r *Refused, has *view.Body, partly bool) {
	switch x := r.by[conn.ID]; {
	case x == nil:
		q.doubt(r) // it may have accepted the resource
	case has == nil:
	case has.Version() == r.Body.Version():
		if !partly {
			q.forgive(r, conn)
		}
	case x.search != nil && !x.search.Ended() && has.Version() == x.search.Body().Version():
		x.carried = false
		q.step(conn, r, x, x.search.Accepted())
	}
}

// step goes on with a search whose client has answered.
func (q *Quarantine) step(conn *state.Connection, r *Refused, x *refuser, otherwise bool) {
	for otherwise && !x.search.Ended() { // what it has already, or has refused, is not sent again
		if x.had != nil && x.search.Body().Version() == x.had.Version() {
			otherwise = x.search.Accepted()
		} else if x.search.WasRefused() {
			otherwise = x.search.Refused()
		} else {
			break
		}
	}
	q.weigh(x)
	if x.search.Ended() {
		if len(x.search.Bad()) == 0 {
			q.forgive(r, conn)
		} else if r.kept != nil && slices.ContainsFunc(x.search.Bad(), func(p pieces.Piece) bool { return !slices.Contains(r.kept, p) }) {
			q.widen(r, x.number)
		}
		q.doubt(r)
	}
	q.stale(conn, r.View.Type)
}

func (q *Quarantine) refused(conn *state.Connection, s *state.Session, v *view.View, c xds.Culprit, o xds.Outcome, had uint64) {
	is := spot{q.patches.names(conn, v.Type), c.Body.Name()}
	r := q.of[v][is]
	if r != nil && r.by[conn.ID] != nil {
		if x := r.by[conn.ID]; x.search != nil && x.search.Body().Version() == c.Body.Version() {
			if x.carried { // something else is refused, too
				q.widen(r, o.Number)
				q.begin(conn, r, c, o, x.regular)
			} else {
				q.step(conn, r, x, x.search.Refused())
			}
			return
		}
	}
	shown, raw := q.patches.made.Last(patch.Key{View: v, Chain: is.chain})
	if made := shown.Get(is.name); made == nil || made.Version() != c.Body.Version() {
		return // of another view, or changed meanwhile
	}
	if r == nil || r.Body.Version() != c.Body.Version() {
		if r != nil {
			q.drop(r)
		}
		if q.count >= mostQuarantined && !q.room(conn.Caller.Voice) {
			return
		}
		r = &Refused{
			Session: s, View: v, Chain: is.chain, Body: c.Body, From: raw.Get(is.name),
			Reason: budget.Clip(o.Refused, state.MostDetail/16), Since: q.state.Clock.Now(),
			After: had, Number: o.Number, of: conn.Caller.Voice.Namespace, by: map[uint64]*refuser{}, book: q.store.Of(v.Type),
			owners: map[pieces.Piece][]report.RowName{},
		}
		q.add(r)
	}
	q.begin(conn, r, c, o, had > 0)
}

// begin begins to look for the pieces that a connection refuses.
func (q *Quarantine) begin(conn *state.Connection, r *Refused, c xds.Culprit, o xds.Outcome, regular bool) {
	x := &refuser{
		node: conn.Peer.Node.GetId(), voice: conn.Caller.Voice, had: c.Instead, regular: regular,
		reason: budget.Clip(o.Refused, state.MostDetail/16), since: q.state.Clock.Now(),
		number: o.Number,
	}
	x.peer = state.PeerKey(conn)
	if q.bytes[x.peer] < mostInstead {
		x.search = r.book.Search(r.Body, c.Instead, r.known())
	}
	q.forget(r, conn.ID)
	r.by[conn.ID], r.left = x, time.Time{}
	q.Changed()
	if x.search == nil {
		q.doubt(r)
		return
	}
	x.search.Refuses(c.Body)
	q.step(conn, r, x, true)
}

// widen notes that a resource is refused for what has changed until a later revision, too.
func (q *Quarantine) widen(r *Refused, number uint64) {
	if number <= r.Number {
		return
	}
	r.Number = number
}

// forgive notes that a connection refuses a resource no more.
func (q *Quarantine) forgive(r *Refused, conn *state.Connection) {
	q.forget(r, conn.ID)
	q.doubt(r)
	q.stale(conn, r.View.Type)
}

// weigh notes how large what a connection has instead is now.
func (q *Quarantine) weigh(x *refuser) {
	size := 0
	if x.search != nil {
		size = x.search.Body().Size(false)
	}
	if q.bytes[x.peer] += size - x.size; q.bytes[x.peer] <= 0 {
		delete(q.bytes, x.peer)
	}
	x.size = size
}

// forget forgets what a connection refuses of a resource, if it does.
func (q *Quarantine) forget(r *Refused, connection uint64) {
	if x := r.by[connection]; x != nil {
		x.search = nil
		q.weigh(x)
		delete(r.by, connection)
	}
}

// room makes room for one more resource, of those of the namespace that has most, unless that is
// the one that asks for it.
func (q *Quarantine) room(voice state.Voice) bool {
	count, some := map[string]int{}, map[string]*Refused{}
	for _, known := range q.of {
		for _, r := range known {
			count[r.of]++
			some[r.of] = r
		}
	}
	most := voice.Namespace
	for ns, n := range count {
		if n > count[most] {
			most = ns
		}
	}
	if most == voice.Namespace {
		return false
	}
	q.drop(some[most])
	return true
}

// add notes that something is refused.
func (q *Quarantine) add(r *Refused) {
	if q.of[r.View] == nil {
		q.of[r.View] = map[spot]*Refused{}
	}
	q.of[r.View][r.spot()] = r
	q.count++
	for _, x := range r.by {
		q.weigh(x)
	}
	q.Changed()
}

// Question is a piece of which it is asked from what it was made; Chain is the place of its filter
// chain, if it is in one. Patched: patches made it another one than the generator did, so that of
// the rows those alone may be at fault that changed when it did.
type Question struct {
	Piece   pieces.Piece
	Chain   int
	Patched bool
}

// attribute has it found out from what the pieces were made that are known to be refused.
func (q *Quarantine) attribute(r *Refused) {
	if q.OnRefused == nil {
		return
	}
	var asked []Question
	accused := r.accused(maps.Values(r.by))
	for _, p := range accused[:min(len(accused), mostOwned)] {
		if _, known := r.owners[p]; !known {
			r.owners[p] = nil
			if r.patched() && !r.book.Has(r.From, p) {
				continue // a patch added it
			}
			asked = append(asked, Question{p, r.book.Place(r.From, p), r.patched() && !r.book.Same(r.From, r.Body, p)})
		}
	}
	if len(asked) > 0 {
		q.OnRefused(r, asked)
	}
}

// drop notes that something is refused no more.
func (q *Quarantine) drop(r *Refused) {
	for id := range r.by {
		q.forget(r, id)
	}
	if delete(q.of[r.View], r.spot()); len(q.of[r.View]) == 0 {
		delete(q.of, r.View)
	}
	q.count--
	q.Changed()
}

// doubt has the votes about a resource counted anew, soon.
func (q *Quarantine) doubt(r *Refused) {
	if !r.stale {
		r.stale = true
		q.state.Course.Ring()
	}
}

// judge counts the votes about a resource, and decides what is held of it for which namespaces.
func (q *Quarantine) judge(r *Refused) {
	before := r.tallies
	q.take(r)
	for _, ns := range slices.Sorted(maps.Keys(union(before, r.tallies))) {
		was, is := before[ns], r.tallies[ns]
		if was.instead.Same(is.instead) {
			continue
		}
		q.spoil(r.View, ns)
		q.state.Log.Warn("a resource that proxies refuse", "held", is.instead != nil, "namespace", ns, "type",
			r.View.Type, "resource", r.Body.Name(), "pieces", words(is.out), "patches", strings.TrimSpace(r.Chain),
			"view", r.View.Label, "refusing", is.refusing, "voters", is.voters, "reason", r.Reason)
	}
}

// take counts the votes about a resource. What is held while nobody is connected who refuses it is
// held until its time is over.
func (q *Quarantine) take(r *Refused) {
	r.stale, r.counted = false, q.state.Clock.Now()
	for id := range r.by {
		if conn := q.state.Connections.All[id]; conn != nil && !q.at(r, conn) {
			q.forget(r, id)
		}
	}
	next := r.count(q.state.Connections.All, q.at)
	for ns, t := range next {
		if q.off {
			t.instead, t.out = nil, nil
			next[ns] = t
		}
	}
	if len(r.by) == 0 {
		for ns, t := range r.tallies {
			if t.instead != nil && next[ns].taken == 0 {
				t.refusing, t.voters = 0, next[ns].voters
				next[ns] = t
			}
		}
	}
	r.tallies = next
	q.Changed()
	q.attribute(r)
}

func union(a, b map[string]tally) map[string]tally {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]tally{}
	}
	maps.Copy(out, b)
	return out
}

// words says which pieces, for people.
func words(of []pieces.Piece) string {
	var out []string
	for _, p := range of[:min(len(of), mostNamed)] {
		out = append(out, p.String())
	}
	if len(of) > mostNamed {
		out = append(out, fmt.Sprintf("and %d more", len(of)-mostNamed))
	}
	return strings.Join(out, ", ")
}

// spoil has the connections of a view and a namespace shown it anew.
func (q *Quarantine) spoil(v *view.View, namespace string) {
	q.shown()
	for _, conn := range q.state.Connections.All {
		if conn.Caller.Voice.Namespace == namespace && conn.Places.View(v.Type) == v {
			q.stale(conn, v.Type)
		}
	}
}

// shown forgets what is kept while connections are shown something.
func (q *Quarantine) shown() {
	clear(q.made)
	clear(q.looked)
}

// screened is what a connection of a view gets of a snapshot of it: of what it refuses it has what
// it accepts, of what is held for its namespace what that had before, unless it has accepted the
// resource. What is another one now is refused no more.
func (q *Quarantine) screened(conn *state.Connection, v *view.View, snap *view.Snapshot) *view.Snapshot {
	if q.count == 0 || snap == nil {
		return snap
	}
	chain := q.patches.names(conn, v.Type)
	q.look(conn.Places.At(v.Type).Session, patch.Key{View: v, Chain: chain}, snap)
	var instead []*view.Body
	for is, r := range q.of[v] {
		if is.chain != chain {
			if r.by[conn.ID] != nil { // it has other patches now
				q.forget(r, conn.ID)
				q.doubt(r)
			}
		} else if b := r.instead(conn); b != nil {
			instead = append(instead, b)
		}
	}
	if len(instead) == 0 {
		return snap
	}
	slices.SortFunc(instead, func(a, b *view.Body) int { return strings.Compare(a.Name(), b.Name()) })
	var key strings.Builder
	for _, b := range instead {
		key.WriteString(b.Name() + "\x00" + b.Version() + "\x00")
	}
	made := q.made[madeOf{snap, key.String()}]
	if made == nil {
		made = snap.With(instead)
		q.made[madeOf{snap, key.String()}] = made
	}
	return made
}

// instead is what a connection gets in place of a resource; nil: the resource.
func (r *Refused) instead(conn *state.Connection) *view.Body {
	if x := r.by[conn.ID]; x != nil {
		return x.body()
	}
	t := r.tallies[conn.Caller.Voice.Namespace]
	if !conn.Caller.Voice.Votes() || t.instead == nil {
		return nil
	}
	if has := conn.Outcomes[r.View.Type].Has.Get(r.Body.Name()); has != nil && has.Version() == r.Body.Version() {
		return nil
	}
	return t.instead
}

// look makes what is known of a view's refusals fit what it has now (snap, after its patches): what
// has changed is refused no more.
func (q *Quarantine) look(s *state.Session, k patch.Key, snap *view.Snapshot) {
	if q.looked[k] {
		return
	}
	q.looked[k] = true
	q.follow(s, k, snap)
	for is, r := range maps.Clone(q.of[k.View]) {
		if is.chain != k.Chain {
			continue
		}
		now := snap.Get(is.name)
		if now != nil && now.Exists() && now.Version() == r.Body.Version() {
			continue
		}
		var next *Refused
		if now != nil && now.Exists() {
			next = r.goes(s, k.View, now, q.state.Connections.All, q.state.Clock.Now())
		}
		if q.drop(r); next != nil {
			q.add(next)
			q.take(next)
		}
	}
}

// follow applies to a view what is known of one that it takes the place of: the plugin was swapped,
// or started anew, or all proxies of the view were gone for a moment.
func (q *Quarantine) follow(s *state.Session, k patch.Key, snap *view.Snapshot) {
	v := k.View
	var next []*Refused
	for old, known := range q.of {
		if old == v || !replaces(known, s, v) {
			continue
		}
		for is, r := range known {
			if made := snap.Get(is.name); is.chain == k.Chain && made != nil && made.Version() == r.Body.Version() {
				n := *r
				n.Session, n.View, n.From, n.by, n.tallies, n.stale = s, v, v.Snapshot().Get(is.name), map[uint64]*refuser{}, maps.Clone(r.tallies), true
				n.owners = r.owned()
				for id, x := range r.by {
					c := *x
					c.size = 0
					n.by[id] = &c
				}
				next = append(next, &n)
			}
		}
	}
	for _, r := range next {
		if q.of[v][r.spot()] == nil && q.count < mostQuarantined {
			q.add(r)
		}
	}
}

// replaces reports whether a view is what that of refused resources was, as its plugin names it.
func replaces(known map[spot]*Refused, s *state.Session, v *view.View) bool {
	for _, r := range known {
		return s != nil && v.Type == r.View.Type && s.Name() == r.Session.Name() && (s != r.Session || r.View.Unused()) &&
			v.Label == r.View.Label && maps.Equal(v.Facts, r.View.Facts)
	}
	return false
}

// Moved notes that a connection is in another view now.
func (q *Quarantine) Moved(conn *state.Connection, from *view.View) {
	for _, r := range q.of[from] {
		if r.by[conn.ID] != nil {
			q.doubt(r)
		}
	}
}

// Left notes that a connection is about to go.
func (q *Quarantine) Left(conn *state.Connection) {
	for v, known := range q.of {
		for _, r := range known {
			if r.by[conn.ID] != nil || conn.Caller.Voice.Votes() && conn.Places.View(v.Type) == v {
				if r.stale && len(r.by) == 1 && r.by[conn.ID] != nil && conn.Caller.Voice.Votes() {
					q.take(r) // with what it said, for it is the last
				}
				q.forget(r, conn.ID)
				q.doubt(r)
			}
		}
	}
}

// Expire counts votes, lets go of what nobody refuses any more who is connected, after a while, and
// reports whether anything is to be shown anew.
func (q *Quarantine) Expire(now time.Time, at func(time.Time)) (any bool) {
	counted := 0
	for v, known := range q.of {
		for _, r := range known {
			switch due := r.counted.Add(recount); {
			case !r.stale:
			case now.Before(due):
				at(due)
			case counted == mostCounted:
				at(now.Add(recount))
			default:
				counted++
				q.judge(r)
				any = true
			}
			if r.left.IsZero() && (len(r.by) == 0 || v.Connections == 0) {
				for id := range r.by {
					q.forget(r, id)
				}
				r.left = now
			}
			switch due := r.left.Add(probation); {
			case r.left.IsZero():
			case (r.held() || r.kept != nil) && now.Before(due):
				at(due)
			default:
				held := r.tallies
				q.drop(r)
				for ns := range held {
					q.spoil(v, ns)
				}
				any = true
			}
		}
	}
	return any
}
