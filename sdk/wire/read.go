package wire

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrMalformed is returned for bytes that are no protobuf message.
var ErrMalformed = errors.New("malformed protobuf message")

// maxDepth of groups in groups.
const maxDepth = 100

// Reader reads a message field by field:
//
//	for r := wire.Read(b); r.Next(); {
//		switch r.Field {
//		case 1:
//			name = string(r.Bytes)
//		}
//	}
type Reader struct {
	// Field is the field's number, Type how its value is written.
	Field int
	Type  Type
	// Bytes is a value of BytesType, which is part of what is read, Number one of the others.
	Bytes  []byte
	Number uint64
	// Raw is the field as it stands there.
	Raw []byte

	rest []byte
	err  error
}

// Read returns a reader of a message.
func Read(b []byte) Reader { return Reader{rest: b} }

// Err returns ErrMalformed if the message was cut or isn't one; call it when Next has returned
// false.
func (r *Reader) Err() error { return r.err }

// Next reads the next field. It returns false at the end, or where the message is malformed.
func (r *Reader) Next() bool {
	if len(r.rest) == 0 || r.err != nil {
		return false
	}
	tag, n := readTag(r.rest)
	if n < 0 {
		return r.fail()
	}
	r.Field, r.Type = int(tag>>3), Type(tag&7)
	size := r.value(r.rest[n:])
	if size < 0 {
		return r.fail()
	}
	r.Raw, r.rest = r.rest[:n+size:n+size], r.rest[n+size:]
	return true
}

func (r *Reader) fail() bool {
	r.err = ErrMalformed
	return false
}

// value reads a value at the beginning of b and returns how many bytes it has; less than 0 if it is
// malformed.
func (r *Reader) value(b []byte) int {
	r.Number, r.Bytes = 0, nil
	switch r.Type {
	case VarintType:
		var n int
		r.Number, n = Varint(b)
		return n
	case BytesType:
		size, n := Varint(b)
		if n < 0 || size > uint64(len(b)-n) {
			return -1
		}
		end := n + int(size)
		r.Bytes = b[n:end:end]
		return end
	case Fixed64Type:
		if len(b) >= 8 {
			r.Number = binary.LittleEndian.Uint64(b)
			return 8
		}
	case Fixed32Type:
		if len(b) >= 4 {
			r.Number = uint64(binary.LittleEndian.Uint32(b))
			return 4
		}
	case startGroup:
		return group(r.Field, b, maxDepth)
	}
	return -1
}

// group returns how many bytes a group has, with its end.
func group(field int, b []byte, depth int) (n int) {
	inner := Reader{}
	for depth > 0 {
		tag, t := readTag(b[n:])
		if t < 0 {
			return -1
		}
		n += t
		inner.Field, inner.Type = int(tag>>3), Type(tag&7)
		var size int
		switch inner.Type {
		case endGroup:
			if inner.Field == field {
				return n
			}
			return -1
		case startGroup:
			size = group(inner.Field, b[n:], depth-1)
		default:
			size = inner.value(b[n:])
		}
		if size < 0 {
			return -1
		}
		n += size
	}
	return -1
}

// readTag reads a field's tag and returns how many bytes it has; less than 0 if there is no valid
// one.
func readTag(b []byte) (tag uint64, n int) {
	tag, n = Varint(b)
	if number := tag >> 3; number == 0 || number > math.MaxInt32 {
		return 0, -1
	}
	return tag, n
}

// Varint reads a varint and returns how many bytes it has; less than 0 if there is none.
func Varint(b []byte) (v uint64, n int) {
	for i, c := range b {
		if i > 9 || i == 9 && c > 1 {
			break
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, -1
}
