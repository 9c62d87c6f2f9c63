package pieces

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// Search finds out which pieces of a resource a client refuses that has refused the resource. Body
// is what the client is to be sent next in its place; Refused and Accepted take what it says to
// that. Between, what it accepts is what it has.
type Search struct {
	book        Book
	now, before *view.Body
	// changed are the pieces that are otherwise than before; any: the client has accepted some
	// body.
	changed []Piece
	any     bool
	// out are the pieces that the next body is without, waiting those of them that are to be tried
	// in groups, the last one first, and trying the group that the next body has.
	out     []Piece
	waiting [][]Piece
	trying  []Piece
	// innocent: it may be that no piece is refused.
	innocent bool
	// dropped: not even closed chains stand for those that are new.
	dropped bool
	state   state
	trials  int
	body    *view.Body
	// no are the versions of bodies that the client has refused.
	no map[string]bool
}

type state int

const (
	guess state = iota // the resource without what is likely to be refused is tried
	base               // the resource with all pieces as before is tried
	parts              // groups of pieces are tried
	found
	whole // the client refuses the rest of the resource, too
)

// mostTrials is how often parts of a resource are sent: then what was not accepted is refused.
const mostTrials = 60

// Search begins a search in a resource that a client has refused, and before which it had accepted
// another one (nil: none). likely are pieces that others were found to refuse: they are left out
// first, and each is asked about all the same, so that a client has all that it accepts as soon as
// it has anything. It is nil where the resource can't be taken apart: it is refused as a whole.
func (b Book) Search(now, before *view.Body, likely []Piece) *Search {
	if b.open(now) == nil {
		return nil
	}
	p := b.pair(before, now)
	changed := p.differ()
	if len(changed) == 0 {
		return nil
	}
	s := &Search{book: b, now: now, before: before, changed: changed, no: map[string]bool{}}
	if out := likelyOf(p, changed, likely); len(out) > 0 && len(out) < mostPieces {
		s.out = out
		s.make()
	} else if s.begin(); s.state == whole {
		return nil
	}
	return s
}

// Resume begins a search in a resource that came in the place of one that was searched, of which
// the client has accepted something (before), and suspects were left. They are left out first, and
// then asked about; all says that no more were left, so that one of them is refused.
func (b Book) Resume(now, before *view.Body, suspects []Piece, all bool) *Search {
	s := b.Search(now, before, suspects)
	if s == nil || s.state != guess {
		return nil
	}
	s.innocent = !all
	if s.body.Version() == before.Version() {
		s.Accepted() // what it has already is not sent again
	}
	return s
}

// begin begins without a guess. A client that has nothing is not sent a resource with no piece in
// it: half of them are tried at once.
func (s *Search) begin() bool {
	s.out, s.waiting, s.innocent = s.changed, nil, false
	switch {
	case s.before != nil:
		s.state = base
		return s.make()
	case len(s.out) < 2:
		s.state = whole
		return false
	}
	s.state = parts
	s.divide(s.out)
	return s.next()
}

// likelyOf are the pieces that are left out first: those that others refuse, and filters that are
// new.
func likelyOf(p *pair, changed, likely []Piece) (out []Piece) {
	for _, x := range changed {
		if slices.Contains(likely, x) {
			out = append(out, x)
			continue
		}
		if x.Chain != "" {
			out = append(out, p.within(x.Chain)...)
		}
	}
	return out
}

// Known returns a search that has ended: the client is known to refuse some pieces. It is nil where
// the resource can't be taken apart.
func (b Book) Known(now, before *view.Body, bad []Piece) *Search {
	if b.open(now) == nil {
		return nil
	}
	s := &Search{book: b, now: now, before: before, out: bad, state: found, no: map[string]bool{}}
	s.make()
	return s
}

// Body is what the client is to be sent in place of the resource.
func (s *Search) Body() *view.Body { return s.body }

// Ended reports whether no more is to be tried.
func (s *Search) Ended() bool { return s.state == found || s.state == whole }

// Bad are the pieces that the client refuses, once the search has ended.
func (s *Search) Bad() []Piece {
	switch s.state {
	case found:
		return s.out
	case whole:
		return []Piece{Whole}
	}
	return nil
}

