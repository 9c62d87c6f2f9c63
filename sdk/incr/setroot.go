package incr

import "slices"

// SetRoot wants all elements of a collection.
type SetRoot[K comparable, V any] struct {
	op      setRootOp
	upserts []Item[K, V]
	removes []K
}

// ObserveAll wants all elements of a collection, such as the members of an index key (see
// Index.At).
func ObserveAll[K comparable, V any](from Collection[K, V]) *SetRoot[K, V] {
	rows := rowsOf(from)
	r, s := &SetRoot[K, V]{}, rows.keys()
	r.op = setRootOp{rooted: rooted{g: s.g, Observed: r}, stand: stand{from: rows}, shown: map[id]struct{}{}}
	r.op.show = func(n id) { r.upserts = append(r.upserts, itemAt[K, V](s, n)) }
	r.op.hide = func(n id) { r.removes = append(r.removes, keyAt[K](s, n)) }
	r.op.clear = func() { r.upserts, r.removes = nil, nil }
	r.op.node = s.g.plant(&r.op)
	return r
}

// Items returns all elements, in the order of their keys. It waits for a wave that is running.
func (r *SetRoot[K, V]) Items() []Item[K, V] {
	g := r.op.g
	g.inspect(r.op.node)
	g.mu.Lock()
	defer g.mu.Unlock()
	return itemsOf[K, V](r.op.from, sorted(r.op.from))
}

// Delta returns what the last wave changed: elements that are new or have new values, and keys of
// those that are gone, both in the order of keys. After the first wave that saw the root, or a call
// of Items before that, it is everything.
func (r *SetRoot[K, V]) Delta() (upserts []Item[K, V], removes []K) {
	g := r.op.g
	g.turn.RLock()
	defer g.turn.RUnlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	return r.upserts, r.removes
}

// Name implements Observed.
func (r *SetRoot[K, V]) Name() string { return r.op.from.name() }

// Close implements Observed.
func (r *SetRoot[K, V]) Close() { r.op.g.uproot(&r.op.node) }

// setRootOp is the operator of a SetRoot.
type setRootOp struct {
	stand
	rooted
	shown map[id]struct{}
	// show notes an element that is new or has a new value, hide one that is gone; clear forgets
	// both.
	show, hide func(n id)
	clear      func()
}

func (r *setRootOp) run(c *Ctx, self id) (bool, error) {
	changed := unique(r.drain(c, self))
	slices.SortFunc(changed, r.from.keys().less)
	touched := false
	for _, n := range changed {
		touched = r.note(n) || touched
	}
	if touched {
		r.g.touch(r)
	}
	return true, nil
}

// note notes what became of a node and reports whether anybody sees it.
func (r *setRootOp) note(n id) bool {
	_, shown := r.shown[n]
	switch {
	case r.from.has(n):
		r.shown[n] = struct{}{}
		r.show(n)
	case shown:
		delete(r.shown, n)
		r.hide(n)
	default:
		return false
	}
	return true
}

func (r *setRootOp) stop()   { r.leave() }
func (r *setRootOp) forget() { r.clear() }
