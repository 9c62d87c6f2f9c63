package incr

import "slices"

// whole is the operator that functions read who read a whole collection.
type whole[K comparable, V any] struct {
	stand[K, V]
}

func (w *whole[K, V]) name() string { return w.from.name() }

// takesAll says that who reads the operator reads all elements.
func (w *whole[K, V]) takesAll() {}

func (w *whole[K, V]) run(c *Ctx, self id) (bool, error) { return len(w.take(c, self)) > 0, nil }

func (w *whole[K, V]) stop() {
	w.leave()
	w.from.outlet().whole = 0
}

// all returns the elements of a collection in the order of their keys.
func all[K comparable, V any](c *Ctx, from Collection[K, V]) []Item[K, V] {
	g := from.graph()
	g.mu.Lock()
	defer g.mu.Unlock()
	out := from.outlet()
	if out.whole == 0 {
		out.whole = g.ops.add(&whole[K, V]{stand[K, V]{from: from}})
	}
	c.read(out.whole)
	return sorted(from, slices.Collect(from.members))
}

func sorted[K comparable, V any](from Collection[K, V], nodes []id) []Item[K, V] {
	slices.SortFunc(nodes, from.less)
	return itemsOf(from, nodes)
}

func itemsOf[K comparable, V any](from Collection[K, V], nodes []id) []Item[K, V] {
	items := make([]Item[K, V], 0, len(nodes))
	for _, n := range nodes {
		if item, ok := from.item(n); ok {
			items = append(items, item)
		}
	}
	return items
}
