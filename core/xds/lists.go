package xds

import (
	"hash/maphash"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// longList is from how many bytes on a list of names is worth to be shared.
	longList = 1024
	// keptLists is how many of them are kept.
	keptLists = 64
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
	const resourceNames = 3
	var h maphash.Hash
	h.SetSeed(l.seed)
	var list [][]byte
	for b := message; len(b) > 0; {
		num, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return nil, nil, false
		}
		if num != resourceNames || typ != protowire.BytesType {
			rest, b = append(rest, b[:n]...), b[n:]
			continue
		}
		_, _, tag := protowire.ConsumeTag(b)
		name, _ := protowire.ConsumeBytes(b[tag:])
		_, _ = h.Write(b[:n])
		list, b = append(list, name), b[n:]
	}
	names = l.shared(h.Sum64(), list)
	return rest, names, names != nil
}

// shared returns the list as strings: those that are kept if they are the same, nil if one is no UTF-8.
func (l *lists) shared(sum uint64, list [][]byte) []string {
	l.mu.Lock()
	kept := l.kept[sum]
	l.mu.Unlock()
	if equal(kept, list) {
		return kept
	}
	names := make([]string, len(list))
	for i, n := range list {
		if !utf8.Valid(n) {
			return nil
		}
		names[i] = string(n)
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

func equal(names []string, list [][]byte) bool {
	if names == nil || len(names) != len(list) {
		return false
	}
	for i, n := range list {
		if names[i] != string(n) {
			return false
		}
	}
	return true
}
