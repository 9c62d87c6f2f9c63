package xds

import (
	"hash/maphash"
	"iter"
	"sync"
	"unicode/utf8"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// longList is from how many bytes on a list of names is worth to be shared.
	longList = 1024
	// keptLists is how many of them are kept, keptBytes how much memory they may take.
	keptLists = 256
	keptBytes = 32 << 20
	// requestNames is the field of the names in both protocols' requests: resource_names,
	// resource_names_subscribe.
	requestNames = 3
)

// lists keeps the lists of names that requests brought lately. In state of the world each ACK
// repeats the whole list, and the lists of many streams are alike: decoding them anew was half of
// what a core of 500 proxies allocated.
type lists struct {
	seed   maphash.Seed
	mu     sync.Mutex
	kept   map[print][]string
	bytes  int              // that those kept take
	judged map[*string]bool // those kept that keep to the limits of names, by their first one
}

// print stands for a list: a hash of 64 bits that nobody outside can compute, over names and
// lengths, and their numbers.
type print struct {
	sum         uint64
	bytes, many int
}

// weight is about how many bytes of memory the list takes.
func (p print) weight() int { return budget.WeighNames(p.many, p.bytes) }

func newLists() *lists {
	return &lists{seed: maphash.MakeSeed(), kept: map[print][]string{}, judged: map[*string]bool{}}
}

// judge has names judged: those of a list that is kept only once, however many requests bring it.
func (l *lists) judge(names []string, by func([]string) error) error {
	if len(names) == 0 {
		return nil
	}
	first := &names[0]
	l.mu.Lock()
	judged, kept := l.judged[first]
	l.mu.Unlock()
	if judged {
		return nil
	}
	err := by(names)
	if kept && err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, kept := l.judged[first]; kept {
			l.judged[first] = true
		}
	}
	return err
}

// cut takes the names out of an encoded request. It returns the rest of the message and the names,
// which are shared: read only. Where it can't, or where it isn't worth it, ok is false.
func (l *lists) cut(message []byte) (rest []byte, names []string, ok bool) {
	var h maphash.Hash
	h.SetSeed(l.seed)
	var p print
	for b := message; len(b) > 0; {
		size, many := run(b)
		if many == 0 {
			field, _, n := protowire.ConsumeField(b)
			if n < 0 || field == requestNames {
				return nil, nil, false
			}
			rest, b = append(rest, b[:n]...), b[n:]
			continue
		}
		_, _ = h.Write(b[:size])
		p.bytes, p.many, b = p.bytes+size, p.many+many, b[size:]
	}
	if p.bytes < longList {
		return nil, nil, false
	}
	p.sum = h.Sum64()
	names = l.shared(p, message)
	return rest, names, names != nil
}

// run returns how many bytes and names the message begins with.
func run(message []byte) (size, many int) {
	for n := leading(message); n > 0; n = leading(message[size:]) {
		size += n
		many++
	}
	return size, many
}

// leading returns the size of the field that a message begins with if it is a name, else 0.
func leading(b []byte) int {
	const tag = requestNames<<3 | byte(protowire.BytesType)
	if len(b) < 2 || b[0] != tag {
		return 0
	}
	if b[1] < 0x80 { // as good as always
		if n := 2 + int(b[1]); n <= len(b) {
			return n
		}
		return 0
	}
	return max(0, 1+protowire.ConsumeFieldValue(requestNames, protowire.BytesType, b[1:]))
}

// listed goes through the names of a message that is well formed.
func listed(message []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(message) > 0 {
			num, typ, n := protowire.ConsumeField(message)
			if num == requestNames && typ == protowire.BytesType {
				_, _, tag := protowire.ConsumeTag(message)
				if name, _ := protowire.ConsumeBytes(message[tag:]); !yield(name) {
					return
				}
			}
			message = message[n:]
		}
	}
}

// shared returns the message's list as strings: the one that is kept if it is the same, nil if a
// name is no UTF-8.
func (l *lists) shared(p print, message []byte) []string {
	l.mu.Lock()
	kept := l.kept[p]
	l.mu.Unlock()
	if kept != nil {
		return kept
	}
	names := make([]string, 0, p.many)
	for n := range listed(message) {
		if !utf8.Valid(n) {
			return nil
		}
		names = append(names, string(n))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept := l.kept[p]; kept != nil {
		return kept // another stream was quicker
	}
	l.keep(p, names)
	return names
}

// letGo forgets all lists.
func (l *lists) letGo() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.kept)
	clear(l.judged)
	l.bytes = 0
}

// keep keeps a list, in place of others if there are too many or too much of them. One that would
// take most of the room isn't kept.
func (l *lists) keep(p print, names []string) {
	if p.weight() > keptBytes/4 {
		return
	}
	l.kept[p], l.judged[&names[0]] = names, false
	l.bytes += p.weight()
	for other, names := range l.kept {
		if len(l.kept) <= keptLists && l.bytes <= keptBytes {
			return
		}
		if other != p {
			delete(l.kept, other)
			delete(l.judged, &names[0])
			l.bytes -= other.weight()
		}
	}
}
