package incr

import "slices"

// bucket is the collection of the members of one index key.
type bucket[I, K comparable, V any] struct {
	x *Index[I, K, V]
	i I
}

// At returns the members of an index key as a collection, which passes on what changes among them, element by element.
func (x *Index[I, K, V]) At(i I) Collection[K, V] { return &bucket[I, K, V]{x, i} }

// Get implements Source.
func (b *bucket[I, K, V]) Get(c *Ctx, k K) (V, bool) {
	items := b.x.Of(c, b.i)
	at := slices.IndexFunc(items, func(item Item[K, V]) bool { return item.Key == k })
	if at < 0 {
		var none V
		return none, false
	}
	return items[at].Value, true
}

// All implements Collection.
func (b *bucket[I, K, V]) All(c *Ctx) []Item[K, V] { return b.x.Of(c, b.i) }

func (b *bucket[I, K, V]) rows() Collection[K, V] { return b.x.rows.from }

func (b *bucket[I, K, V]) nodes() []id {
	n := b.x.find(b.i)
	if n == 0 {
		return nil
	}
	return b.x.at(n).value
}

func (b *bucket[I, K, V]) item(n id) (Item[K, V], bool) {
	item, ok := b.rows().item(n)
	_, member := slices.BinarySearchFunc(b.nodes(), n, b.rows().less)
	return item, ok && member
}

func (b *bucket[I, K, V]) members(yield func(id) bool) {
	for _, n := range b.nodes() {
		if !yield(n) {
			return
		}
	}
}

// outlet returns where changes of this index key come out, a new one where nobody stands on it.
func (b *bucket[I, K, V]) outlet() *outlet {
	out := b.x.watched[b.i]
	if out == nil {
		out = &outlet{}
		b.x.watched[b.i] = out
	}
	return out
}

// left drops the outlet when the last one that stood on it went away.
func (b *bucket[I, K, V]) left() {
	if out := b.x.watched[b.i]; out != nil && len(out.inlets) == 0 {
		delete(b.x.watched, b.i)
	}
}

func (b *bucket[I, K, V]) name() string        { return describeKey(Source[I, []Item[K, V]](b.x), b.i) }
func (b *bucket[I, K, V]) find(k K) id         { return b.rows().find(k) }
func (b *bucket[I, K, V]) graph() *Graph       { return b.x.g }
func (b *bucket[I, K, V]) anchor() id          { return b.x.anchor() }
func (b *bucket[I, K, V]) key(n id) K          { return b.rows().key(n) }
func (b *bucket[I, K, V]) less(a, c id) int    { return b.rows().less(a, c) }
func (b *bucket[I, K, V]) same(a, c V) bool    { return b.rows().same(a, c) }
func (b *bucket[I, K, V]) settleMembers(*task) {}
func (b *bucket[I, K, V]) membersFloor() int32 { return 0 }
