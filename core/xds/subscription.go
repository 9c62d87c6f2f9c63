package xds

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"weak"
)

// subscription is what a stream wants of a type: everything, names, or both. It is immutable, and
// equal ones are one pointer, so that streams in the same situation are seen to be. nil wants
// nothing.
type subscription struct {
	wildcard bool
	names    []string // sorted, unique
	bytes    int      // of the names
	print    uint64   // sum of the names' hashes: a quick test for equality, whatever the order
	self     weak.Pointer[subscription]
}

// wants reports whether the subscription covers a name.
func (s *subscription) wants(name string) bool {
	return s != nil && (s.wildcard || s.named(name))
}

// named reports whether the name itself is asked for.
func (s *subscription) named(name string) bool {
	if s == nil {
		return false
	}
	_, ok := slices.BinarySearch(s.names, name)
	return ok
}

// lacks returns the names of s that are not among others, which are sorted.
func (s *subscription) lacks(others []string) (names []string) {
	for _, n := range s.names {
		for len(others) > 0 && others[0] < n {
			others = others[1:]
		}
		if len(others) == 0 || others[0] != n {
			names = append(names, n)
		}
	}
	return names
}

const (
	// longNames is from how many names on it is worth to remember which subscription a list made.
	longNames = 32
	// remembered is how many lists and pairs are remembered: what streams in the same situation
	// repeat within moments.
	remembered = 1024
)

// subscriptions keeps the subscriptions in use, each once. Lists that many streams repeat are one
// slice (lists), and what became of such a list, of two subscriptions taken together, or of one by
// a difference, is remembered, so that it is sorted and hashed once and not for each stream.
type subscriptions struct {
	seed maphash.Seed
	mu   sync.Mutex
	live map[[sha256.Size]byte]weak.Pointer[subscription]
	made map[list]weak.Pointer[subscription]
	both map[[2]weak.Pointer[subscription]]shared
	came map[difference]shared
}

// list identifies a slice of names that is never written to.
type list struct {
	wildcard bool
	first    weak.Pointer[string]
	count    int
}

// difference is what a delta request adds to a subscription and takes from it; the names are given
// by their hash.
type difference struct {
	from      weak.Pointer[subscription]
	add, drop [sha256.Size]byte
}

// shared is a subscription that two streams come to, which may be to nothing.
type shared struct {
	nothing bool
	of      weak.Pointer[subscription]
}

func newSubscriptions() *subscriptions {
	return &subscriptions{
		seed: maphash.MakeSeed(), live: map[[sha256.Size]byte]weak.Pointer[subscription]{},
		made: map[list]weak.Pointer[subscription]{}, both: map[[2]weak.Pointer[subscription]]shared{},
		came: map[difference]shared{},
	}
}

// same reports whether names, in any order and without duplicates, are those of the subscription.
func (t *subscriptions) same(s *subscription, wildcard bool, names []string) bool {
	if s == nil || s.wildcard != wildcard || len(s.names) != len(names) {
		return false
	}
	return s.print == t.print(names)
}

func (t *subscriptions) print(names []string) uint64 {
	var sum uint64
	for _, n := range names {
		sum += maphash.String(t.seed, n)
	}
	return sum
}

// next returns the subscription to names, where now is what there was before.
func (t *subscriptions) next(now *subscription, wildcard bool, names []string) *subscription {
	if s := t.known(wildcard, names); s != nil {
		return s
	}
	if t.same(now, wildcard, names) {
		return now
	}
	return t.get(wildcard, names)
}

// known returns what was made of this very list, if that is remembered.
func (t *subscriptions) known(wildcard bool, names []string) *subscription {
	if len(names) < longNames {
		return nil
	}
	key := list{wildcard, weak.Make(&names[0]), len(names)}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.made[key].Value()
}

// get returns the subscription to names (in any order, duplicates don't count), nil for nothing.
// Names must not be written to afterwards.
func (t *subscriptions) get(wildcard bool, names []string) *subscription {
	if !wildcard && len(names) == 0 {
		return nil
	}
	if s := t.known(wildcard, names); s != nil {
		return s
	}
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	s := t.intern(wildcard, slices.Compact(sorted))
	if len(names) >= longNames {
		key := list{wildcard, weak.Make(&names[0]), len(names)}
		t.mu.Lock()
		remember(t.made, key, s.self)
		t.mu.Unlock()
	}
	return s
}

