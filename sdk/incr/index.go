package incr

import "slices"

// Index finds the elements of a collection by keys made from them. It is itself a collection: of its keys that have members.
type Index[I, K comparable, V any] struct {
	store[I, []id]
	rows stand[K, V]
	out  outlet
	// where is the index keys under which each element is.
	where places[I, K, V]
	// watched passes on the changes of single index keys.
	watched map[I]*outlet
}

// NewIndex adds an index to the graph. by returns the index keys of an element, none if it is in no place; it must depend on
// its arguments alone.
func NewIndex[I, K comparable, V any](from Collection[K, V], name string, by func(k K, v V) []I) *Index[I, K, V] {
	g := from.graph()
	g.mu.Lock()
	defer g.mu.Unlock()
	x := &Index[I, K, V]{rows: stand[K, V]{from: from}, where: newPlaces(by), watched: map[I]*outlet{}}
	x.store = newStore[I, []id](g, name, nil)
	x.index = g.addFamily(x)
	return x
}

// Get returns the members of an index key, in the order of their keys; false where it has none. Who reads it runs again
// when they, or their values, change.
func (x *Index[I, K, V]) Get(c *Ctx, i I) ([]Item[K, V], bool) {
	x.g.mu.Lock()
	defer x.g.mu.Unlock()
	n := x.read(c, i)
	nodes, ok := x.get(n)
	return itemsOf(x.rows.from, nodes), ok
}

// Of is Get for those to whom an index key without members is no special case.
func (x *Index[I, K, V]) Of(c *Ctx, i I) []Item[K, V] {
	items, _ := x.Get(c, i)
	return items
}

// All returns all index keys with their members, in order.
func (x *Index[I, K, V]) All(c *Ctx) []Item[I, []Item[K, V]] {
	return all(c, Collection[I, []Item[K, V]](x))
}

func (x *Index[I, K, V]) read(c *Ctx, i I) id {
	c.read(x.anchor())
	n := x.intern(i)
	x.g.nodes.at(n).flags |= computed
	c.record(n)
	return n
}

func (x *Index[I, K, V]) values() bool { return true }

func (x *Index[I, K, V]) compute(*Ctx, id) (bool, error) { return false, nil }

func (x *Index[I, K, V]) changed(n id) { x.out.emit(x.g, n) }

func (x *Index[I, K, V]) sources(n id, yield func(id)) {
	for _, member := range x.at(n).value {
		yield(member)
	}
}

func (x *Index[I, K, V]) item(n id) (Item[I, []Item[K, V]], bool) {
	nodes, ok := x.get(n)
	return Item[I, []Item[K, V]]{x.key(n), itemsOf(x.rows.from, nodes)}, ok
}

func (x *Index[I, K, V]) same(a, b []Item[K, V]) bool {
	return slices.EqualFunc(a, b, func(a, b Item[K, V]) bool {
		return a.Key == b.Key && x.rows.from.same(a.Value, b.Value)
	})
}

func (x *Index[I, K, V]) graph() *Graph               { return x.g }
func (x *Index[I, K, V]) outlet() *outlet             { return &x.out }
func (x *Index[I, K, V]) anchor() id                  { return x.out.anchor(x.g, (*indexOp[I, K, V])(x)) }
func (x *Index[I, K, V]) members(yield func(id) bool) { x.presentOnes(yield) }
func (x *Index[I, K, V]) settleMembers(*task)         {}
func (x *Index[I, K, V]) membersFloor() int32         { return 0 }
