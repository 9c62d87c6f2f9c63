package outputs

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// told books a resource as an Output does and returns what is sent of its body; nil where the core
// has it.
func told(s *Store, edits bool, name string, bytes []byte, fields [][]byte) (id uint64, sent *pb.Body) {
	p := Place{Number: 1}
	b := Of(bytes, fields)
	id, fresh := s.Number(b)
	if fresh {
		sent = s.Edit(id, b, s.Named(p, name), edits)
	}
	s.Set(p, "t", name, id)
	return id, sent
}

// TestFields: whatever fields come, go and change, what is sent leads to the same bytes, and is no
// more than what differs where that is one run.
func TestFields(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	field := func() []byte { return bytes.Repeat([]byte{byte(rnd.IntN(256))}, 1+rnd.IntN(4000)) }
	for _, edits := range []bool{true, false} {
		s := New()
		has := map[uint64][]byte{}
		var fields [][]byte
		edited := 0
		for range 2000 {
			before := slices.Clone(fields)
			switch i := rnd.IntN(len(fields) + 1); rnd.IntN(4) {
			case 0:
				fields = slices.Insert(slices.Clone(fields), i, field())
			case 1:
				if i < len(fields) {
					fields = slices.Delete(slices.Clone(fields), i, i+1)
				}
			case 2:
				if i < len(fields) {
					fields = slices.Clone(fields)
					fields[i] = field()
				}
			default:
				for range 5 {
					fields = append(slices.Clone(fields), field())
				}
			}
			id, sent := told(s, edits, "a", nil, slices.Clone(fields))
			if sent != nil {
				has[id] = sent.Bytes
				if sent.Base != 0 {
					edited++
					base := has[sent.Base]
					has[id] = slices.Concat(base[:sent.Head], sent.Bytes, base[uint64(len(base))-sent.Tail:])
					if len(sent.Bytes) > 5*4000 || len(sent.Bytes) > 4000 && len(fields) < len(before)+5 {
						t.Fatalf("%d bytes for one field", len(sent.Bytes))
					}
				}
			}
			if want := bytes.Join(fields, nil); !bytes.Equal(has[id], want) {
				t.Fatalf("%d bytes, not %d", len(has[id]), len(want))
			}
			if len(fields) > 60 {
				fields = nil
			}
			if rnd.IntN(10) == 0 { // the core lets go of what nothing names
				for id := range has {
					if b := s.bodies[id]; b == nil || b.named <= 0 {
						s.Freed([]uint64{id})
						delete(has, id)
					}
				}
			}
		}
		if (edited > 1000) != edits {
			t.Errorf("with edits %v there were %d", edits, edited)
		}
	}
}

// TestEqualFields: resources of the same fields are one body, though small ones were made anew; so
// are small resources of the same bytes.
func TestEqualFields(t *testing.T) {
	s := New()
	large := bytes.Repeat([]byte{1}, manyBytes)
	first, _ := told(s, true, "a", nil, [][]byte{[]byte("head"), large})
	if id, sent := told(s, true, "b", nil, [][]byte{[]byte("head"), large}); id != first || sent != nil {
		t.Error("equal fields are two bodies")
	}
	if id, _ := told(s, true, "c", nil, [][]byte{[]byte("hea!"), large}); id == first {
		t.Error("different fields are one body")
	}
	small, _ := told(s, true, "d", []byte("ab"), nil)
	if id, sent := told(s, true, "e", nil, [][]byte{[]byte("a"), []byte("b")}); id != small || sent != nil {
		t.Error("equal bytes are two bodies")
	}
	if id, _ := told(s, true, "f", nil, [][]byte{}); id == 0 {
		t.Error("an empty resource is absent")
	}
}
