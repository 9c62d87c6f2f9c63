package incr

import (
	"hash/maphash"
	"reflect"
	"unsafe"
)

// store keeps the keys and values of one family's nodes, whatever their types are: it knows where
// they are and leaves it to others what they are (see lookup.go).
type store struct {
	g     *Graph
	label string
	index uint16
	kind  kind
	order comparer
	// cells are Items; of those whose values take no room, keys alone.
	cells slab
	ids   table
	seed  maphash.Seed
	value reflect.Type
	// offset is where in a cell the value is; the key is first.
	offset uintptr
	// equal is a func(a, b V) bool that compares values as readers see them; if it is nil, none are
	// equal.
	equal any
	// load is a func(value unsafe.Pointer) V where cells hold something else than readers see, as
	// those of an index; nil otherwise.
	load any
}

func newStore[K comparable, V any](g *Graph, label string, equal func(a, b V) bool) store {
	return makeStore(g, label, kindOf[K](), orderOf[K](label), reflect.TypeFor[Item[K, V]](), equal)
}

func makeStore(g *Graph, label string, k kind, order comparer, cell reflect.Type, equal any) store {
	value := cell.Field(1)
	s := store{g: g, label: label, kind: k, order: order, seed: maphash.MakeSeed(), value: value.Type, offset: value.Offset, equal: equal}
	if value.Type.Size() == 0 {
		cell, s.offset = k.typ, 0
	}
	s.cells = newSlab(cell)
	return s
}

func (s *store) name() string { return s.label }
func (s *store) keys() *store { return s }

// at returns where a node's key is.
func (s *store) at(n id) unsafe.Pointer { return s.cells.at(s.g.nodes.at(n).slot) }

// valueOf returns where a node's value is.
func (s *store) valueOf(n id) unsafe.Pointer { return unsafe.Add(s.at(n), s.offset) }

func (s *store) keyOf(n id) any { return s.kind.show(s.at(n)) }

func (s *store) hashOf(n id) uint64 { return s.kind.hash(s.seed, s.at(n)) }

func (s *store) less(a, b id) int { return s.order(s.at(a), s.at(b)) }

// has reports whether a node has a value.
func (s *store) has(n id) bool { return s.g.nodes.at(n).is(present) }

// findAt is find for a key in the heap.
func (s *store) findAt(key unsafe.Pointer) id {
	return s.ids.find(s.kind.hash(s.seed, key), func(n id) bool { return s.kind.equal(s.at(n), key) })
}

// internAt is intern for a key in the heap.
func (s *store) internAt(key unsafe.Pointer) id {
	n := s.findAt(key)
	if n == 0 {
		slot := s.cells.allocate()
		s.kind.copy(s.cells.at(slot), key)
		n = s.add(s.kind.hash(s.seed, key), slot)
	}
	return n
}

// add makes a node for a key that is in a slot.
func (s *store) add(hash uint64, slot uint32) id {
	n := s.g.nodes.add(s.index, slot)
	s.ids.add(hash, n, s.hashOf)
	s.g.rest(n)
	return n
}

func (s *store) release(n id) {
	s.ids.remove(s.hashOf(n), n, s.hashOf)
	s.cells.drop(s.g.nodes.at(n).slot)
}

func (s *store) trim() int { return s.cells.trim() }

// Defaults that most families share.

func (s *store) lifted(id, int32, int32) {}
func (s *store) floor(id) int32          { return 0 }
func (s *store) sources(id, func(id))    {}
func (s *store) verify(*task, id)        {}
func (s *store) input() bool             { return false }
func (s *store) values() bool            { return false }

// assigned passes on that a value was written to a node. Present values are pinned by who writes
// them.
func (s *store) assigned(n id) {
	nd := s.g.nodes.at(n)
	if !nd.is(present) {
		nd.flags |= present
		s.g.pin(n)
	}
	s.g.changed(n)
}

// withdraw takes a value away, if there is one, and passes that on.
func (s *store) withdraw(n id) {
	s.g.nodes.at(n).flags |= computed
	if s.clear(n) {
		s.g.unpin(n)
		s.g.changed(n)
	}
}

// clear takes a value away and reports whether there was one.
func (s *store) clear(n id) bool {
	if !s.has(n) {
		return false
	}
	erase(s.value, s.valueOf(n))
	s.g.nodes.at(n).flags &^= present
	return true
}

// eraseAll takes all values away when nobody is there to be told.
func (s *store) eraseAll() {
	for n := range s.members {
		s.clear(n)
		s.g.unpin(n)
	}
}

// members yields all nodes with a value, in no order.
func (s *store) members(yield func(id) bool) {
	for _, n := range s.ids.places {
		if n != 0 && s.has(n) && !yield(n) {
			return
		}
	}
}
