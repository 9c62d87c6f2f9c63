package serving

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/pieces"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// Refused is a resource of a view that proxies refuse.
type Refused struct {
	Session *state.Session
	View    *view.View
	// Chain are the patches that the view went through for these proxies (patch.Names), Body what
	// they made of the resource, and From what the generator did; nil: a patch added it.
	Chain  string
	Body   *view.Body
	From   *view.Body
	Reason string
	Since  time.Time
	// After and Number are the revisions that the first proxy had, and was sent.
	After, Number uint64
	// owners are the rows that pieces were made from which are known to be refused; nil: that is
	// not known, or asked.
	owners map[pieces.Piece][]report.RowName

	// of is the namespace of the connection that refused it first.
	of string
	// by are the connections that refuse it.
	by map[uint64]*refuser
	// tallies are what each namespace says of it.
	tallies map[string]tally
	// kept are pieces that were refused when it was known from what (After, Number): they are sent
	// once more, and whoever refuses them again refuses them for that.
	kept []pieces.Piece
	book pieces.Book
	// stale: votes are to be counted anew, which they were last at a time.
	stale   bool
	counted time.Time
	left    time.Time // since when none of those that refuse it is connected
}

// refuser is a connection that refuses a resource, and what it has in its place.
type refuser struct {
	node  string
	voice state.Voice
	// peer is whose room its body takes.
	peer string
	size int
	// had is what it had accepted of the name before; nil: nothing. regular: it had accepted pushes
	// of the type.
	had     *view.Body
	regular bool
	// search is for the pieces that it refuses; nil: the resource is one. carried: it was begun
	// before the resource changed, which left these as they were, and nothing was accepted since.
	search  *pieces.Search
	carried bool
	// other: it was sent something in place of the resource.
	other  bool
	reason string
	// number is the revision that it refused.
	number uint64
	since  time.Time
}

// body is what the connection is sent in place of the resource; nil: that itself, which its stream
// leaves out. So it is where the connection has all already that it accepts.
func (r *refuser) body() *view.Body {
	if r.search == nil {
		return nil
	}
	b := r.search.Body()
	if !r.other && r.had != nil && b.Version() == r.had.Version() {
		return nil
	}
	r.other = true
	return b
}

// refuses reports whether it is known to refuse something of the resource as it is now.
func (r *refuser) refuses() bool { return r.search == nil || !r.search.Innocent() }

// bad are the pieces that it is known to refuse.
func (r *refuser) bad() []pieces.Piece {
	if r.search == nil {
		return []pieces.Piece{pieces.Whole}
	}
	return r.search.Bad()
}

// tally is what a namespace says of a resource.
type tally struct {
	// voters are the identities of the namespace that have proxies in the view, and a vote; so many
	// of them refuse it.
	voters, refusing int
	// taken is how many of them have accepted it.
	taken int
	// out are the pieces that most of them refuse, and may be held; instead is what the others of
	// the namespace have in place of the resource; nil: nothing is held.
	out     []pieces.Piece
	instead *view.Body
}

// ballot is what the connections of an identity say.
type ballot struct {
	streams, refusing, taken int
	regular                  bool
	had                      *view.Body
	bad                      map[pieces.Piece]int
}

// votes reports whether the identity has a vote, and refuses whether most of its connections do.
func (b *ballot) votes() bool   { return b.regular }
func (b *ballot) refuses() bool { return 2*b.refusing > b.streams }

// count counts what the connections of a view say of the resource.
func (r *Refused) count(all map[uint64]*state.Connection, at func(*Refused, *state.Connection) bool) map[string]tally {
	heard := false
	for _, x := range r.by {
		heard = heard || x.voice.Votes()
	}
	if !heard && !r.held() {
		return nil
	}
	ballots := map[string]map[string]*ballot{}
	for id, conn := range all {
		if !conn.Caller.Voice.Votes() || !at(r, conn) {
			continue
		}
		of := ballots[conn.Caller.Voice.Namespace]
		if of == nil {
			of = map[string]*ballot{}
			ballots[conn.Caller.Voice.Namespace] = of
		}
		b := of[conn.Caller.Voice.Identity]
		if b == nil {
			b = &ballot{bad: map[pieces.Piece]int{}}
			of[conn.Caller.Voice.Identity] = b
		}
		b.take(r, r.by[id], conn.Outcomes[r.View.Type])
	}
	out := map[string]tally{}
	for ns, of := range ballots {
		out[ns] = r.tally(of)
	}
	return out
}

// take counts what one connection says.
func (b *ballot) take(r *Refused, x *refuser, last state.Outcome) {
	b.streams++
	had := last.Has.Get(r.Body.Name())
	if x == nil {
		b.regular = b.regular || last.Acked != ""
	} else {
		b.regular, had = b.regular || x.regular, x.had
	}
	if x != nil && x.refuses() {
		b.refusing++
		for _, p := range x.bad() {
			b.bad[p]++
		}
	}
	if x == nil && had != nil && had.Version() == r.Body.Version() {
		b.taken++
	}
	if b.had == nil && had != nil && had.Exists() && had.Version() != r.Body.Version() {
		b.had = had
	}
}

// tally decides what is held for a namespace: what more than half of its voters refuse, as more
// than half of them had it before.
func (r *Refused) tally(of map[string]*ballot) (t tally) {
	had, bodies, bad := map[string]int{}, map[string]*view.Body{}, map[pieces.Piece]int{}
	for _, b := range of {
		if !b.votes() {
			continue
		}
		t.voters++
		if b.taken > 0 {
			t.taken++
		}
		if b.had != nil {
			had[b.had.Version()]++
			bodies[b.had.Version()] = b.had
		}
		if !b.refuses() {
			continue
		}
		t.refusing++
		for p, n := range b.bad {
			if 2*n > b.streams {
				bad[p]++
			}
		}
	}
	if 2*t.refusing <= t.voters {
		return t
	}
	for version, n := range had {
		if 2*n > t.voters {
			t.hold(r, bodies[version], bad)
		}
	}
	return t
}

