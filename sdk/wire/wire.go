// Package wire reads, writes and edits encoded protobuf messages by the numbers of their fields,
// without the types: what a patch needs, in a WASM module that stays small.
//
//	// Every route of a route configuration (virtual_hosts is 2, routes 3) gets a name (14).
//	routes, err := wire.Edit(routes, func(route []byte) []byte { return wire.String(route, 14, "checked") }, 2, 3)
//
// Of a field that may stand once the last value counts, so that appending sets it; of one that may
// be repeated appending adds.
package wire

import "math/bits"

// Type says how a value is written (https://protobuf.dev/programming-guides/encoding/#structure).
type Type uint8

// Types. Groups are read as one value, but for their contents.
const (
	VarintType  Type = 0
	Fixed64Type Type = 1
	BytesType   Type = 2
	startGroup  Type = 3
	endGroup    Type = 4
	Fixed32Type Type = 5
)

// String appends a field that is a string.
func String(b []byte, field int, v string) []byte {
	return append(AppendVarint(tag(b, field, BytesType), uint64(len(v))), v...)
}

// Bytes appends a field that is bytes or a message.
func Bytes(b []byte, field int, v []byte) []byte {
	return append(AppendVarint(tag(b, field, BytesType), uint64(len(v))), v...)
}

// Number appends a field that is an integer without a sign, a bool or an enum.
func Number(b []byte, field int, v uint64) []byte {
	return AppendVarint(tag(b, field, VarintType), v)
}

func tag(b []byte, field int, t Type) []byte { return AppendVarint(b, uint64(field)<<3|uint64(t)) }

// Any returns an encoded google.protobuf.Any.
func Any(typeURL string, value []byte) []byte { return Bytes(String(nil, 1, typeURL), 2, value) }

// ReadAny takes an Any apart; the value is part of b. One that is malformed has neither.
func ReadAny(b []byte) (typeURL string, value []byte) {
	r := Read(b)
	for r.Next() {
		switch {
		case r.Field == 1 && r.Type == BytesType:
			typeURL = string(r.Bytes)
		case r.Field == 2 && r.Type == BytesType:
			value = r.Bytes
		}
	}
	if r.Err() != nil {
		return "", nil
	}
	return typeURL, value
}

// AppendVarint appends a varint.
func AppendVarint(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// SizeVarint returns how many bytes a varint has.
func SizeVarint(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// SizeBytes returns how many bytes n bytes have behind their length.
func SizeBytes(n int) int { return SizeVarint(uint64(n)) + n }

// Nested returns a message within messages: the value of a field in a message that is the value of
// a field, and so on, the outermost first.
func Nested(value []byte, fields ...int) []byte {
	for i := len(fields) - 1; i >= 0; i-- {
		value = Bytes(nil, fields[i], value)
	}
	return value
}
