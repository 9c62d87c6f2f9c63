package placement

import (
	"iter"
	"maps"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// Place is a view of a session; without a view: none.
type Place[S comparable] struct {
	Session S
	View    *view.View
}

// Places are where a connection is placed, by type: as it is served, and as revisions in the making
// will have it. Its zero value is nowhere.
type Places[S comparable] struct {
	served, next map[string]Place[S]
}

// View is the view of a type that the connection is in; nil: none.
func (p *Places[S]) View(typeURL string) *view.View { return p.served[typeURL].View }

// At is where the connection is, as it is served.
func (p *Places[S]) At(typeURL string) Place[S] { return p.served[typeURL] }

// All yields the types of which the connection is in a view, and where.
func (p *Places[S]) All() iter.Seq2[string, Place[S]] { return maps.All(p.served) }

// Next is where the connection will be; ok: a move is planned.
func (p *Places[S]) Next(typeURL string) (to Place[S], ok bool) {
	to, ok = p.next[typeURL]
	return to, ok
}

// Planned yields the moves that are planned.
func (p *Places[S]) Planned() iter.Seq2[string, Place[S]] { return maps.All(p.next) }

// Is reports whether a session has placed the connection into this view already, be it only for a
// revision in the making; never into none.
func (p *Places[S]) Is(typeURL string, to Place[S]) bool {
	before := p.next[typeURL].View
	if at := p.served[typeURL]; before == nil && at.Session == to.Session {
		before = at.View
	}
	return to.View != nil && to.View == before
}

// Plan plans a move for a revision in the making, and returns the one that it replaces.
func (p *Places[S]) Plan(typeURL string, to Place[S]) (instead Place[S]) {
	if p.next == nil {
		p.next = map[string]Place[S]{}
	}
	instead = p.next[typeURL]
	p.next[typeURL] = to
	return instead
}

// Due reports whether a move is still planned: it is to be made now, and is not planned any more.
func (p *Places[S]) Due(typeURL string, to Place[S]) bool {
	if now, ok := p.next[typeURL]; !ok || now != to {
		return false
	}
	delete(p.next, typeURL)
	return true
}

// Move makes a place the one that is served, and returns where the connection was.
func (p *Places[S]) Move(typeURL string, to Place[S]) (from Place[S]) {
	from = p.served[typeURL]
	if to.View == nil {
		delete(p.served, typeURL)
		return from
	}
	if p.served == nil {
		p.served = map[string]Place[S]{}
	}
	p.served[typeURL] = to
	return from
}

// Drop forgets what others than a session have planned for a type, and returns it; ok: there was
// something.
func (p *Places[S]) Drop(typeURL string, but S) (planned Place[S], ok bool) {
	planned, ok = p.next[typeURL]
	if !ok || planned.Session == but {
		return Place[S]{}, false
	}
	delete(p.next, typeURL)
	return planned, true
}

// Forget forgets what a session has planned that has ended.
func (p *Places[S]) Forget(s S) {
	maps.DeleteFunc(p.next, func(_ string, to Place[S]) bool { return to.Session == s })
}
