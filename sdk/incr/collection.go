package incr

import "fmt"

// Item is an element of a collection.
type Item[K comparable, V any] struct {
	Key   K
	Value V
}

// Source is what can be read by key: inputs, functions and collections.
type Source[K comparable, V any] interface {
	// Get returns the value of a key, false where it has none. That it has none is recorded too.
	Get(c *Ctx, k K) (V, bool)
	// source is the same without its types; that of a collection is rows.
	source() source
}

// Collection is a set of elements by key that passes on what changed, element by element: an Input,
// or made from others by Map, Filter, FlatMap, Each, Join, Group and NewIndex.
type Collection[K comparable, V any] interface {
	Source[K, V]
	// All returns all elements, in the order of their keys. A function that reads them runs again
	// when any of them changes.
	All(c *Ctx) []Item[K, V]
}

// source is a Source whatever its types.
type source interface {
	name() string
	// keys is where the keys and values of elements are.
	keys() *store
}

// rows is a Collection whatever its types.
type rows interface {
	source
	outlet() *outlet
	// anchor returns the operator's node, which whoever uses the collection has to read.
	anchor() id
	// members yields the nodes of all elements, in no order.
	members(yield func(id) bool)
	// has reports whether a node stands for an element: it may not, or no longer.
	has(n id) bool
	// updateMembers brings elements up to date that are computed after the operator ran;
	// membersFloor is above all their heights.
	updateMembers(t *task)
	membersFloor() int32
}

func rowsOf[K comparable, V any](from Collection[K, V]) rows { return from.source().(rows) }

func describeKey(from source, key any) string { return fmt.Sprintf("%s(%v)", from.name(), key) }

// set is a collection made from others.
type set[K comparable, V any] struct {
	body rows
	// look reads the element of a key and returns its node, false where there is none.
	look func(c *Ctx, k K) (id, bool)
}

// Get implements Source.
func (s *set[K, V]) Get(c *Ctx, k K) (v V, ok bool) {
	at := s.body.keys()
	at.g.mu.Lock()
	defer at.g.mu.Unlock()
	n, ok := s.look(c, k)
	if ok {
		v = valueAt[V](at, n)
	}
	return v, ok
}

// All implements Collection.
func (s *set[K, V]) All(c *Ctx) []Item[K, V] { return all[K, V](c, s.body) }

func (s *set[K, V]) source() source { return s.body }