// remember notes a result. What was remembered before is let go when there is too much of it.
func remember[K comparable, V any](m map[K]V, key K, value V) {
	if len(m) >= remembered {
		clear(m)
	}
	m[key] = value
}

// intern returns the one subscription to names, which are sorted and unique.
func (t *subscriptions) intern(wildcard bool, names []string) *subscription {
	key := key(wildcard, names)
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.live[key].Value(); s != nil {
		return s
	}
	s := &subscription{wildcard: wildcard, names: names, bytes: bytesOf(names), print: t.print(names)}
	s.self = weak.Make(s)
	t.live[key] = s.self
	runtime.AddCleanup(s, func(key [sha256.Size]byte) { t.drop(key) }, key)
	return s
}

func bytesOf(names []string) (n int) {
	for _, name := range names {
		n += len(name)
	}
	return n
}

// drop forgets a subscription that nobody has any more, unless an equal one was made meanwhile.
func (t *subscriptions) drop(key [sha256.Size]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[key].Value() == nil {
		delete(t.live, key)
	}
}

// key is a hash over the names, each with its length.
func key(wildcard bool, names []string) (sum [sha256.Size]byte) {
	h := sha256.New()
	const block = 4096
	b := make([]byte, 0, block)
	if wildcard {
		b = append(b, 1)
	}
	for _, n := range names {
		if len(b)+4+len(n) > block {
			h.Write(b)
			b = b[:0]
		}
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(n))), n...)
	}
	h.Write(b)
	h.Sum(sum[:0])
	return sum
}

// and returns what both cover.
func (t *subscriptions) and(a, b *subscription) *subscription {
	switch {
	case a == nil || b == nil:
		return nil
	case a == b:
		return a
	}
	return remembering(t, t.both, [2]weak.Pointer[subscription]{a.self, b.self}, func() *subscription { return t.intersect(a, b) })
}

// shift returns a subscription with names added to it and others dropped; a name in both lists is
// dropped.
func (t *subscriptions) shift(from *subscription, add, drop []string) *subscription {
	if len(add) == 0 && len(drop) == 0 {
		return from
	}
	return remembering(t, t.came, difference{from.self, key(false, add), key(false, drop)}, func() *subscription {
		less := slices.Sorted(slices.Values(drop))
		names := slices.Concat(from.names, add)
		slices.Sort(names)
		names = slices.DeleteFunc(slices.Compact(names), func(n string) bool {
			_, gone := slices.BinarySearch(less, n)
			return gone
		})
		if !from.wildcard && len(names) == 0 {
			return nil
		}
		return t.intern(from.wildcard, names)
	})
}

// remembering returns what is remembered in m for a key, else what get makes of it.
func remembering[K comparable](t *subscriptions, m map[K]shared, key K, get func() *subscription) *subscription {
	t.mu.Lock()
	have, ok := m[key]
	t.mu.Unlock()
	if ok && have.nothing {
		return nil
	}
	if s := have.of.Value(); s != nil {
		return s
	}
	s := get()
	result := shared{nothing: s == nil}
	if s != nil {
		result.of = s.self
	}
	t.mu.Lock()
	remember(m, key, result)
	t.mu.Unlock()
	return s
}

func (t *subscriptions) intersect(a, b *subscription) *subscription {
	wildcard := a.wildcard && b.wildcard
	var names []string
	x, y := a.names, b.names
	for len(x) > 0 || len(y) > 0 {
		switch {
		case len(y) == 0 || len(x) > 0 && x[0] < y[0]:
			if b.wildcard {
				names = append(names, x[0])
			}
			x = x[1:]
		case len(x) == 0 || y[0] < x[0]:
			if a.wildcard {
				names = append(names, y[0])
			}
			y = y[1:]
		default:
			names = append(names, x[0])
			x, y = x[1:], y[1:]
		}
	}
	if !wildcard && len(names) == 0 {
		return nil
	}
	return t.intern(wildcard, names)
}
