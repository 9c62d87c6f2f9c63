package incr

// Group is the collection of what f makes of the members of each index key. f gets them in the
// order of their keys, and runs again for an index key when its members, or what it read through c,
// changed.
func Group[I, K comparable, V, R any](x *Index[I, K, V], name string, equal func(a, b R) bool,
	f func(c *Ctx, i I, members []Item[K, V]) (R, error)) Collection[I, R] {
	return Map(x, name, equal, f)
}

// Concat is a function that joins the pieces of an index key, in the order of their keys: a large
// resource from memoised encoded parts. It copies bytes and encodes nothing. An index key without
// members gives no bytes.
func Concat[I, K comparable](x *Index[I, K, []byte], name string) *Func[I, []byte] {
	return NewFunc(x.x.results.g, name, nil, func(c *Ctx, i I) ([]byte, error) { return join(x.Of(c, i)), nil })
}

func join[K comparable](pieces []Item[K, []byte]) []byte {
	size := 0
	for _, p := range pieces {
		size += len(p.Value)
	}
	out := make([]byte, 0, size)
	for _, p := range pieces {
		out = append(out, p.Value...)
	}
	return out
}
