package incr

// results is the collection of what an operator writes, and the family of its nodes.
type results struct {
	store
	out outlet
	// operator writes the results.
	operator op
	// madeFrom yields the nodes that a result was made from; nil where they say nothing.
	madeFrom func(n id, yield func(id))
}

func (r *results) values() bool                   { return true }
func (r *results) compute(*Ctx, id) (bool, error) { return false, nil }
func (r *results) changed(n id)                   { r.out.emit(r.g, n) }

func (r *results) sources(n id, yield func(id)) {
	if r.madeFrom != nil {
		r.madeFrom(n, yield)
	}
}

func (r *results) outlet() *outlet     { return &r.out }
func (r *results) anchor() id          { return r.out.anchor(r.g, r.operator) }
func (r *results) updateMembers(*task) {}
func (r *results) membersFloor() int32 { return 0 }

// read reads a result.
func (r *results) read(c *Ctx, n id) bool {
	r.g.nodes.at(n).flags |= computed
	c.record(n)
	return r.has(n)
}

// forget forgets all results.
func (r *results) forget() {
	r.out.node = 0
	r.eraseAll()
}

func (r *results) holds(yield func(id)) {
	r.members(func(n id) bool { yield(n); return true })
}

// newResults is the typed side of results.
func newResults[K comparable, V any](r *results) Collection[K, V] {
	return &set[K, V]{r, lookUp[K](r)}
}

func lookUp[K comparable](r *results) func(c *Ctx, k K) (id, bool) {
	return func(c *Ctx, k K) (id, bool) {
		c.read(r.anchor())
		n := intern(&r.store, k)
		return n, r.read(c, n)
	}
}
