package incr

// Observed is a root: a live want.
type Observed interface {
	// Name says what is wanted, for people.
	Name() string
	// Close ends the want. What nothing else needs is let go after two waves.
	Close()
}

// root is the operator's side of an Observed.
type root interface {
	op
	Observed
	wanted() bool
	// forget drops what changed in the wave before.
	forget()
}

// Root wants the value of one key.
type Root[K comparable, V any] struct {
	g     *Graph
	from  Source[K, V]
	key   K
	node  id
	value V
	ok    bool
	shown bool
}

// Observe wants the value of a key of an input, a function or a collection. It is computed by the next wave, with other new
// roots in parallel, or when Value is called before.
func Observe[K comparable, V any](from Source[K, V], k K) *Root[K, V] {
	r := &Root[K, V]{g: from.graph(), from: from, key: k}
	r.node = r.g.plant(r)
	return r
}

// Value returns the value, false if it is absent. It waits for a wave that is running, so that functions must not call it.
func (r *Root[K, V]) Value() (V, bool) {
	r.g.inspect(r.node)
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	return r.value, r.ok
}

// Key returns what is wanted.
func (r *Root[K, V]) Key() K { return r.key }

// Name implements Observed.
func (r *Root[K, V]) Name() string { return describeKey(r.from, r.key) }

// Close implements Observed.
func (r *Root[K, V]) Close() { r.g.uproot(&r.node) }

func (r *Root[K, V]) run(c *Ctx, self id) (bool, error) {
	v, ok := r.get(c)
	if r.shown && ok == r.ok && (!ok || r.from.same(r.value, v)) {
		return false, nil
	}
	r.value, r.ok, r.shown = v, ok, true
	r.g.touch(r)
	return true, nil
}

func (r *Root[K, V]) get(c *Ctx) (V, bool) {
	r.g.mu.Unlock()
	defer r.g.mu.Lock()
	return r.from.Get(c, r.key)
}

func (r *Root[K, V]) name() string     { return r.Name() }
func (r *Root[K, V]) settle(*task)     {}
func (r *Root[K, V]) floor() int32     { return 0 }
func (r *Root[K, V]) sources(func(id)) {}
func (r *Root[K, V]) holds(func(id))   {}
func (r *Root[K, V]) stop()            {}
func (r *Root[K, V]) wanted() bool     { return r.node != 0 }
func (r *Root[K, V]) forget()          {}

func (g *Graph) plant(r root) id {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.ops.add(r)
	g.pin(n)
	g.roots[n] = r
	g.fresh = append(g.fresh, n)
	return n
}

func (g *Graph) uproot(n *id) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if *n != 0 {
		delete(g.roots, *n)
		g.unpin(*n)
		*n = 0
	}
}

// inspect brings a root up to date between waves.
func (g *Graph) inspect(n id) {
	g.turn.RLock()
	defer g.turn.RUnlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if n != 0 {
		g.settle(&task{}, n)
	}
}

// touch notes that a root's result changed.
func (g *Graph) touch(r root) { g.touched = append(g.touched, r) }
