package incr

// Each is the collection of a function's values at the keys of another collection; keys without a
// value are left out.
func Each[K comparable, A, V any](keys Collection[K, A], f *Func[K, V]) Collection[K, V] {
	from := rowsOf(keys)
	is := NewFunc(from.keys().g, from.name()+"/is", Same[bool], func(c *Ctx, k K) (bool, error) {
		_, ok := keys.Get(c, k)
		return ok, nil
	})
	return newEach(from, f, &is.fn)
}

// Map is the collection of what f makes of each element. f runs again for an element when it, or
// what f read through c, changed.
func Map[K comparable, A, V any](from Collection[K, A], name string, equal func(a, b V) bool, f func(c *Ctx, k K, a A) (V, error)) Collection[K, V] {
	rows := rowsOf(from)
	made := NewFunc(rows.keys().g, name, equal, func(c *Ctx, k K) (V, error) {
		a, ok := from.Get(c, k)
		if !ok {
			var none V
			return none, Absent
		}
		return f(c, k, a)
	})
	return newEach(rows, made, nil)
}

// Filter is the collection of those elements for which keep is true.
func Filter[K comparable, V any](from Collection[K, V], name string, keep func(c *Ctx, k K, v V) bool) Collection[K, V] {
	return Map(from, name, equalOf[V](from.source().keys()), func(c *Ctx, k K, v V) (V, error) {
		if keep(c, k, v) {
			return v, nil
		}
		return v, Absent
	})
}

func newEach[K comparable, V any](from rows, f *Func[K, V], is *fn) Collection[K, V] {
	e := &each{stand: stand{from: from}, f: &f.fn}
	return &set[K, V]{e, lookThrough[K](&f.fn, is)}
}

// lookThrough reads a function at the keys for which is is true, or at all.
func lookThrough[K comparable](f, is *fn) func(c *Ctx, k K) (id, bool) {
	return func(c *Ctx, k K) (id, bool) {
		if is != nil {
			n := intern(&is.store, k)
			c.read(n)
			if !*(*bool)(is.valueOf(n)) {
				return 0, false
			}
		}
		n := intern(&f.store, k)
		c.read(n)
		return n, f.has(n)
	}
}
