package incr

import (
	"fmt"
	"slices"
)

// Item is an element of a collection.
type Item[K comparable, V any] struct {
	Key   K
	Value V
}

// Source is what can be read by key: inputs, functions and collections.
type Source[K comparable, V any] interface {
	// Get returns the value of a key, false where it has none. That it has none is recorded too.
	Get(c *Ctx, k K) (V, bool)
	name() string
	graph() *Graph
	same(a, b V) bool
	// find returns the node of a key, 0 where there is none.
	find(k K) id
}

func describeKey[K comparable, V any](from Source[K, V], k K) string {
	return fmt.Sprintf("%s(%v)", from.name(), k)
}

// Collection is a set of elements by key that passes on what changed, element by element: an Input, or made from others by
// Map, Filter, FlatMap, Each, Join, Group and NewIndex.
type Collection[K comparable, V any] interface {
	Source[K, V]
	// All returns all elements, in the order of their keys. A function that reads them runs again when any of them changes.
	All(c *Ctx) []Item[K, V]

	outlet() *outlet
	// anchor returns the operator's node, which whoever uses the collection has to read.
	anchor() id
	// members yields the nodes of all elements, in no order.
	members(yield func(id) bool)
	// item returns the element that a node stands for, false if it is not, or no longer, one.
	item(n id) (Item[K, V], bool)
	key(n id) K
	less(a, b id) int
	// settleMembers brings elements up to date that are computed after the operator ran; membersFloor is above all their heights.
	settleMembers(t *task)
	membersFloor() int32
}

// stand is where an operator stands on a collection.
type stand[K comparable, V any] struct {
	from Collection[K, V]
	in   *inlet
	// primed says that all elements have been taken once.
	primed bool
}

// take returns the elements that changed since it was called last; the first time, all.
func (s *stand[K, V]) take(c *Ctx, self id) []id {
	c.read(s.from.anchor())
	if s.in == nil {
		s.in = &inlet{node: self}
		out := s.from.outlet()
		out.inlets = append(out.inlets, s.in)
	}
	g := c.g
	if !s.primed || g.nodes.at(self).height != g.front || len(g.cyclic) > 0 {
		s.from.settleMembers(c.task)
		if err := c.task.poison(); err != nil {
			panic(err)
		}
	}
	pend := s.in.pend
	s.in.pend = nil
	if !s.primed {
		s.primed = true
		pend = slices.Collect(s.from.members)
	}
	return pend
}

func (s *stand[K, V]) leave() {
	if s.in != nil {
		s.from.outlet().remove(s.in)
		s.in, s.primed = nil, false
		if b, ok := s.from.(interface{ left() }); ok {
			b.left()
		}
	}
}

func (s *stand[K, V]) holds(func(id)) {}

func (s *stand[K, V]) settle(t *task) { s.from.settleMembers(t) }
func (s *stand[K, V]) floor() int32   { return s.from.membersFloor() }

func (s *stand[K, V]) sources(yield func(id)) {
	s.from.members(func(n id) bool { yield(n); return true })
}
