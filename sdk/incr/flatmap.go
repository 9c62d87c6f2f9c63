package incr

import "slices"

// FlatMap is the collection of all that f makes of the elements: any number of new elements with keys of their own. Where
// several make the same key, the one from the element that comes first in the order of keys counts.
func FlatMap[K comparable, A any, K2 comparable, V any](from Collection[K, A], name string, equal func(a, b V) bool, f func(c *Ctx, k K, a A) ([]Item[K2, V], error)) Collection[K2, V] {
	made := Map(from, name, nil, f)
	g := from.graph()
	g.mu.Lock()
	defer g.mu.Unlock()
	m := &flat[K, K2, V]{stand: stand[K, []Item[K2, V]]{from: made}}
	m.store = newStore[K2](g, name, equal)
	m.index = g.addFamily(&m.results)
	return m
}

// results is the collection of what an operator writes, and the family of its nodes.
type results[K comparable, V any] struct {
	store[K, V]
	out outlet
	// madeFrom yields the nodes that a result was made from.
	madeFrom func(n id, yield func(id))
}

func (r *results[K, V]) values() bool                   { return true }
func (r *results[K, V]) compute(*Ctx, id) (bool, error) { return false, nil }
func (r *results[K, V]) changed(n id)                   { r.out.emit(r.g, n) }
func (r *results[K, V]) sources(n id, yield func(id))   { r.madeFrom(n, yield) }

func (r *results[K, V]) graph() *Graph               { return r.g }
func (r *results[K, V]) outlet() *outlet             { return &r.out }
func (r *results[K, V]) members(yield func(id) bool) { r.presentOnes(yield) }
func (r *results[K, V]) settleMembers(*task)         {}
func (r *results[K, V]) membersFloor() int32         { return 0 }

// getFrom reads a result whose operator has the node anchor.
func (r *results[K, V]) getFrom(c *Ctx, anchor id, k K) (V, bool) {
	c.read(anchor)
	n := r.intern(k)
	r.g.nodes.at(n).flags |= computed
	c.record(n)
	return r.get(n)
}

// eraseAll forgets all results.
func (r *results[K, V]) eraseAll() {
	r.out.node = 0
	for n := range r.members {
		r.erase(n)
	}
}

// flat is the operator of a FlatMap.
type flat[K, K2 comparable, V any] struct {
	results[K2, V]
	stand  stand[K, []Item[K2, V]]
	makes  map[id][]id
	makers map[id][]id
}

// Get implements Source.
func (m *flat[K, K2, V]) Get(c *Ctx, k K2) (V, bool) {
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	return m.getFrom(c, m.anchor(), k)
}

// All implements Collection.
func (m *flat[K, K2, V]) All(c *Ctx) []Item[K2, V] { return all(c, Collection[K2, V](m)) }

func (m *flat[K, K2, V]) anchor() id { return m.out.anchor(m.g, (*flatOp[K, K2, V])(m)) }

type flatOp[K, K2 comparable, V any] flat[K, K2, V]

func (o *flatOp[K, K2, V]) name() string           { return o.label }
func (o *flatOp[K, K2, V]) settle(t *task)         { o.stand.settle(t) }
func (o *flatOp[K, K2, V]) floor() int32           { return o.stand.floor() }
func (o *flatOp[K, K2, V]) sources(yield func(id)) { o.stand.sources(yield) }

func (o *flatOp[K, K2, V]) stop() {
	o.stand.leave()
	o.results.eraseAll()
	o.makes, o.makers = nil, nil
}

func (o *flatOp[K, K2, V]) run(c *Ctx, self id) (bool, error) {
	if o.makes == nil {
		o.makes, o.makers = map[id][]id{}, map[id][]id{}
		o.madeFrom = func(n id, yield func(id)) {
			for _, maker := range o.makers[n] {
				yield(maker)
			}
		}
	}
	var touched []id
	for _, maker := range unique(o.stand.take(c, self)) {
		touched = append(touched, o.note(maker)...)
	}
	for _, n := range unique(touched) {
		o.write(n)
	}
	return false, nil
}

// note notes what an element makes now and returns all that it made or makes.
func (o *flatOp[K, K2, V]) note(maker id) []id {
	was, is := o.makes[maker], o.made(maker)
	added, removed := difference(was, is)
	for _, n := range added {
		o.makers[n] = insert(o.makers[n], []id{maker}, o.stand.from.less)
	}
	for _, n := range removed {
		o.makers[n] = slices.DeleteFunc(o.makers[n], func(m id) bool { return m == maker })
		if len(o.makers[n]) == 0 {
			delete(o.makers, n)
		}
	}
	if len(is) == 0 {
		delete(o.makes, maker)
	} else {
		o.makes[maker] = is
	}
	return append(slices.Clone(is), removed...)
}

// made returns the nodes of the keys that an element makes, each once.
func (o *flatOp[K, K2, V]) made(maker id) []id {
	item, ok := o.stand.from.item(maker)
	if !ok {
		return nil
	}
	nodes := make([]id, 0, len(item.Value))
	for _, made := range item.Value {
		nodes = append(nodes, o.intern(made.Key))
	}
	return unique(nodes)
}

// write gives a key the value of the first element that makes it.
func (o *flatOp[K, K2, V]) write(n id) {
	var value V
	if len(o.makers[n]) == 0 {
		o.assign(n, value, false)
		return
	}
	key := o.results.key(n)
	item, _ := o.stand.from.item(o.makers[n][0])
	i := slices.IndexFunc(item.Value, func(made Item[K2, V]) bool { return made.Key == key })
	o.assign(n, item.Value[i].Value, true)
}

func (o *flatOp[K, K2, V]) holds(yield func(id)) {
	o.results.members(func(n id) bool { yield(n); return true })
}
