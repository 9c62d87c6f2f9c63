package incr

import (
	"hash/maphash"
	"reflect"
	"unsafe"
)

// kind is what can be done with the keys of one type, of which only pointers are known. All point
// into the heap.
type kind struct {
	typ   reflect.Type
	hash  func(seed maphash.Seed, key unsafe.Pointer) uint64
	equal func(a, b unsafe.Pointer) bool
}

func kindOf[K comparable]() kind {
	return kind{typ: reflect.TypeFor[K](), hash: hashAt[K], equal: equalAt[K]}
}

func hashAt[K comparable](seed maphash.Seed, key unsafe.Pointer) uint64 {
	return maphash.Comparable(seed, *(*K)(key))
}

func equalAt[K comparable](a, b unsafe.Pointer) bool { return *(*K)(a) == *(*K)(b) }

// show returns a key for people.
func (k *kind) show(key unsafe.Pointer) any { return reflect.NewAt(k.typ, key).Elem().Interface() }

// copy writes a key to a place that has none yet.
func (k *kind) copy(to, from unsafe.Pointer) {
	reflect.NewAt(k.typ, to).Elem().Set(reflect.NewAt(k.typ, from).Elem())
}
