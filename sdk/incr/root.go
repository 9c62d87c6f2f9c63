package incr

// Observed is a root: a live want.
type Observed interface {
	// Name says what is wanted, for people.
	Name() string
	// Close ends the want. What nothing else needs is let go after two waves.
	Close()
}

// Root wants the value of one key.
type Root[K comparable, V any] struct {
	op    rootOp
	from  Source[K, V]
	key   K
	value V
	ok    bool
	shown bool
}

// Observe wants the value of a key of an input, a function or a collection. It is computed by the
// next wave, with other new roots in parallel, or when Value is called before.
func Observe[K comparable, V any](from Source[K, V], k K) *Root[K, V] {
	r := &Root[K, V]{from: from, key: k}
	r.op = rootOp{rooted: rooted{g: from.source().keys().g, Observed: r}, look: r.look}
	r.op.node = r.op.g.plant(&r.op)
	return r
}

// Value returns the value, false if it is absent. It waits for a wave that is running, so that
// functions must not call it.
func (r *Root[K, V]) Value() (V, bool) {
	g := r.op.g
	g.inspect(r.op.node)
	g.mu.Lock()
	defer g.mu.Unlock()
	return r.value, r.ok
}

// Key returns what is wanted.
func (r *Root[K, V]) Key() K { return r.key }

// Name implements Observed.
func (r *Root[K, V]) Name() string { return describeKey(r.from.source(), r.key) }

// Close implements Observed.
func (r *Root[K, V]) Close() { r.op.g.uproot(&r.op.node) }

// look reads the value and reports whether it is another one.
func (r *Root[K, V]) look(c *Ctx) bool {
	v, ok := r.get(c)
	if equal := equalOf[V](r.from.source().keys()); r.shown && ok == r.ok && (!ok || equal != nil && equal(r.value, v)) {
		return false
	}
	r.value, r.ok, r.shown = v, ok, true
	return true
}

func (r *Root[K, V]) get(c *Ctx) (V, bool) {
	c.g.mu.Unlock()
	defer c.g.mu.Lock()
	return r.from.Get(c, r.key)
}
