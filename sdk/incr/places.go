package incr

import (
	"errors"
	"maps"
	"slices"
)

// places knows under which index keys each element of a collection is.
type places[I, K comparable, V any] struct {
	by func(k K, v V) []I
	// Most elements have one index key.
	one  map[id]I
	more map[id][]I
	// bad are elements for which by panics: they stay where they were.
	bad map[id]error
}

func newPlaces[I, K comparable, V any](by func(K, V) []I) places[I, K, V] {
	return places[I, K, V]{by: by, one: map[id]I{}, more: map[id][]I{}, bad: map[id]error{}}
}

// move returns where an element was and where it is now.
func (p *places[I, K, V]) move(from Collection[K, V], n id) (was, is []I) {
	was = p.get(n)
	is, err := p.find(from, n)
	if err != nil {
		p.bad[n] = err
		return was, was
	}
	delete(p.bad, n)
	p.set(n, is)
	return was, is
}

func (p *places[I, K, V]) find(from Collection[K, V], n id) (is []I, err error) {
	item, ok := from.item(n)
	if !ok {
		return nil, nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = asError(v)
		}
	}()
	return distinct(p.by(item.Key, item.Value)), nil
}

func (p *places[I, K, V]) get(n id) []I {
	if i, ok := p.one[n]; ok {
		return []I{i}
	}
	return p.more[n]
}

func (p *places[I, K, V]) set(n id, is []I) {
	delete(p.one, n)
	delete(p.more, n)
	switch len(is) {
	case 0:
	case 1:
		p.one[n] = is[0]
	default:
		p.more[n] = slices.Clone(is)
	}
}

// err is what is wrong with the elements that are there now.
func (p *places[I, K, V]) err() error { return errors.Join(slices.Collect(maps.Values(p.bad))...) }

func (p *places[I, K, V]) forget() { *p = newPlaces(p.by) }

// distinct returns each key once, in the order in which they come.
func distinct[I comparable](keys []I) []I {
	for i := 1; i < len(keys); i++ {
		if slices.Contains(keys[:i], keys[i]) {
			return distinctCopy(keys)
		}
	}
	return keys
}

func distinctCopy[I comparable](keys []I) []I {
	var out []I
	for _, k := range keys {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}
