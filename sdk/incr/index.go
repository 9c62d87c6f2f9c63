package incr

import (
	"slices"
	"unsafe"
)

// Index finds the elements of a collection by keys made from them. It is itself a collection: of
// its keys that have members.
type Index[I, K comparable, V any] struct{ x index }

// NewIndex adds an index to the graph. by returns the index keys of an element, none if it is in no
// place; it must depend on its arguments alone.
func NewIndex[I, K comparable, V any](from Collection[K, V], name string, by func(k K, v V) []I) *Index[I, K, V] {
	made := &Index[I, K, V]{}
	x := &made.x
	x.from = rowsOf(from)
	g := x.from.keys().g
	x.results.store = newStore[I, []id](g, name, nil)
	x.results.equal = sameItems[K](equalOf[V](x.from.keys()))
	x.results.load = func(nodes unsafe.Pointer) []Item[K, V] { return itemsOf[K, V](x.from, *(*[]id)(nodes)) }
	x.where = newPlaces(placesBy(x.from, by), x.results.internAt, x.results.kind.typ)
	x.watched.keys = newDict(x.results.kind)
	x.results.operator, x.results.madeFrom = x, x.eachMember
	g.enroll(&x.results, &x.results.store)
	return made
}

func sameItems[K comparable, V any](equal func(a, b V) bool) func(a, b []Item[K, V]) bool {
	return func(a, b []Item[K, V]) bool {
		return equal != nil && slices.EqualFunc(a, b, func(a, b Item[K, V]) bool {
			return a.Key == b.Key && equal(a.Value, b.Value)
		})
	}
}

// Get returns the members of an index key, in the order of their keys; false where it has none. Who
// reads it runs again when they, or their values, change.
func (x *Index[I, K, V]) Get(c *Ctx, i I) ([]Item[K, V], bool) {
	r := &x.x.results
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	c.read(r.anchor())
	n := intern(&r.store, i)
	ok := r.read(c, n)
	return itemsOf[K, V](x.x.from, x.x.nodes(n)), ok
}

// Of is Get for those to whom an index key without members is no special case.
func (x *Index[I, K, V]) Of(c *Ctx, i I) []Item[K, V] {
	items, _ := x.Get(c, i)
	return items
}

// All returns all index keys with their members, in order.
func (x *Index[I, K, V]) All(c *Ctx) []Item[I, []Item[K, V]] {
	return all[I, []Item[K, V]](c, &x.x.results)
}

// At returns the members of an index key as a collection, which passes on what changes among them,
// element by element.
func (x *Index[I, K, V]) At(i I) Collection[K, V] {
	b := &bucket{&x.x, unsafe.Pointer(&i)}
	return &set[K, V]{b, lookIn[K](b)}
}

func (x *Index[I, K, V]) source() source { return &x.x.results }
