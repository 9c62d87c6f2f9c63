package incr

import "slices"

// SetRoot wants all elements of a collection.
type SetRoot[K comparable, V any] struct {
	stand[K, V]
	g       *Graph
	node    id
	upserts []Item[K, V]
	removes []K
	shown   map[id]struct{}
}

// ObserveAll wants all elements of a collection, such as the members of an index key (see Index.At).
func ObserveAll[K comparable, V any](from Collection[K, V]) *SetRoot[K, V] {
	r := &SetRoot[K, V]{stand: stand[K, V]{from: from}, g: from.graph(), shown: map[id]struct{}{}}
	r.node = r.g.plant(r)
	return r
}

// Items returns all elements, in the order of their keys. It waits for a wave that is running.
func (r *SetRoot[K, V]) Items() []Item[K, V] {
	r.g.inspect(r.node)
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	return sorted(r.from, slices.Collect(r.from.members))
}

// Delta returns what the last wave changed: elements that are new or have new values, and keys of those that are gone, both
// in the order of keys. After the first wave that saw the root, or a call of
// Items before that, it is everything.
func (r *SetRoot[K, V]) Delta() (upserts []Item[K, V], removes []K) {
	r.g.turn.RLock()
	defer r.g.turn.RUnlock()
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	return r.upserts, r.removes
}

// Name implements Observed.
func (r *SetRoot[K, V]) Name() string { return r.from.name() }

// Close implements Observed.
func (r *SetRoot[K, V]) Close() { r.g.uproot(&r.node) }

func (r *SetRoot[K, V]) run(c *Ctx, self id) (bool, error) {
	changed := unique(r.take(c, self))
	slices.SortFunc(changed, r.from.less)
	for _, n := range changed {
		r.show(n)
	}
	if len(r.upserts)+len(r.removes) > 0 {
		r.g.touch(r)
	}
	return true, nil
}

func (r *SetRoot[K, V]) show(n id) {
	_, shown := r.shown[n]
	switch item, ok := r.from.item(n); {
	case ok:
		r.upserts = append(r.upserts, item)
		r.shown[n] = struct{}{}
	case shown:
		r.removes = append(r.removes, r.from.key(n))
		delete(r.shown, n)
	}
}

func (r *SetRoot[K, V]) name() string { return r.Name() }
func (r *SetRoot[K, V]) wanted() bool { return r.node != 0 }
func (r *SetRoot[K, V]) stop()        { r.leave() }
func (r *SetRoot[K, V]) forget()      { r.upserts, r.removes = nil, nil }