// Innocent reports whether the client may accept all of the resource: nothing that it refused is
// known to be in it.
func (s *Search) Innocent() bool { return s.innocent && !s.Ended() }

// Suspects are, until the search has ended, the pieces that the client was not seen to accept.
func (s *Search) Suspects() []Piece {
	if s.Ended() {
		return nil
	}
	return s.out
}

// Accepted notes that the client has accepted Body. It reports whether Body is another one now.
func (s *Search) Accepted() bool {
	switch s.state {
	case guess, base:
		s.any = true
		s.state = parts
		if s.innocent {
			s.waiting = append(s.waiting, s.out)
		} else {
			s.divide(s.out)
		}
	case parts:
		s.any = true
		s.out = slices.DeleteFunc(slices.Clone(s.out), func(p Piece) bool { return slices.Contains(s.trying, p) })
	default:
		return false
	}
	return s.next()
}

// Refuses notes that the client has refused a body, which need not be Body.
func (s *Search) Refuses(b *view.Body) { s.no[b.Version()] = true }

// WasRefused reports whether the client has refused Body before: it is not sent that again.
func (s *Search) WasRefused() bool { return s.no[s.body.Version()] }

// Refused notes that the client has refused Body. It reports whether Body is another one now.
func (s *Search) Refused() bool {
	s.Refuses(s.body)
	switch s.state {
	case guess:
		return s.begin()
	case base:
		if s.drop() {
			return s.make()
		}
		s.state = whole
		return false
	case parts:
		s.innocent = false
		s.divide(s.trying)
		return s.next()
	case found: // what it had accepted: something else is wrong
		s.state = whole
	}
	return false
}

// drop leaves chains out that can't be closed: their match is what is wrong. Once.
func (s *Search) drop() bool {
	if s.dropped || s.book.typeURL != Listener {
		return false
	}
	s.dropped = true
	return true
}

// divide has a group that is refused as a whole tried in halves; one piece alone is bad, but a
// chain may do without some filters.
func (s *Search) divide(group []Piece) {
	if len(group) > 1 {
		half := len(group) / 2
		s.waiting = append(s.waiting, group[half:], group[:half])
		return
	}
	p := group[0]
	if p.Chain == "" || p.Filter != "" {
		return
	}
	filters := s.book.pair(s.before, s.now).within(p.Chain)
	if len(filters) == 0 || slices.ContainsFunc(s.out, func(o Piece) bool { return o.Chain == p.Chain && o.Filter != "" }) {
		return
	}
	s.out = append(slices.Clone(s.out), filters...)
	if half := len(filters) / 2; half > 0 {
		s.waiting = append(s.waiting, filters[half:], filters[:half])
	}
	s.waiting = append(s.waiting, group)
}

// next tries the next group.
func (s *Search) next() bool {
	for s.trying = nil; len(s.waiting) > 0 && s.trials < mostTrials; {
		last := len(s.waiting) - 1
		s.trying, s.waiting = s.waiting[last], s.waiting[:last]
		if s.trying[0].Filter == "" || !slices.Contains(s.out, Piece{Chain: s.trying[0].Chain}) {
			break
		}
		s.trying = nil // filters of a chain that is refused without them, too
	}
	switch {
	case s.trying != nil:
	case s.any:
		s.state = found
		s.settle()
	case s.drop():
		return s.begin()
	default: // it has accepted nothing
		s.state = whole
		return false
	}
	return s.make()
}

// settle leaves out what a piece that is left out as a whole says already.
func (s *Search) settle() {
	s.out = slices.DeleteFunc(slices.Clone(s.out), func(p Piece) bool { return p.Filter != "" && slices.Contains(s.out, Piece{Chain: p.Chain}) })
}

// make makes the body of now.
func (s *Search) make() bool {
	without := slices.DeleteFunc(slices.Clone(s.out), func(p Piece) bool { return slices.Contains(s.trying, p) })
	b := s.book.without(s.now, s.before, without, s.dropped)
	if b == nil {
		s.state = whole
		return false
	}
	s.trials++
	changed := s.body == nil || s.body.Version() != b.Version()
	s.body = b
	return changed
}
