package wire_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/wire"
	"google.golang.org/protobuf/encoding/protowire"
)

// ExampleEdit names every route of a route configuration.
func ExampleEdit() {
	route := wire.String(nil, 1, "old")
	host := wire.Bytes(wire.String(nil, 1, "all"), 3, route)
	routes := wire.Bytes(wire.String(nil, 1, "8080"), 2, host)

	routes, err := wire.Edit(routes, func(route []byte) []byte { return wire.String(route, 14, "checked") }, 2, 3)
	fmt.Printf("%q %v\n", routes, err)
	// Output: "\n\x048080\x12\x15\n\x03all\x1a\x0e\n\x03oldr\achecked" <nil>
}

func TestEdit(t *testing.T) {
	inner := wire.Number(wire.String(nil, 1, "a"), 9, 300)
	m := wire.Bytes(wire.Number(wire.Bytes(nil, 3, inner), 4, 1), 3, nil)
	same, err := wire.Edit(m, func(v []byte) []byte { return v }, 3, 1)
	if err != nil || !bytes.Equal(same, m) {
		t.Errorf("%x became %x, %v", m, same, err)
	}
	gone, err := wire.Edit(m, func([]byte) []byte { return nil }, 3)
	if want := wire.Number(nil, 4, 1); err != nil || !bytes.Equal(gone, want) {
		t.Errorf("%x, %v, want %x", gone, err, want)
	}
	if _, err := wire.Edit(wire.Bytes(nil, 3, []byte{0x0a, 5, 'x'}), func(v []byte) []byte { return v }, 3, 1); err != wire.ErrMalformed {
		t.Errorf("a message that is cut: %v", err)
	}
	url, value := wire.ReadAny(wire.Any("type.googleapis.com/a.B", inner))
	if url != "type.googleapis.com/a.B" || !bytes.Equal(value, inner) {
		t.Errorf("%s %x", url, value)
	}
	if url, value := wire.ReadAny([]byte{0x0a, 1, 'x', 0x12, 9}); url != "" || value != nil {
		t.Errorf("a malformed Any has %q %x", url, value)
	}
}

// TestReaderAgrees compares with protobuf's own reader: messages of all kinds of fields, cut and
// changed.
func TestReaderAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		b := fields(r, 0)
		if r.IntN(2) == 0 && len(b) > 0 {
			b = b[:r.IntN(len(b))]
		}
		if r.IntN(2) == 0 && len(b) > 0 {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		compare(t, b)
	}
}

// fields makes a message.
func fields(r *rand.Rand, depth int) (b []byte) {
	for range r.IntN(5) {
		number := protowire.Number(1 + r.IntN(40))
		switch kind := r.IntN(6); {
		case kind == 0:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), r.Uint64()>>r.IntN(64))
		case kind == 1:
			b = protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), math.Float64bits(r.Float64()))
		case kind == 2:
			b = protowire.AppendFixed32(protowire.AppendTag(b, number, protowire.Fixed32Type), r.Uint32())
		case kind == 3 && depth < 3:
			b = protowire.AppendTag(b, number, protowire.StartGroupType)
			b = protowire.AppendTag(append(b, fields(r, depth+1)...), number, protowire.EndGroupType)
		case depth < 3:
			b = protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), fields(r, depth+1))
		}
	}
	return b
}

func compare(t *testing.T, b []byte) {
	t.Helper()
	ours := wire.Read(b)
	rest := b
	for ours.Next() {
		number, typ, n := protowire.ConsumeField(rest)
		if n < 0 {
			t.Fatalf("%x: %d is read, protowire says %v", b, ours.Field, protowire.ParseError(n))
		}
		if ours.Field != int(number) || ours.Type != wire.Type(typ) || !bytes.Equal(ours.Raw, rest[:n]) {
			t.Fatalf("%x: field %d of type %d in %x, want %d, %d, %x", b, ours.Field, ours.Type, ours.Raw, number, typ, rest[:n])
		}
		_, _, tag := protowire.ConsumeTag(rest)
		value := rest[tag:n]
		switch typ {
		case protowire.BytesType:
			if want, _ := protowire.ConsumeBytes(value); !bytes.Equal(ours.Bytes, want) {
				t.Fatalf("%x: %x, want %x", b, ours.Bytes, want)
			}
		case protowire.VarintType:
			if want, _ := protowire.ConsumeVarint(value); ours.Number != want {
				t.Fatalf("%x: %d, want %d", b, ours.Number, want)
			}
		}
		rest = rest[n:]
	}
	if _, _, n := protowire.ConsumeField(rest); (ours.Err() != nil) != (len(rest) > 0) || len(rest) > 0 && n >= 0 {
		t.Fatalf("%x: %v with %x left, which protowire reads", b, ours.Err(), rest)
	}
}
