//go:build wasip1 || smallcodec

package proto

import (
	"encoding/binary"
	"maps"
	"slices"
	"unsafe"

	"github.com/coxswain-mesh/coxswain/sdk/wire"
)

// size returns the size of a message.
func (l *layout) size(m unsafe.Pointer) (n int) {
	for i := range l.fields {
		f := &l.fields[i]
		if p := unsafe.Add(m, f.offset); f.present(p) {
			n += f.size(p)
		}
	}
	return n
}

// present reports whether a field is on the wire.
func (f *field) present(p unsafe.Pointer) bool {
	switch {
	case f.repeated:
		_, n := list(p)
		return n > 0
	case f.kind == kindString, f.kind == kindBytes:
		return len(text(p)) > 0
	case f.kind == kindDouble:
		return *(*float64)(p) != 0
	case f.kind <= kindNumbers:
		return *(*unsafe.Pointer)(p) != nil
	}
	return f.kind.number(p) != 0
}

func (f *field) size(p unsafe.Pointer) (n int) {
	tag := wire.SizeVarint(f.packedTag())
	switch {
	case f.kind == kindStrings:
		for k, v := range *(*map[string]string)(p) {
			n += tag + wire.SizeBytes(sizeEntry(k, wire.SizeBytes(len(v))))
		}
	case f.kind == kindNumbers:
		for k, v := range *(*map[string]uint32)(p) {
			n += tag + wire.SizeBytes(sizeEntry(k, wire.SizeVarint(uint64(v))))
		}
	case f.packed():
		return tag + wire.SizeBytes(f.sizePacked(p))
	case f.repeated:
		first, count := list(p)
		for i := range count {
			n += tag + f.sizeOne(unsafe.Add(first, uintptr(i)*f.kind.width()))
		}
	default:
		n = tag + f.sizeOne(p)
	}
	return n
}

func sizeEntry(key string, value int) int { return 2 + wire.SizeBytes(len(key)) + value }

// sizeOne returns the size of a value without its tag.
func (f *field) sizeOne(p unsafe.Pointer) int {
	switch f.kind {
	case kindString, kindBytes:
		return wire.SizeBytes(len(text(p)))
	case kindMessage:
		return wire.SizeBytes(f.of.size(*(*unsafe.Pointer)(p)))
	case kindFixed64, kindDouble:
		return 8
	}
	return wire.SizeVarint(f.kind.number(p))
}

func (f *field) sizePacked(p unsafe.Pointer) (n int) {
	first, count := list(p)
	for i := range count {
		n += f.sizeOne(unsafe.Add(first, uintptr(i)*f.kind.width()))
	}
	return n
}

// appendTo appends a message.
func (l *layout) appendTo(b []byte, m unsafe.Pointer) []byte {
	for i := range l.fields {
		f := &l.fields[i]
		if p := unsafe.Add(m, f.offset); f.present(p) {
			b = f.append(b, p)
		}
	}
	return b
}

func (f *field) append(b []byte, p unsafe.Pointer) []byte {
	switch {
	case f.kind == kindStrings:
		m := *(*map[string]string)(p)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			b = wire.String(f.appendKey(b, k, wire.SizeBytes(len(m[k]))), 2, m[k])
		}
	case f.kind == kindNumbers:
		m := *(*map[string]uint32)(p)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			v := uint64(m[k])
			b = wire.Number(f.appendKey(b, k, wire.SizeVarint(v)), 2, v)
		}
	case f.packed():
		b = wire.AppendVarint(wire.AppendVarint(b, f.packedTag()), uint64(f.sizePacked(p)))
		b = f.appendList(b, p)
	case f.repeated:
		b = f.appendList(b, p)
	default:
		b = f.appendOne(b, p)
	}
	return b
}

func (f *field) appendList(b []byte, p unsafe.Pointer) []byte {
	first, count := list(p)
	for i := range count {
		b = f.appendOne(b, unsafe.Add(first, uintptr(i)*f.kind.width()))
	}
	return b
}

// appendKey begins an entry of a map.
func (f *field) appendKey(b []byte, key string, value int) []byte {
	b = wire.AppendVarint(wire.AppendVarint(b, f.packedTag()), uint64(sizeEntry(key, value)))
	return wire.String(b, 1, key)
}

// appendOne appends a value, with its tag unless it is packed.
func (f *field) appendOne(b []byte, p unsafe.Pointer) []byte {
	if !f.packed() {
		b = wire.AppendVarint(b, f.tag())
	}
	switch f.kind {
	case kindString, kindBytes:
		s := text(p)
		return append(wire.AppendVarint(b, uint64(len(s))), s...)
	case kindMessage:
		m := *(*unsafe.Pointer)(p)
		return f.of.appendTo(wire.AppendVarint(b, uint64(f.of.size(m))), m)
	case kindFixed64, kindDouble:
		return binary.LittleEndian.AppendUint64(b, f.kind.number(p))
	}
	return wire.AppendVarint(b, f.kind.number(p))
}
