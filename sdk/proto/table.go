//go:build wasip1 || smallcodec

package proto

import (
	"encoding/binary"
	"unsafe"

	"github.com/coxswain-mesh/coxswain/sdk/wire"
)

// This is the codec of WASM modules: one loop over tables of fields, in place of code for every
// message, which would be a tenth of a small module. It takes about twice as long as the code that
// processes have. The build tag smallcodec has it everywhere, for tests.

// layout describes a message to the loop.
type layout struct {
	fields []field
	fresh  func() unsafe.Pointer
}

// field is one field of a message. Its number on the wire, and its place in the struct.
type field struct {
	number, offset uint16
	kind           kind
	repeated       bool
	// of is the message's layout.
	of *layout
}

// kind says what a field has in Go.
type kind uint8

const (
	kindString kind = iota
	kindBytes
	kindMessage
	kindStrings // map[string]string
	kindNumbers // map[string]uint32
	kindFixed64
	kindDouble
	kindBool
	kindUint32
	kindUint64
	kindInt32
	kindInt64
)

func (k kind) wireType() wire.Type {
	switch {
	case k <= kindNumbers:
		return wire.BytesType
	case k <= kindDouble:
		return wire.Fixed64Type
	}
	return wire.VarintType
}

// width is how many bytes a value has in Go.
func (k kind) width() uintptr {
	switch k {
	case kindString:
		return unsafe.Sizeof("")
	case kindBytes:
		return unsafe.Sizeof([]byte{})
	case kindMessage:
		return unsafe.Sizeof(uintptr(0))
	case kindBool:
		return 1
	case kindUint32, kindInt32:
		return 4
	}
	return 8
}

// tag is the field's tag with its own wire type; lists of numbers are packed, as bytes are.
func (f *field) tag() uint64 { return uint64(f.number)<<3 | uint64(f.kind.wireType()) }

func (f *field) packed() bool { return f.repeated && f.kind > kindNumbers }

func (f *field) packedTag() uint64 { return uint64(f.number)<<3 | uint64(wire.BytesType) }

// list returns a list's first element and how many it has, whatever they are.
func list(p unsafe.Pointer) (first unsafe.Pointer, n int) {
	s := *(*[]byte)(p)
	return unsafe.Pointer(unsafe.SliceData(s)), len(s)
}

// text returns the bytes of a string, or the bytes of bytes: both begin with where they are and how
// many.
func text(p unsafe.Pointer) string { return *(*string)(p) }

// number returns a number as it is on the wire.
func (k kind) number(p unsafe.Pointer) uint64 {
	switch k {
	case kindBool:
		return uint64(*(*uint8)(p))
	case kindUint32:
		return uint64(*(*uint32)(p))
	case kindInt32:
		return uint64(*(*int32)(p))
	}
	return *(*uint64)(p)
}

// take reads a number from the beginning of b and returns how many bytes it has; less than 0 if
// there is none.
func (k kind) take(b []byte) (uint64, int) {
	if k.wireType() != wire.Fixed64Type {
		return wire.Varint(b)
	}
	if len(b) < 8 {
		return 0, -1
	}
	return binary.LittleEndian.Uint64(b), 8
}
