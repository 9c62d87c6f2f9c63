package pieces

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// Store keeps what searches have in common, so that many clients that refuse the same cost as much
// as one: resources taken apart, the pieces in which two of them differ, and bodies without some.
// It keeps some, and makes the others anew.
type Store struct {
	read  map[string]*resource
	pairs map[[2]string]*pair
	made  map[string]*view.Body
	more  more
	// bytes is how much is kept, by the size of encoded bodies.
	bytes int
}

// mostKept is how many bytes of bodies a store keeps, taken apart or made.
const mostKept = 32 << 20

// entry is what a thing counts, in bytes, that is kept, beside its body: also that a resource can't
// be taken apart.
const entry = 64

// NewStore returns an empty one. spare are full names of the types of HTTP filters, beside Envoy's
// own, that clients may do without: they decide nothing.
func NewStore(spare ...string) *Store {
	s := &Store{more: more{}}
	for _, name := range spare {
		s.more[name] = true
	}
	s.clear()
	return s
}

func (s *Store) clear() {
	s.read, s.pairs, s.made, s.bytes = map[string]*resource{}, map[[2]string]*pair{}, map[string]*view.Body{}, 0
}

// enter makes room for so many bytes.
func (s *Store) enter(bytes int) {
	if s.bytes += bytes; s.bytes > mostKept {
		s.clear()
		s.bytes = bytes
	}
}

// Book is a store's part of resources of a type.
type Book struct {
	*Store
	typeURL string
}

// Of returns the part of a type.
func (s *Store) Of(typeURL string) Book { return Book{s, typeURL} }

// open is a body taken apart; nil: it has no pieces.
func (b Book) open(body *view.Body) *resource {
	if body == nil || !body.Exists() {
		return nil
	}
	r, known := b.read[b.typeURL+body.Version()]
	if !known {
		r = read(b.typeURL, body, b.more)
		size := entry
		if r != nil {
			size += body.Size(false)
		}
		b.enter(size)
		b.read[b.typeURL+body.Version()] = r
	}
	return r
}

// pair is a body that can be taken apart, and the one before.
func (b Book) pair(before, now *view.Body) *pair {
	key := [2]string{version(before), b.typeURL + version(now)}
	out := b.pairs[key]
	if out == nil {
		out = pairOf(b.open(before), b.open(now))
		b.enter(entry * (1 + len(out.now.order)))
		b.pairs[key] = out
	}
	return out
}

// without makes a body without pieces; nil: it can't be.
func (b Book) without(now, before *view.Body, out []Piece, dropped bool) *view.Body {
	var key strings.Builder
	key.WriteString(version(now) + " " + version(before))
	if dropped {
		key.WriteString(" dropped")
	}
	for _, p := range out {
		key.WriteString("\x00" + p.Chain + "\x01" + p.Filter + "\x02" + p.Host)
	}
	if made, known := b.made[key.String()]; known {
		return made
	}
	made := b.pair(before, now).without(now.Name(), out, dropped)
	size := entry + key.Len()
	if made != nil {
		size += made.Size(false)
	}
	b.enter(size)
	b.made[key.String()] = made
	return made
}

func version(b *view.Body) string {
	if b == nil {
		return ""
	}
	return b.Version()
}

// Variant returns a resource with some of its pieces as another body has them, which the client, or
// most clients, accepted before (nil: there is none). What that doesn't have either is left out: a
// virtual host or a filter. In the place of a filter chain stands one of the same match that closes
// connections, so that they don't fall to another chain. It is nil where the resource can't be
// taken apart.
func (b Book) Variant(now, before *view.Body, out []Piece) *view.Body {
	if b.open(now) == nil {
		return nil
	}
	return b.without(now, before, out, false)
}

// Same reports whether two bodies have the same of a piece.
func (b Book) Same(one, other *view.Body, p Piece) bool {
	x, y := b.open(one), b.open(other)
	if x == nil || y == nil {
		return false
	}
	if p.Host != "" {
		return x.hosts[p.Host] != nil && y.hosts[p.Host] != nil && same(x.hosts[p.Host], y.hosts[p.Host])
	}
	c, d := x.chains[p.Chain], y.chains[p.Chain]
	switch {
	case c == nil || d == nil:
		return false
	case p.Filter != "":
		return c.filters[p.Filter] != nil && d.filters[p.Filter] != nil && same(c.filters[p.Filter], d.filters[p.Filter])
	}
	return same(c.FilterChain, d.FilterChain)
}

// Has reports whether a body has a piece, by its place.
func (b Book) Has(body *view.Body, p Piece) bool {
	if p == Whole {
		return body != nil && body.Exists()
	}
	r := b.open(body)
	switch {
	case r == nil:
		return false
	case p.Filter != "":
		return r.chains[p.Chain] != nil && r.chains[p.Chain].filters[p.Filter] != nil
	}
	return r.has(p.Host + p.Chain) // one of them is empty
}

// Place is how a plugin that made a resource knows a filter chain of it: the place among its
// chains, from 1 on, the default one last; 0: the piece is in none.
func (b Book) Place(body *view.Body, p Piece) int {
	r := b.open(body)
	if r == nil || p.Chain == "" {
		return 0
	}
	return slices.Index(r.order, p.Chain) + 1
}
