package outputs

import (
	"bytes"
	"hash/maphash"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// manyBytes is from which size on a resource that was given in fields is kept as such.
const manyBytes = 32 << 10

// Of returns what is kept of a resource, which has bytes or fields; neither where it is absent.
func Of(bytes []byte, fields [][]byte) Body {
	switch {
	case length(fields) >= manyBytes:
		return Body{fields: fields}
	case fields != nil:
		return Body{bytes: Joined(fields)}
	}
	return Body{bytes: bytes}
}

// Whole returns the body's bytes.
func (b *Body) Whole() []byte {
	if b.fields == nil {
		return b.bytes
	}
	return Joined(b.fields)
}

// Edit returns the message for a new body: what differs from the one that it replaces, where the
// core has that and most of it stays, and it reads edits.
func (s *Store) Edit(id uint64, b Body, before uint64, edits bool) *pb.Body {
	base := s.bodies[before]
	if b.fields == nil || base == nil || base.fields == nil || !edits {
		return &pb.Body{Id: id, Bytes: b.Whole()}
	}
	was, now, head, tail := base.fields, b.fields, 0, 0
	for len(was) > 0 && len(now) > 0 && bytes.Equal(was[0], now[0]) {
		head += len(now[0])
		was, now = was[1:], now[1:]
	}
	for len(was) > 0 && len(now) > 0 && bytes.Equal(was[len(was)-1], now[len(now)-1]) {
		tail += len(now[len(now)-1])
		was, now = was[:len(was)-1], now[:len(now)-1]
	}
	if head+tail < length(now) {
		return &pb.Body{Id: id, Bytes: b.Whole()}
	}
	return &pb.Body{Id: id, Bytes: Joined(now), Base: before, Head: uint64(head), Tail: uint64(tail)}
}

func length(fields [][]byte) (n int) {
	for _, f := range fields {
		n += len(f)
	}
	return n
}

// Joined returns the fields as one, never nil.
func Joined(fields [][]byte) []byte {
	out := make([]byte, 0, length(fields))
	for _, f := range fields {
		out = append(out, f...)
	}
	return out
}

// fewBytes is up to which size fields are compared as they are, wherever they stand: making them
// anew costs little.
const fewBytes = 256

// placesOf hashes where fields are.
func placesOf(seed maphash.Seed, fields [][]byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, f := range fields {
		if len(f) <= fewBytes {
			_, _ = h.Write(f)
		} else {
			maphash.WriteComparable(&h, &f[0])
		}
	}
	return h.Sum64()
}

// sameFields reports whether two lists are of the same memory, small fields apart.
func sameFields(a, b [][]byte) bool {
	return slices.EqualFunc(a, b, func(a, b []byte) bool {
		return len(a) == len(b) && (len(a) <= fewBytes && bytes.Equal(a, b) || len(a) > fewBytes && &a[0] == &b[0])
	})
}
