package incr

import "unsafe"

// Func is a memoised function: one node for each key that somebody needs.
type Func[K comparable, V any] struct{ fn fn }

// NewFunc adds a function to the graph. f must depend on its key and on what it reads through c
// alone; it runs in some goroutine, never twice at once for one key. Its results must not be
// changed. If it returns Absent the key has no value; if it returns another error, or panics, it
// keeps its last good value and is listed by Failures. A result that is equal to the one before
// spreads no further; without equal, every run is a change.
func NewFunc[K comparable, V any](g *Graph, name string, equal func(a, b V) bool, f func(c *Ctx, k K) (V, error)) *Func[K, V] {
	made := &Func[K, V]{fn{store: newStore[K](g, name, equal)}}
	made.fn.call = func(c *Ctx, key, value unsafe.Pointer, had bool) (same bool, err error) {
		v, err := f(c, *(*K)(key))
		old := (*V)(value)
		same = err == nil && had && equal != nil && equal(*old, v)
		if c.g.mu.Lock(); err == nil && !same && c.task.poison() == nil {
			*old = v
		}
		return same, err
	}
	g.enroll(&made.fn, &made.fn.store)
	return made
}

// Get returns the value of a key, false if it is absent: the function said so, or failed and never
// had a good value.
func (f *Func[K, V]) Get(c *Ctx, k K) (V, bool) {
	s := &f.fn.store
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	n := intern(s, k)
	c.read(n)
	return *(*V)(s.valueOf(n)), s.has(n)
}

// Of is Get for those to whom an absent value is a zero value.
func (f *Func[K, V]) Of(c *Ctx, k K) V {
	v, _ := f.Get(c, k)
	return v
}

func (f *Func[K, V]) source() source { return &f.fn }
