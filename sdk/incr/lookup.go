package incr

import (
	"hash/maphash"
	"unsafe"
)

// What has to know the types of keys and values: one small function for each type of key or of
// value, not for each pair of them. Everything else works on stores. Keys that are looked up stay
// where the caller has them, which may be its stack.

// find returns the node of a key, 0 where there is none.
func find[K comparable](s *store, k K) id { return probe(s, maphash.Comparable(s.seed, k), k) }

// intern returns the node of a key, a new one where there is none.
func intern[K comparable](s *store, k K) id {
	hash := maphash.Comparable(s.seed, k)
	n := probe(s, hash, k)
	if n == 0 {
		slot := s.cells.allocate()
		*(*K)(s.cells.at(slot)) = k
		n = s.add(hash, slot)
	}
	return n
}

func probe[K comparable](s *store, hash uint64, k K) id {
	places := s.ids.places
	if len(places) == 0 {
		return 0
	}
	mask := uint64(len(places) - 1)
	i := hash & mask
	for places[i] != 0 && *(*K)(s.at(places[i])) != k {
		i = (i + 1) & mask
	}
	return places[i]
}

// keyAt returns the key of a node.
func keyAt[K comparable](s *store, n id) K { return *(*K)(s.at(n)) }

// valueAt returns the value of a node as readers see it, the zero value where it has none.
func valueAt[V any](s *store, n id) V { return load[V](s, s.valueOf(n)) }

// itemAt returns the key and the value of a node.
func itemAt[K comparable, V any](s *store, n id) Item[K, V] {
	at := s.at(n)
	return Item[K, V]{*(*K)(at), load[V](s, unsafe.Add(at, s.offset))}
}

func load[V any](s *store, value unsafe.Pointer) V {
	if load, ok := s.load.(func(unsafe.Pointer) V); ok {
		return load(value)
	}
	return *(*V)(value)
}

// equalOf returns how values are compared, nil if they aren't.
func equalOf[V any](s *store) func(a, b V) bool { return s.equal.(func(a, b V) bool) }

// assign gives a node a value and passes on the change, if it is one.
func assign[V any](s *store, n id, v V, equal func(a, b V) bool) {
	at := (*V)(s.valueOf(n))
	s.g.nodes.at(n).flags |= computed
	if equal != nil && s.has(n) && equal(*at, v) {
		return
	}
	*at = v
	s.assigned(n)
}
