package incr

import "hash/maphash"

// store keeps the keys and values of one family's nodes.
type store[K comparable, V any] struct {
	g     *Graph
	label string
	index uint16
	cells slab[cell[K, V]]
	ids   table
	seed  maphash.Seed
	equal func(a, b V) bool
	order func(a, b *K) int
}

type cell[K comparable, V any] struct {
	key   K
	value V
}

func newStore[K comparable, V any](g *Graph, label string, equal func(a, b V) bool) store[K, V] {
	if equal == nil {
		equal = func(V, V) bool { return false }
	}
	return store[K, V]{g: g, label: label, seed: maphash.MakeSeed(), equal: equal, order: orderOf[K](label)}
}

func (s *store[K, V]) name() string { return s.label }

func (s *store[K, V]) at(n id) *cell[K, V] { return s.cells.at(s.g.nodes.at(n).slot) }

func (s *store[K, V]) keyOf(n id) any { return s.at(n).key }

func (s *store[K, V]) hash(k K) uint64 { return maphash.Comparable(s.seed, k) }

func (s *store[K, V]) hashOf(n id) uint64 { return s.hash(s.at(n).key) }

func (s *store[K, V]) find(k K) id {
	return s.ids.find(s.hash(k), func(n id) bool { return s.at(n).key == k })
}

// intern returns the node of a key, a new one where there is none.
func (s *store[K, V]) intern(k K) id {
	if n := s.find(k); n != 0 {
		return n
	}
	n := s.g.nodes.add(s.index, s.cells.add(cell[K, V]{key: k}))
	s.ids.add(s.hash(k), n, s.hashOf)
	s.g.rest(n)
	return n
}

// get returns the value that a node has.
func (s *store[K, V]) get(n id) (V, bool) {
	return s.at(n).value, s.g.nodes.at(n).is(present)
}

// put gives a node a value, or takes it away, and says whether that changed anything.
func (s *store[K, V]) put(n id, v V, ok bool) bool {
	nd, c := s.g.nodes.at(n), s.at(n)
	was := nd.is(present)
	if !was && !ok || was && ok && s.equal(c.value, v) {
		return false
	}
	c.value = v
	nd.set(present, ok)
	return true
}

func (s *store[K, V]) release(n id) {
	s.ids.remove(s.hashOf(n), n, s.hashOf)
	s.cells.drop(s.g.nodes.at(n).slot)
}

func (s *store[K, V]) same(a, b V) bool { return s.equal(a, b) }

func (s *store[K, V]) item(n id) (Item[K, V], bool) {
	c := s.at(n)
	return Item[K, V]{c.key, c.value}, s.g.nodes.at(n).is(present)
}

func (s *store[K, V]) key(n id) K { return s.at(n).key }

func (s *store[K, V]) less(a, b id) int { return s.order(&s.at(a).key, &s.at(b).key) }

// Defaults that most families share.

func (s *store[K, V]) lifted(id, int32, int32) {}
func (s *store[K, V]) floor(id) int32          { return 0 }
func (s *store[K, V]) sources(id, func(id))    {}
func (s *store[K, V]) verify(*task, id)        {}
func (s *store[K, V]) input() bool             { return false }
func (s *store[K, V]) values() bool            { return false }

// assign writes a value node and passes on the change. Present values are pinned by who writes them.
func (s *store[K, V]) assign(n id, v V, ok bool) {
	nd := s.g.nodes.at(n)
	nd.flags |= computed
	was := nd.is(present)
	if !s.put(n, v, ok) {
		return
	}
	switch {
	case ok && !was:
		s.g.pin(n)
	case !ok && was:
		s.g.unpin(n)
	}
	s.g.changed(n)
}

// presentOnes yields all nodes with a value, in no order.
func (s *store[K, V]) presentOnes(yield func(id) bool) {
	for _, n := range s.ids.places {
		if n != 0 && s.g.nodes.at(n).is(present) && !yield(n) {
			return
		}
	}
}

// erase takes a value away when nobody is there to be told.
func (s *store[K, V]) erase(n id) {
	var none V
	s.at(n).value = none
	s.g.nodes.at(n).flags &^= present
	s.g.unpin(n)
}
