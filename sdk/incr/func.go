package incr

import "runtime/debug"

// Func is a memoised function: one node for each key that somebody needs.
type Func[K comparable, V any] struct {
	store[K, V]
	call func(c *Ctx, k K) (V, error)
	// each are the collections made from this function.
	each []*members
	// top is the greatest height that a node of it ever had.
	top int32
}

// NewFunc adds a function to the graph. f must depend on its key and on what it reads through c alone; it runs in some
// goroutine, never twice at once for one key. Its results must not be changed. If it returns Absent the key has no value;
// if it returns another error, or panics, it keeps its last good value and is listed by Failures. A result that is equal to
// the one before spreads no further; without equal, every run is a change.
func NewFunc[K comparable, V any](g *Graph, name string, equal func(a, b V) bool, f func(c *Ctx, k K) (V, error)) *Func[K, V] {
	g.mu.Lock()
	defer g.mu.Unlock()
	fn := &Func[K, V]{store: newStore[K](g, name, equal), call: f}
	fn.index = g.addFamily(fn)
	return fn
}

// Get returns the value of a key, false if it is absent: the function said so, or failed and never had a good value.
func (f *Func[K, V]) Get(c *Ctx, k K) (V, bool) {
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	n := f.intern(k)
	c.read(n)
	return f.get(n)
}

// Of is Get for those to whom an absent value is a zero value.
func (f *Func[K, V]) Of(c *Ctx, k K) V {
	v, _ := f.Get(c, k)
	return v
}

func (f *Func[K, V]) compute(c *Ctx, n id) (bool, error) {
	k := f.at(n).key
	old, had := f.get(n)
	f.g.runs++
	f.g.mu.Unlock()
	v, same, err := f.try(c, k, old, had)
	f.g.mu.Lock()
	switch {
	case c.task.poison() != nil:
		return false, c.task.poison()
	case err == Absent:
		var none V
		return f.put(n, none, false), nil
	case err != nil || same:
		return false, err
	}
	f.at(n).value = v
	f.g.nodes.at(n).flags |= present
	return true, nil
}

func (f *Func[K, V]) try(c *Ctx, k K, old V, had bool) (v V, same bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = asError(p)
		}
	}()
	v, err = f.call(c, k)
	return v, err == nil && had && f.equal(old, v), err
}

func asError(p any) error {
	if cycle, ok := p.(*CycleError); ok {
		return cycle
	}
	return &PanicError{Value: p, Stack: debug.Stack()}
}

func (f *Func[K, V]) changed(n id) {
	for _, m := range f.each {
		m.changed(n)
	}
}

func (f *Func[K, V]) lifted(n id, from, to int32) {
	f.top = max(f.top, to)
	for _, m := range f.each {
		m.lifted(n, from, to)
	}
}

func (f *Func[K, V]) graph() *Graph { return f.g }
