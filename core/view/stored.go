package view

import (
	"fmt"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// stored is a body of the session. value is what came of it until its first use gives it a name; it
// stays where that became another body's bytes.
type stored struct {
	id    uint64
	value value
	more  bool
	body  *Body
	refs  int
	told  bool // Freed was sent
	bad   error
	// checked is the type as which the bytes were found to decode.
	checked string
	// mem has one for each run of bytes; fresh is that of what is new, while it comes.
	mem   []*memory
	fresh *memory
	edit
}

// edit is what is known of a body between the beginning and the end of another, until its first
// use.
type edit struct {
	// middle is what is new; tail follows once all of that has come.
	middle []byte
	tail   value
	// sound is the type as which all but the middle was found to decode.
	sound string
	// fields: what was kept begins and ends with whole fields.
	fields bool
}

// maxRuns is how many runs a value may have before it is joined.
const maxRuns = 16

// Store keeps bodies until they are named.
func (bs *Bodies) Store(m *pb.Bodies) error {
	for _, b := range m.Bodies {
		s := bs.sent[b.Id]
		switch {
		case s == nil:
			s = &stored{id: b.Id, more: b.More, fresh: &memory{}}
			s.middle = b.Bytes
			bs.hold(s, []*memory{s.fresh})
			if b.Base != 0 {
				if err := bs.keep(s, b); err != nil {
					return err
				}
			}
			bs.sent[b.Id] = s
			bs.freed = append(bs.freed, s) // until it is named
		case s.more:
			s.middle, s.more = append(s.middle, b.Bytes...), b.More
		default:
			return fmt.Errorf("body %d was sent twice", b.Id)
		}
		bs.grow(s, len(b.Bytes))
		if !s.more {
			bs.complete(s)
		}
	}
	return nil
}

// keep gives a new body the beginning and the end of another.
func (bs *Bodies) keep(s *stored, b *pb.Body) error {
	base := bs.sent[b.Base]
	if base == nil || base.more {
		return fmt.Errorf("body %d is an edit of body %d, which was never sent", b.Id, b.Base)
	}
	all := base.bytes()
	size := uint64(all.size())
	if b.Head > size || b.Tail > size-b.Head {
		return fmt.Errorf("body %d keeps %d and %d bytes of body %d, which has %d", b.Id, b.Head, b.Tail, b.Base, size)
	}
	head, _, begins := all.cut(int(b.Head))
	_, tail, ends := all.cut(int(size - b.Tail))
	s.value, s.tail, s.fields = head, tail, begins && ends
	mem := base.mem
	first, last := min(len(head), len(mem)), max(0, len(mem)-len(tail))
	bs.hold(s, slices.Concat(mem[:first], []*memory{s.fresh}, mem[last:]))
	if s.fields {
		s.sound = base.checked
	}
	return nil
}

// complete puts the value together.
func (bs *Bodies) complete(s *stored) {
	edited := len(s.value)+len(s.tail) > 0
	if len(s.middle) > 0 || !edited {
		s.value = append(s.value, s.middle)
	} else {
		bs.hold(s, slices.DeleteFunc(slices.Clone(s.mem), func(m *memory) bool { return m == s.fresh }))
	}
	s.fresh = nil
	s.value = append(s.value, s.tail...)
	if edited && !s.fields || len(s.value) > maxRuns {
		bs.join(s)
	}
	s.tail = nil
}

// join makes one run of the value.
func (bs *Bodies) join(s *stored) {
	if len(s.value) != 1 {
		s.value = value{s.value.joined()}
		bs.holdCopy(s, s.value.size())
	}
}

// bytes returns what was sent.
func (s *stored) bytes() value {
	if s.value == nil && s.body != nil {
		return s.body.value()
	}
	return s.value
}

// judge checks a body before its first use, in the place of another one or of nil: whether it
// decodes and, where its plugin is not trusted to have looked, whether it keeps Envoy's rules.
func (bs *Bodies) judge(s *stored, typeURL string, before *Body, trusted bool) error {
	if s.checked == typeURL {
		return nil // under another name, which was not its own
	}
	known := s.edit
	s.edit = edit{}
	var err error
	if known.sound != "" && known.sound == typeURL {
		err = Check(typeURL, known.middle)
	} else {
		bs.join(s) // runs need not be whole fields, where the whole is good
		if before != nil && before.Exists() {
			err = CheckChange(typeURL, s.value[0], before.Value())
		} else {
			err = Check(typeURL, s.value[0])
		}
	}
	if err == nil {
		s.checked = typeURL
		if !trusted {
			err = keeps(typeURL, s.value.joined())
		}
	}
	return err
}
