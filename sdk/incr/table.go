package incr

// table finds ids by the hash of their key: open addressing with linear probing, 4 bytes a place,
// at most three quarters full. Keys are kept elsewhere, once.
type table struct {
	places []id
	used   int
}

// find returns the id for which same is true among those with the hash.
func (t *table) find(hash uint64, same func(id) bool) id {
	if len(t.places) == 0 {
		return 0
	}
	mask := uint64(len(t.places) - 1)
	for i := hash & mask; t.places[i] != 0; i = (i + 1) & mask {
		if same(t.places[i]) {
			return t.places[i]
		}
	}
	return 0
}

// add puts in an id that isn't there. rehash gives the hash of an id's key.
func (t *table) add(hash uint64, n id, rehash func(id) uint64) {
	if (t.used+1)*4 > len(t.places)*3 {
		t.resize(max(8, len(t.places)*2), rehash)
	}
	t.put(hash, n)
	t.used++
}

func (t *table) put(hash uint64, n id) {
	mask := uint64(len(t.places) - 1)
	i := hash & mask
	for t.places[i] != 0 {
		i = (i + 1) & mask
	}
	t.places[i] = n
}

func (t *table) resize(size int, rehash func(id) uint64) {
	old := t.places
	t.places = make([]id, size)
	for _, n := range old {
		if n != 0 {
			t.put(rehash(n), n)
		}
	}
}

// remove takes out an id and moves back those that had been pushed on by it.
func (t *table) remove(hash uint64, n id, rehash func(id) uint64) {
	mask := uint64(len(t.places) - 1)
	i := hash & mask
	for t.places[i] != n {
		i = (i + 1) & mask
	}
	t.places[i] = 0
	t.used--
	for j := (i + 1) & mask; t.places[j] != 0; j = (j + 1) & mask {
		home := rehash(t.places[j]) & mask
		if (j-home)&mask >= (j-i)&mask {
			t.places[i], t.places[j] = t.places[j], 0
			i = j
		}
	}
	t.shrink(rehash)
}

func (t *table) shrink(rehash func(id) uint64) {
	switch {
	case t.used == 0:
		t.places = nil
	case len(t.places) > 64 && t.used*8 < len(t.places):
		t.resize(len(t.places)/2, rehash)
	}
}
