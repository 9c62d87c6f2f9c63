package sdk

import (
	"bytes"
	"hash/maphash"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// manyBytes is from which size on a resource that was given in fields is kept as such.
const manyBytes = 32 << 10

// bodyOf returns what is kept of a resource; neither bytes nor fields where it is absent.
func bodyOf(r *Resource) body {
	if length(r.Fields) >= manyBytes {
		return body{fields: r.Fields}
	}
	return body{bytes: r.encoded()}
}

// encoded returns the resource's bytes, nil where it is absent.
func (r *Resource) encoded() []byte {
	if r.Fields != nil {
		return joined(r.Fields)
	}
	return r.Body
}

// whole returns the body's bytes.
func (b body) whole() []byte {
	if b.fields == nil {
		return b.bytes
	}
	return joined(b.fields)
}

// edit returns the message for a new body: what differs from the one that it replaces, where the core has that and most of it stays.
func (g *generation) edit(id uint64, b body, before uint64) *pb.Body {
	base := g.ledger.bodies[before]
	if b.fields == nil || base == nil || base.fields == nil || !g.hello.Edits {
		return &pb.Body{Id: id, Bytes: b.whole()}
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
		return &pb.Body{Id: id, Bytes: b.whole()}
	}
	return &pb.Body{Id: id, Bytes: joined(now), Base: before, Head: uint64(head), Tail: uint64(tail)}
}

func length(fields [][]byte) (n int) {
	for _, f := range fields {
		n += len(f)
	}
	return n
}

// joined returns the fields as one, never nil.
func joined(fields [][]byte) []byte {
	out := make([]byte, 0, length(fields))
	for _, f := range fields {
		out = append(out, f...)
	}
	return out
}

// fewBytes is up to which size fields are compared as they are, wherever they stand: making them anew costs little.
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
