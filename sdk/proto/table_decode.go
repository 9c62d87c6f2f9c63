//go:build wasip1 || smallcodec

package proto

import (
	"unsafe"

	"github.com/coxswain-mesh/coxswain/sdk/wire"
)

// unmarshal adds what b holds to a message.
func (l *layout) unmarshal(m unsafe.Pointer, b []byte) error {
	r := wire.Read(b)
	for r.Next() {
		f := l.find(r.Field)
		if f == nil {
			continue
		}
		p := unsafe.Add(m, f.offset)
		var err error
		switch {
		case f.packed() && r.Type == wire.BytesType:
			err = f.unpack(p, r.Bytes)
		case r.Type == f.kind.wireType():
			err = f.read(p, &r)
		}
		if err != nil {
			return err
		}
	}
	return r.Err()
}

func (l *layout) find(number int) *field {
	for i := range l.fields {
		if f := &l.fields[i]; int(f.number) == number {
			return f
		}
	}
	return nil
}

// read adds one value.
func (f *field) read(p unsafe.Pointer, r *wire.Reader) error {
	switch f.kind {
	case kindString:
		store(f, p, string(r.Bytes))
	case kindBytes:
		store(f, p, append([]byte(nil), r.Bytes...))
	case kindMessage:
		m := f.of.fresh()
		store(f, p, m)
		return f.of.unmarshal(m, r.Bytes)
	case kindStrings, kindNumbers:
		return f.entry(p, r.Bytes)
	default:
		f.put(p, r.Number)
	}
	return nil
}

// store sets a field, or adds to a list.
func store[T any](f *field, p unsafe.Pointer, v T) {
	if f.repeated {
		all := (*[]T)(p)
		*all = append(*all, v)
		return
	}
	*(*T)(p) = v
}

// put sets a number, or adds it to a list.
func (f *field) put(p unsafe.Pointer, v uint64) {
	switch f.kind.width() {
	case 1:
		store(f, p, v != 0)
	case 4:
		store(f, p, uint32(v))
	default:
		store(f, p, v)
	}
}

// unpack adds the numbers of a packed list.
func (f *field) unpack(p unsafe.Pointer, b []byte) error {
	for len(b) > 0 {
		v, n := f.kind.take(b)
		if n < 0 {
			return wire.ErrMalformed
		}
		f.put(p, v)
		b = b[n:]
	}
	return nil
}

// entry adds an entry of a map.
func (f *field) entry(p unsafe.Pointer, b []byte) error {
	var key, text string
	var number uint64
	r := wire.Read(b)
	for r.Next() {
		switch {
		case r.Field == 1 && r.Type == wire.BytesType:
			key = string(r.Bytes)
		case r.Field == 2 && r.Type == wire.BytesType:
			text = string(r.Bytes)
		case r.Field == 2:
			number = r.Number
		}
	}
	if f.kind == kindStrings {
		insert(p, key, text)
	} else {
		insert(p, key, uint32(number))
	}
	return r.Err()
}

func insert[T any](p unsafe.Pointer, key string, v T) {
	m := (*map[string]T)(p)
	if *m == nil {
		*m = map[string]T{}
	}
	(*m)[key] = v
}
