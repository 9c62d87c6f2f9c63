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

// subscription is what a stream wants of a type: everything, names, or both. It is immutable, and equal ones are one pointer, so that
// streams in the same situation are seen to be. nil wants nothing.
type subscription struct {
	wildcard bool
	names    []string // sorted, unique
	print    uint64   // sum of the names' hashes: a quick test for equality, whatever the order
}

// wants says whether the subscription covers a name.
func (s *subscription) wants(name string) bool {
	return s != nil && (s.wildcard || s.named(name))
}

// named says whether the name itself is asked for.
func (s *subscription) named(name string) bool {
	if s == nil {
		return false
	}
	_, ok := slices.BinarySearch(s.names, name)
	return ok
}

// subscriptions keeps the subscriptions in use, each once.
type subscriptions struct {
	seed maphash.Seed
	mu   sync.Mutex
	live map[[sha256.Size]byte]weak.Pointer[subscription]
}

func newSubscriptions() *subscriptions {
	return &subscriptions{seed: maphash.MakeSeed(), live: map[[sha256.Size]byte]weak.Pointer[subscription]{}}
}

// same says whether names, in any order and without duplicates, are those of the subscription.
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

// get returns the subscription to names (in any order, duplicates don't count), nil for nothing.
func (t *subscriptions) get(wildcard bool, names []string) *subscription {
	if !wildcard && len(names) == 0 {
		return nil
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	key := key(wildcard, names)
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.live[key].Value(); s != nil {
		return s
	}
	s := &subscription{wildcard: wildcard, names: names, print: t.print(names)}
	p := weak.Make(s)
	t.live[key] = p
	runtime.AddCleanup(s, func(key [sha256.Size]byte) { t.drop(key, p) }, key)
	return s
}

// drop forgets a subscription that nobody has any more, unless an equal one was made meanwhile.
func (t *subscriptions) drop(key [sha256.Size]byte, p weak.Pointer[subscription]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[key] == p {
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
	var names []string
	for _, n := range a.names {
		if b.wants(n) {
			names = append(names, n)
		}
	}
	if a.wildcard {
		for _, n := range b.names {
			if !a.named(n) {
				names = append(names, n)
			}
		}
	}
	return t.get(a.wildcard && b.wildcard, names)
}
