package redact

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func numbered(n int) string {
	if n == 1 {
		return Word
	}
	return fmt.Sprintf("[redacted %d]", n)
}

var counted = regexp.MustCompile(`\[redacted \d+\]`)

// Unnumbered has Word in the place of what Numbered put into a text.
func Unnumbered(text string) string { return counted.ReplaceAllString(text, Word) }

// walk goes through encoded messages.
type walk struct {
	by filler
	// fixed: nothing may become longer or shorter.
	fixed bool
	// cut: something was taken out as it lay too deep, or could not be read.
	cut bool
}

func (w *walk) row(table string, payload []byte) []byte {
	if md := rowsOf(table); md != nil {
		return w.message(md, payload, what{}, 0)
	}
	return w.guess(payload, what{}, 0)
}

// field is one as it is encoded.
type field struct {
	number protowire.Number
	kind   protowire.Type
	whole  []byte // with its tag
	value  []byte // of one with a length
}

// fields splits a message; ok is false for what is none.
func fields(b []byte) (all []field, ok bool) {
	for len(b) > 0 {
		number, kind, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return nil, false
		}
		n := protowire.ConsumeFieldValue(number, kind, b[tag:])
		if n < 0 {
			return nil, false
		}
		f := field{number: number, kind: kind, whole: b[:tag+n]}
		if kind == protowire.BytesType {
			f.value, _ = protowire.ConsumeBytes(b[tag:])
		}
		all, b = append(all, f), b[tag+n:]
	}
	return all, true
}

// message returns a message without what is secret; md is nil where its type is not known.
func (w *walk) message(md protoreflect.MessageDescriptor, b []byte, is what, depth int) []byte {
	if md == nil {
		return w.guess(b, is, depth)
	}
	all, ok := fields(b)
	if !ok || depth > deepest {
		return w.gone(b)
	}
	p := pairOf(md, all)
	return w.each(all, b, func(f field) []byte {
		if f.kind != protowire.BytesType {
			return w.scalar(md, f, is)
		}
		d := md.Fields().ByNumber(f.number)
		if d == nil {
			return w.guess(f.value, is, depth+1)
		}
		return w.field(md, d, all, f, p.below(d, f, below(md, d, is)), depth)
	})
}

// gone takes out what can't be looked through.
func (w *walk) gone(b []byte) []byte {
	w.cut = true
	if w.fixed {
		// One field of unknown bytes would change the length: what is there becomes unreadable.
		return make([]byte, len(b))
	}
	return nil
}

// each puts a message together again of what becomes of its fields.
func (w *walk) each(all []field, b []byte, become func(field) []byte) []byte {
	var out []byte
	changed, at := false, 0
	for _, f := range all {
		v := become(f)
		same := len(v) == 0 && len(f.value) == 0 || len(v) == len(f.value) && f.kind == protowire.BytesType && string(v) == string(f.value)
		if f.kind != protowire.BytesType {
			same = v == nil
		}
		switch {
		case same && changed:
			out = append(out, f.whole...)
		case !same:
			if !changed {
				out = append(make([]byte, 0, len(b)+2*len(Word)), b[:at]...)
				changed = true
			}
			if f.kind != protowire.BytesType {
				out = append(out, v...)
				break
			}
			if w.fixed { // the length stays as it was written
				out = append(append(out, f.whole[:len(f.whole)-len(f.value)]...), v...)
				break
			}
			out = protowire.AppendTag(out, f.number, protowire.BytesType)
			out = protowire.AppendBytes(out, v)
		}
		at += len(f.whole)
	}
	if !changed {
		return b
	}
	return out
}

// scalar returns what takes the place of a number, with its tag: a google.protobuf.Value's where it
// is secret; nil: it stays.
func (w *walk) scalar(md protoreflect.MessageDescriptor, f field, is what) []byte {
	const number, text = 2, 3
	if !is.number || f.number != number || f.kind != protowire.Fixed64Type || md.FullName() != "google.protobuf.Value" {
		return nil
	}
	bits := f.whole[len(f.whole)-8:]
	with := w.by(fmt.Sprint(math.Float64frombits(binary.LittleEndian.Uint64(bits))))
	if w.fixed {
		return append(append([]byte{}, f.whole[:len(f.whole)-8]...), make([]byte, 8)...)
	}
	return protowire.AppendString(protowire.AppendTag(nil, text, protowire.BytesType), with)
}

// below is what a field is by its descriptor and by what is above it.
func below(md protoreflect.MessageDescriptor, d protoreflect.FieldDescriptor, is what) what {
	at := what{secret: is.secret}
	switch name := md.FullName(); {
	case name == "google.protobuf.Value":
		at = is
		at.secret = at.secret || is.variables && d.Name() == "struct_value"
	case name == "google.protobuf.ListValue":
		at = is
		at.listed, at.variables = is.variables, false
	case name == "google.protobuf.Struct":
		at.listed = is.listed
	case name == "google.protobuf.Struct.FieldsEntry":
		at.number = is.number && d.Name() == "value"
	case name == "envoy.config.core.v3.DataSource" && d.Name() == "filename":
		at.secret = false
	}
	if sensitive(d) || isDeclared(d.FullName()) || d.Message() == nil && Name(string(d.Name())) {
		at.secret = true
	}
	return at
}

func sensitive(d protoreflect.FieldDescriptor) bool {
	o, of := d.Options(), annotation()
	if of == nil || o == nil || !o.ProtoReflect().IsValid() {
		return false
	}
	is, _ := proto.GetExtension(o, of).(bool)
	return is
}

// annotation is udpa.annotations.sensitive, which is there where a message that has it is; nil:
// none has.
var annotation = sync.OnceValue(func() protoreflect.ExtensionType {
	t, _ := protoregistry.GlobalTypes.FindExtensionByName("udpa.annotations.sensitive")
	return t
})

// field returns what becomes of the value of a field.
func (w *walk) field(md protoreflect.MessageDescriptor, d protoreflect.FieldDescriptor, all []field, f field, is what, depth int) []byte {
	switch {
	case d.Kind() == protoreflect.StringKind:
		if md.FullName() == "google.protobuf.Any" { // its URL
			return f.value
		}
		if is.secret && !(strings.HasPrefix(string(f.value), "/") && path(d)) {
			return w.all(f.value)
		}
		return w.text(f.value)
	case d.Kind() == protoreflect.BytesKind:
		if md.FullName() == "google.protobuf.Any" {
			return w.any(all, f.value, is, depth)
		}
		if is.secret {
			return w.all(f.value)
		}
		if readable(f.value) {
			return w.text(f.value)
		}
	case d.Message() != nil:
		return w.message(d.Message(), f.value, is, depth+1)
	}
	return f.value
}

// path reports whether a field may have the path of a private key instead of one.
func path(d protoreflect.FieldDescriptor) bool {
	return strings.HasSuffix(string(d.Name()), "private_key")
}

func (w *walk) any(all []field, b []byte, is what, depth int) []byte {
	for _, f := range all {
		if f.number == 1 && f.kind == protowire.BytesType {
			return w.message(find(string(f.value)), b, is, depth+1)
		}
	}
	return w.guess(b, is, depth+1)
}

// all replaces a whole value; an empty one is none.
func (w *walk) all(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	return []byte(w.by(string(b)))
}

func (w *walk) text(b []byte) []byte {
	text := string(b)
	found := within(text)
	if len(found) == 0 {
		return b
	}
	return []byte(cut(text, found, w.by))
}
