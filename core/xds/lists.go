package xds

import (
	"hash/maphash"
	"iter"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// longList is from how many bytes on a list of names is worth to be shared.
	longList = 1024
	// keptLists is how many of them are kept.
	keptLists = 64
	// resourceNames is the field of a DiscoveryRequest.
	resourceNames = 3
)

// lists keeps the lists of names that requests brought lately. In state of the world each ACK repeats the whole list, and the lists of
// many streams are alike: decoding them anew was half of what a core of 500 proxies allocated.
type lists struct {
	seed maphash.Seed
	mu   sync.Mutex
	kept map[uint64][]string
}

func newLists() *lists { return &lists{seed: maphash.MakeSeed(), kept: map[uint64][]string{}} }

// cut takes the names out of an encoded DiscoveryRequest. It returns the rest of the message and the names, which are shared: read
// only. Where it can't, or where it isn't worth it, ok is false.
func (l *lists) cut(message []byte) (rest []byte, names []string, ok bool) {
	if len(message) < longList {
		return nil, nil, false
	}
	var h maphash.Hash
	h.SetSeed(l.seed)
	count := 0
	for b := message; len(b) > 0; {
		num, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return nil, nil, false
		}
		if num == resourceNames && typ == protowire.BytesType {
			_, _ = h.Write(b[:n])
			count++
		} else {
			rest = append(rest, b[:n]...)
		}
		b = b[n:]
	}
	names = l.shared(h.Sum64(), message, count)
	return rest, names, names != nil
}

// listed goes through the names of a message that is well formed.
func listed(message []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(message) > 0 {
			num, typ, n := protowire.ConsumeField(message)
			if num == resourceNames && typ == protowire.BytesType {
				_, _, tag := protowire.ConsumeTag(message)
				if name, _ := protowire.ConsumeBytes(message[tag:]); !yield(name) {
					return
				}
			}
			message = message[n:]
		}
	}
}

// shared returns the message's list, of count names, as strings: those that are kept if they are the same, nil if one is no UTF-8.
func (l *lists) shared(sum uint64, message []byte, count int) []string {
	l.mu.Lock()
	kept := l.kept[sum]
	l.mu.Unlock()
	if len(kept) == count && equal(kept, message) {
		return kept
	}
	names := make([]string, 0, count)
	for n := range listed(message) {
		if !utf8.Valid(n) {
			return nil
		}
		names = append(names, string(n))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) >= keptLists {
		for any := range l.kept {
			delete(l.kept, any)
			break
		}
	}
	l.kept[sum] = names
	return names
}

// equal says whether the message has these names, in this order; there are as many.
func equal(names []string, message []byte) bool {
	if names == nil {
		return false
	}
	i := 0
	for n := range listed(message) {
		if names[i] != string(n) {
			return false
		}
		i++
	}
	return true
}
