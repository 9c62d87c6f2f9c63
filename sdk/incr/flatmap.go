package incr

import (
	"slices"
	"unsafe"
)

// FlatMap is the collection of all that f makes of the elements: any number of new elements with
// keys of their own. Where several make the same key, the one from the element that comes first in
// the order of keys counts.
func FlatMap[K comparable, A any, K2 comparable, V any](from Collection[K, A], name string, equal func(a, b V) bool,
	f func(c *Ctx, k K, a A) ([]Item[K2, V], error)) Collection[K2, V] {
	return flatten[K2](rowsOf(Map(from, name, nil, f)), name, equal)
}

// flatten is the collection of the elements of lists of them.
func flatten[K comparable, V any](from rows, name string, equal func(a, b V) bool) Collection[K, V] {
	g := from.keys().g
	m := &flat{stand: stand{from: from}, results: results{store: newStore[K](g, name, equal)}}
	m.nodes = func(list unsafe.Pointer) []id {
		items := *(*[]Item[K, V])(list)
		nodes := make([]id, 0, len(items))
		for _, made := range items {
			nodes = append(nodes, intern(&m.results.store, made.Key))
		}
		return nodes
	}
	m.assign = func(n id, list unsafe.Pointer) {
		made, key := *(*[]Item[K, V])(list), keyAt[K](&m.results.store, n)
		i := slices.IndexFunc(made, func(made Item[K, V]) bool { return made.Key == key })
		assign(&m.results.store, n, made[i].Value, equal)
	}
	m.results.operator, m.results.madeFrom = m, m.makersOf
	g.enroll(&m.results, &m.results.store)
	return newResults[K, V](&m.results)
}

// flat is the operator of a FlatMap.
type flat struct {
	stand
	results results
	makes   map[id][]id
	makers  map[id][]id
	// nodes returns the nodes of the keys in a list of items; assign gives a node the value that
	// its key has in a list.
	nodes  func(list unsafe.Pointer) []id
	assign func(n id, list unsafe.Pointer)
}

func (o *flat) name() string         { return o.results.label }
func (o *flat) holds(yield func(id)) { o.results.holds(yield) }

func (o *flat) stop() {
	o.leave()
	o.results.forget()
	o.makes, o.makers = nil, nil
}

func (o *flat) makersOf(n id, yield func(id)) {
	for _, maker := range o.makers[n] {
		yield(maker)
	}
}

func (o *flat) run(c *Ctx, self id) (bool, error) {
	if o.makes == nil {
		o.makes, o.makers = map[id][]id{}, map[id][]id{}
	}
	var touched []id
	for _, maker := range unique(o.drain(c, self)) {
		touched = append(touched, o.note(maker)...)
	}
	for _, n := range unique(touched) {
		o.write(n)
	}
	return false, nil
}

// note notes what an element makes now and returns all that it made or makes.
func (o *flat) note(maker id) []id {
	was, is := o.makes[maker], o.made(maker)
	added, removed := difference(was, is)
	for _, n := range added {
		o.makers[n] = insert(o.makers[n], []id{maker}, o.from.keys().less)
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
func (o *flat) made(maker id) []id {
	if !o.from.has(maker) {
		return nil
	}
	return unique(o.nodes(o.from.keys().valueOf(maker)))
}

// write gives a key the value of the first element that makes it.
func (o *flat) write(n id) {
	if makers := o.makers[n]; len(makers) > 0 {
		o.assign(n, o.from.keys().valueOf(makers[0]))
	} else {
		o.results.withdraw(n)
	}
}
