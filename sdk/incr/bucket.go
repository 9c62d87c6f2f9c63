package incr

import (
	"slices"
	"unsafe"
)

// bucket is the collection of the members of one index key.
type bucket struct {
	x *index
	// key is in the heap, and not yet in the index perhaps.
	key unsafe.Pointer
}

// lookIn reads members of a bucket.
func lookIn[K comparable](b *bucket) func(c *Ctx, k K) (id, bool) {
	return func(c *Ctx, k K) (id, bool) {
		b.read(c)
		n := find(b.keys(), k)
		return n, slices.Contains(b.nodes(), n) && b.x.from.has(n)
	}
}

// read reads the index key.
func (b *bucket) read(c *Ctx) {
	r := &b.x.results
	c.read(r.anchor())
	r.read(c, r.internAt(b.key))
}

func (b *bucket) nodes() []id {
	n := b.x.results.findAt(b.key)
	if n == 0 {
		return nil
	}
	return b.x.nodes(n)
}

func (b *bucket) has(n id) bool {
	_, member := slices.BinarySearchFunc(b.nodes(), n, b.keys().less)
	return member && b.x.from.has(n)
}

func (b *bucket) members(yield func(id) bool) {
	for _, n := range b.nodes() {
		if !yield(n) {
			return
		}
	}
}

func (b *bucket) name() string        { return describeKey(&b.x.results, b.x.results.kind.show(b.key)) }
func (b *bucket) keys() *store        { return b.x.from.keys() }
func (b *bucket) anchor() id          { return b.x.results.anchor() }
func (b *bucket) updateMembers(*task) {}
func (b *bucket) membersFloor() int32 { return 0 }

// outlet returns where changes of this index key come out, a new one where nobody stands on it.
func (b *bucket) outlet() *outlet { return b.x.watched.at(b.key) }

// left drops the outlet when the last one that stood on it went away.
func (b *bucket) left() { b.x.watched.tidy(b.key) }

// watched are the outlets of those index keys on which somebody stands.
type watched struct {
	keys    dict
	outlets map[id]*outlet
}

func (w *watched) find(key unsafe.Pointer) *outlet {
	if len(w.outlets) == 0 {
		return nil
	}
	return w.outlets[w.keys.find(key)]
}

func (w *watched) at(key unsafe.Pointer) *outlet {
	n := w.keys.intern(key)
	if w.outlets[n] == nil {
		if w.outlets == nil {
			w.outlets = map[id]*outlet{}
		}
		w.outlets[n] = &outlet{}
	}
	return w.outlets[n]
}

func (w *watched) tidy(key unsafe.Pointer) {
	n := w.keys.find(key)
	if out := w.outlets[n]; out != nil && len(out.inlets) == 0 {
		delete(w.outlets, n)
		w.keys.drop(n)
	}
}
