package incr

import "slices"

// whole is the operator that functions read who read a whole collection.
type whole struct{ stand }

func (w *whole) name() string { return w.from.name() }

// takesAll says that who reads the operator reads all elements.
func (w *whole) takesAll() {}

func (w *whole) run(c *Ctx, self id) (bool, error) { return len(w.drain(c, self)) > 0, nil }

func (w *whole) stop() {
	w.leave()
	w.from.outlet().whole = 0
}

// all returns the elements of a collection in the order of their keys.
func all[K comparable, V any](c *Ctx, from rows) []Item[K, V] {
	g := from.keys().g
	g.mu.Lock()
	defer g.mu.Unlock()
	return itemsOf[K, V](from, readAll(c, from))
}

func readAll(c *Ctx, from rows) []id {
	out := from.outlet()
	if out.whole == 0 {
		out.whole = c.g.ops.add(&whole{stand{from: from}})
	}
	c.read(out.whole)
	return sorted(from)
}

// sorted returns the nodes of all elements in the order of their keys.
func sorted(from rows) []id {
	nodes := slices.Collect(from.members)
	slices.SortFunc(nodes, from.keys().less)
	return nodes
}

func itemsOf[K comparable, V any](from rows, nodes []id) []Item[K, V] {
	items, s := make([]Item[K, V], 0, len(nodes)), from.keys()
	for _, n := range nodes {
		if from.has(n) {
			items = append(items, itemAt[K, V](s, n))
		}
	}
	return items
}
