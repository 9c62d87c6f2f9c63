package incr

import "maps"

// each is the collection of a function's values at the keys of another, and its operator.
type each struct {
	stand
	f   *fn
	set members
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

func (e *each) run(c *Ctx, self id) (bool, error) {
	if e.set.has == nil {
		e.start()
	}
	keys := e.from.keys()
	for _, n := range e.drain(c, self) {
		if k := keys.at(n); e.from.has(n) {
			e.add(e.f.internAt(k))
		} else if n := e.f.findAt(k); n != 0 {
			e.remove(n)
		}
	}
	return false, nil
}

func (e *each) start() {
	e.set.g, e.set.has = e.f.g, map[id]struct{}{}
	e.f.each = append(e.f.each, &e.set)
}

// add makes a node an element. One that is new is computed when the wave gets there.
func (e *each) add(n id) {
	g := e.f.g
	if _, ok := e.set.has[n]; ok {
		return
	}
	e.set.has[n] = struct{}{}
	g.pin(n)
	nd := g.nodes.at(n)
	if nd.is(computed) {
		e.set.out.emit(g, n)
	} else if g.front != doneFront && !nd.is(flying) {
		nd.height = e.f.top
		g.mark(n)
	}
	e.set.rise(nd.height)
}

func (e *each) remove(n id) {
	if _, ok := e.set.has[n]; !ok {
		return
	}
	delete(e.set.has, n)
	e.set.stale = true
	e.set.out.emit(e.f.g, n)
	e.f.g.unpin(n)
}

func (e *each) holds(yield func(id)) {
	for n := range e.set.has {
		yield(n)
	}
}

func (e *each) stop() {
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

func (e *each) name() string        { return e.f.label }
func (e *each) keys() *store        { return &e.f.store }
func (e *each) outlet() *outlet     { return &e.set.out }
func (e *each) anchor() id          { return e.set.out.anchor(e.f.g, e) }
func (e *each) membersFloor() int32 { return e.set.floor() }

func (e *each) members(yield func(id) bool) {
	for n := range e.set.has {
		if e.f.has(n) && !yield(n) {
			return
		}
	}
}

func (e *each) has(n id) bool {
	_, member := e.set.has[n]
	return member && e.f.has(n)
}

func (e *each) updateMembers(t *task) {
	e.f.g.updateAll(t, maps.Keys(e.set.has))
}
