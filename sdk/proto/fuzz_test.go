package proto

import (
	"bytes"
	"testing"
)

// FuzzFrames reads whatever the other side of a session may send. What is taken must be the same
// when it is written and read again.
func FuzzFrames(f *testing.F) {
	f.Add((&FromCore{Hello: &Hello{Versions: []uint32{1}, Instance: "a"}}).AppendTo(nil))
	f.Add((&FromPlugin{
		Rows: &Rows{Tables: []*TableRows{{Table: "t", Upserts: []*Row{{Key: "k", Payload: []byte("p"), Labels: map[string]string{"a": "b"}}}}}},
	}).AppendTo(nil))
	f.Add((&FromPlugin{Done: &Done{Revision: &Revision{Epoch: 1, Number: 2}, Faults: []*Fault{{What: "w"}}}}).AppendTo(nil))
	f.Fuzz(func(t *testing.T, frame []byte) {
		for name, fresh := range roots {
			m := fresh()
			if m.Unmarshal(frame) != nil {
				continue
			}
			once := m.AppendTo(nil)
			if m.Size() != len(once) {
				t.Errorf("%s: Size is %d, AppendTo added %d", name, m.Size(), len(once))
			}
			again := fresh()
			if err := again.Unmarshal(once); err != nil {
				t.Fatalf("%s: what it wrote can't be read: %v", name, err)
			}
			if again.Size() != len(once) || len(once) > 0 && !bytes.Equal(sorted(again.AppendTo(nil)), sorted(once)) {
				t.Errorf("%s: %x, written and read again %x", name, once, again.AppendTo(nil))
			}
		}
	})
}

// sorted is a message's bytes without their order: maps have none.
func sorted(b []byte) []byte {
	var counts [256]int
	for _, c := range b {
		counts[c]++
	}
	out := make([]byte, 0, len(b))
	for c, n := range counts {
		out = append(out, bytes.Repeat([]byte{byte(c)}, n)...)
	}
	return out
}
