package incr

import "maps"

// Each is the collection of a function's values at the keys of another collection; keys without a value are left out.
func Each[K comparable, A, V any](keys Collection[K, A], f *Func[K, V]) Collection[K, V] {
	is := NewFunc(keys.graph(), keys.name()+"/is", Same[bool], func(c *Ctx, k K) (bool, error) {
		_, ok := keys.Get(c, k)
		return ok, nil
	})
	return &each[K, A, V]{stand: stand[K, A]{from: keys}, f: f, is: is}
}

// Map is the collection of what f makes of each element. f runs again for an element when it, or what f read through c,
// changed.
func Map[K comparable, A, V any](from Collection[K, A], name string, equal func(a, b V) bool, f func(c *Ctx, k K, a A) (V, error)) Collection[K, V] {
	made := NewFunc(from.graph(), name, equal, func(c *Ctx, k K) (V, error) {
		a, ok := from.Get(c, k)
		if !ok {
			var none V
			return none, Absent
		}
		return f(c, k, a)
	})
	return &each[K, A, V]{stand: stand[K, A]{from: from}, f: made}
}

// Filter is the collection of those elements for which keep is true.
func Filter[K comparable, V any](from Collection[K, V], name string, keep func(c *Ctx, k K, v V) bool) Collection[K, V] {
	return Map(from, name, from.same, func(c *Ctx, k K, v V) (V, error) {
		if keep(c, k, v) {
			return v, nil
		}
		return v, Absent
	})
}

type each[K comparable, A, V any] struct {
	stand[K, A]
	f   *Func[K, V]
	set members
	// is says whether a key is an element of the collection below; nil where f looks itself.
	is *Func[K, bool]
}

// members are those nodes of a function that are elements of a collection.
type members struct {
	g   *Graph
	out outlet
	has map[id]struct{}
	// top is the greatest height among them, or more if stale.
	top   int32
	stale bool
}

func (m *members) changed(n id) {
	if _, ok := m.has[n]; ok {
		m.out.emit(m.g, n)
	}
}

// lifted keeps those who stand on the collection above its elements.
func (m *members) lifted(n id, from, to int32) {
	if _, ok := m.has[n]; ok {
		m.stale = m.stale || from == m.top && to < from
		m.rise(to)
	}
}

func (m *members) rise(height int32) {
	m.top = max(m.top, height)
	m.out.lift(m.g, height+1)
}

// floor is above all elements.
func (m *members) floor() int32 {
	if m.stale {
		m.top, m.stale = 0, false
		for n := range m.has {
			m.top = max(m.top, m.g.nodes.at(n).height)
		}
	}
	return m.top + 1
}

func (e *each[K, A, V]) name() string { return e.f.label }

// Get implements Source.
func (e *each[K, A, V]) Get(c *Ctx, k K) (V, bool) {
	if e.is != nil && !e.is.Of(c, k) {
		var none V
		return none, false
	}
	return e.f.Get(c, k)
}

// All implements Collection.
func (e *each[K, A, V]) All(c *Ctx) []Item[K, V] { return all(c, Collection[K, V](e)) }

func (e *each[K, A, V]) run(c *Ctx, self id) (bool, error) {
	if e.set.has == nil {
		e.start()
	}
	for _, n := range e.take(c, self) {
		k := e.from.key(n)
		if _, ok := e.from.item(n); ok {
			e.add(k)
		} else if n := e.f.find(k); n != 0 {
			e.remove(n)
		}
	}
	return false, nil
}

func (e *each[K, A, V]) start() {
	e.set.g, e.set.has = e.f.g, map[id]struct{}{}
	e.f.each = append(e.f.each, &e.set)
}

// add makes the node of a key an element. One that is new is computed when the wave gets there.
func (e *each[K, A, V]) add(k K) {
	g, n := e.f.g, e.f.intern(k)
	if _, ok := e.set.has[n]; ok {
		return
	}
	e.set.has[n] = struct{}{}
	g.pin(n)
	nd := g.nodes.at(n)
	if nd.is(computed) {
		e.set.out.emit(g, n)
	} else if g.front != settledFront && !nd.is(flying) {
		nd.height = e.f.top
		g.mark(n)
	}
	e.set.rise(nd.height)
}

func (e *each[K, A, V]) remove(n id) {
	if _, ok := e.set.has[n]; !ok {
		return
	}
	delete(e.set.has, n)
	e.set.stale = true
	e.set.out.emit(e.f.g, n)
	e.f.g.unpin(n)
}

func (e *each[K, A, V]) holds(yield func(id)) {
	for n := range e.set.has {
		yield(n)
	}
}

func (e *each[K, A, V]) stop() {
	e.leave()
	e.set.out.node = 0
	for i, m := range e.f.each {
		if m == &e.set {
			e.f.each = append(e.f.each[:i], e.f.each[i+1:]...)
			break
		}
	}
	for n := range e.set.has {
		e.f.g.unpin(n)
	}
	e.set.has, e.set.top = nil, 0
}

func (e *each[K, A, V]) find(k K) id         { return e.f.find(k) }
func (e *each[K, A, V]) graph() *Graph       { return e.f.g }
func (e *each[K, A, V]) outlet() *outlet     { return &e.set.out }
func (e *each[K, A, V]) anchor() id          { return e.set.out.anchor(e.f.g, e) }
func (e *each[K, A, V]) key(n id) K          { return e.f.key(n) }
func (e *each[K, A, V]) less(a, b id) int    { return e.f.less(a, b) }
func (e *each[K, A, V]) same(a, b V) bool    { return e.f.same(a, b) }
func (e *each[K, A, V]) membersFloor() int32 { return e.set.floor() }

func (e *each[K, A, V]) members(yield func(id) bool) {
	for n := range e.set.has {
		if e.f.g.nodes.at(n).is(present) && !yield(n) {
			return
		}
	}
}

func (e *each[K, A, V]) item(n id) (Item[K, V], bool) {
	item, ok := e.f.item(n)
	_, member := e.set.has[n]
	return item, ok && member
}

func (e *each[K, A, V]) settleMembers(t *task) {
	e.f.g.settleAll(t, maps.Keys(e.set.has))
}
