package incr

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"unsafe"
)

// places knows where each element of a collection is: in an index, or in a side of a join. A place
// is the id of its key.
type places struct {
	// by returns the keys of an element; intern returns the id of a key.
	by     func(n id) (first unsafe.Pointer, many int)
	intern func(key unsafe.Pointer) id
	size   uintptr
	// Most elements are in one place.
	one  map[id]id
	more map[id][]id
	// bad are elements for which by panics: they stay where they were.
	bad map[id]error
	// was and is are where the element is and was that moved last.
	was, is []id
}

func newPlaces(by func(n id) (unsafe.Pointer, int), intern func(unsafe.Pointer) id, key reflect.Type) places {
	return places{by: by, intern: intern, size: key.Size(), one: map[id]id{}, more: map[id][]id{}, bad: map[id]error{}}
}

// placesBy calls an author's function with an element.
func placesBy[I, K comparable, V any](from rows, by func(k K, v V) []I) func(n id) (unsafe.Pointer, int) {
	s := from.keys()
	return func(n id) (unsafe.Pointer, int) {
		item := itemAt[K, V](s, n)
		keys := by(item.Key, item.Value)
		return unsafe.Pointer(unsafe.SliceData(keys)), len(keys)
	}
}

// move returns where an element was and where it is now, until it is called again.
func (p *places) move(from rows, n id) (was, is []id) {
	p.was, p.is = p.get(p.was[:0], n), p.is[:0]
	if from.has(n) {
		if err := p.find(n); err != nil {
			p.bad[n] = err
			return p.was, p.was
		}
	}
	delete(p.bad, n)
	if !slices.Equal(p.was, p.is) {
		p.set(n, p.is)
	}
	return p.was, p.is
}

// find puts into is where an element should be, each place once.
func (p *places) find(n id) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = asError(v)
		}
	}()
	first, many := p.by(n)
	for i := range many {
		if place := p.intern(unsafe.Add(first, uintptr(i)*p.size)); !slices.Contains(p.is, place) {
			p.is = append(p.is, place)
		}
	}
	return nil
}

func (p *places) get(to []id, n id) []id {
	if i, ok := p.one[n]; ok {
		return append(to, i)
	}
	return append(to, p.more[n]...)
}

func (p *places) set(n id, is []id) {
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
func (p *places) err() error { return errors.Join(slices.Collect(maps.Values(p.bad))...) }

func (p *places) forget() {
	p.one, p.more, p.bad = map[id]id{}, map[id][]id{}, map[id]error{}
}