// hold holds the pieces that most voters refuse as they were in a body, as far as they may be held.
func (t *tally) hold(r *Refused, before *view.Body, bad map[pieces.Piece]int) {
	for p, n := range bad {
		if 2*n > t.voters && r.book.Holdable(r.Body, before, p) {
			t.out = append(t.out, p)
		}
	}
	switch {
	case len(t.out) == 0:
	case slices.Contains(t.out, pieces.Whole):
		t.instead = before
	default:
		slices.SortFunc(t.out, pieces.Compare)
		t.instead = r.book.Variant(r.Body, before, t.out)
	}
}

// accused are the pieces whose owners are told: those that connections with a vote refuse, or all
// where none of these has one, and those that are held.
func (r *Refused) accused(by iter.Seq[*refuser]) []pieces.Piece {
	all, voted := map[pieces.Piece]bool{}, map[pieces.Piece]bool{}
	for x := range by {
		if !x.refuses() {
			continue
		}
		for _, p := range x.bad() {
			all[p] = true
			if x.voice.Votes() && x.regular {
				voted[p] = true
			}
		}
	}
	if len(voted) > 0 {
		all = voted
	}
	for _, t := range r.tallies {
		if t.instead != nil {
			for _, p := range t.out {
				all[p] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), pieces.Compare)
}

// Own notes the rows that a piece was made from.
func (r *Refused) Own(p pieces.Piece, rows []report.RowName) { r.owners[p] = rows }

// owned are the owners that are known. What is asked still is asked anew of what comes after.
func (r *Refused) owned() map[pieces.Piece][]report.RowName {
	out := maps.Clone(r.owners)
	maps.DeleteFunc(out, func(_ pieces.Piece, rows []report.RowName) bool { return len(rows) == 0 })
	return out
}

// Current reports whether the generator has it as it was when it was refused.
func (r *Refused) Current() bool {
	now := r.View.Snapshot().Get(r.Body.Name())
	return now != nil && r.From != nil && now.Version() == r.From.Version()
}

func (r *Refused) spot() spot { return spot{r.Chain, r.Body.Name()} }

// patched reports whether patches made it otherwise than the generator did.
func (r *Refused) patched() bool { return r.From == nil || r.From.Version() != r.Body.Version() }

// known are the pieces that some connections were found to refuse.
func (r *Refused) known() []pieces.Piece {
	bad, asked := map[pieces.Piece]bool{}, 0
	for _, x := range r.by {
		for _, p := range x.bad() {
			bad[p] = true
		}
		if asked++; asked == mostNamed {
			break
		}
	}
	return slices.SortedFunc(maps.Keys(bad), pieces.Compare)
}

// held reports whether something is held for a namespace.
func (r *Refused) held() bool {
	for _, t := range r.tallies {
		if t.instead != nil {
			return true
		}
	}
	return false
}

// goes says what is known of it once the view has another body: those connections still refuse what
// they refused that is the same in it, and of what is being looked for, what was not seen to be
// accepted is left out first, so that what is new is served, and judged, by itself. nil: nothing is
// known.
func (r *Refused) goes(s *state.Session, v *view.View, now *view.Body, all map[uint64]*state.Connection, at time.Time) *Refused {
	n := *r
	n.Session, n.View, n.Body, n.From, n.by, n.stale = s, v, now, v.Snapshot().Get(now.Name()), map[uint64]*refuser{}, true
	n.owners = r.owned()
	maps.DeleteFunc(n.owners, func(p pieces.Piece, _ []report.RowName) bool {
		return p == pieces.Whole || !r.book.Same(r.Body, now, p)
	})
	n.kept = r.still(r.kept, now)
	for id, x := range r.by {
		if at.Sub(x.since) >= again {
			n.kept = append(n.kept, r.still(x.bad(), now)...)
			continue
		}
		c := *x
		c.size, c.carried = 0, true
		if c.search = r.moved(x, now, all[id]); c.search != nil {
			n.by[id] = &c
		}
	}
	slices.SortFunc(n.kept, pieces.Compare)
	n.kept = slices.Compact(n.kept)
	switch {
	case len(n.by) > 0:
		n.tallies = maps.Clone(r.tallies)
	case len(n.kept) > 0:
		n.tallies, n.left, n.stale = nil, at, false
	default:
		return nil
	}
	return &n
}

// still are those of some pieces that are the same in another body of the resource.
func (r *Refused) still(of []pieces.Piece, now *view.Body) []pieces.Piece {
	return slices.DeleteFunc(slices.Clone(of), func(p pieces.Piece) bool { return p == pieces.Whole || !r.book.Same(r.Body, now, p) })
}

// moved is a connection's search in another body of the resource; nil: nothing is known of that.
func (r *Refused) moved(x *refuser, now *view.Body, conn *state.Connection) *pieces.Search {
	if x.search == nil {
		return nil
	}
	if x.search.Ended() {
		if bad := r.still(x.search.Bad(), now); len(bad) > 0 {
			return r.book.Known(now, x.had, bad)
		}
		return nil
	}
	before := x.search.Suspects()
	suspects := r.still(before, now)
	if len(suspects) == 0 || conn == nil {
		return nil
	}
	has := conn.Outcomes[r.View.Type].Has.Get(r.Body.Name())
	if has == nil || !has.Exists() {
		return nil
	}
	next := r.book.Resume(now, has, suspects, len(suspects) == len(before))
	if next == nil || next.Ended() && len(next.Bad()) == 0 {
		return nil
	}
	return next
}
