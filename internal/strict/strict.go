// Package strict reads config: JSON into a struct of the reader's own, where each mistake is an
// *Error with the path of its field; and it makes the JSON Schema of such a struct.
//
//	c := config{Port: 80}
//	err := strict.Decode(text, &c) // services[2].ports[0].number: expected a number from 0 to 65535, not "http"
//
// # Fields
//
// Keys are the fields' names as their json tags have them, in the same case; fields without the tag
// are none. Embedded structs' fields are the object's own. Fields may be strings, bools, numbers,
// time.Durations (text such as 20ms), what has UnmarshalText (text), []byte (whatever stands there,
// as JSON), and structs, pointers, lists and maps of these.
//
// More tags bound what a field may have, and describe it; all of them are in the schema, too:
//
//	doc:"what it means"
//	required:"true"       it must be there, a string must not be empty
//	enum:"a,b"            one of these: a string, or each one of a list or map
//	min:"1" max:"9"       bounds of a number or time.Duration, of a string's bytes or a list's length
//	above:"0"             a number must be larger
package strict

import (
	"encoding"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
)

// Error is a mistake in what was read.
type Error struct {
	// Field is a path, such as services[2].port; empty where it is of the whole.
	Field string
	// Reason is what is wrong with it.
	Reason string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// Decode reads JSON into what the pointer into points to. What the text doesn't name keeps its
// value, and so does all where it is empty or null; lists, maps and what pointers lead to become
// copies then, so that who changes them changes no other's defaults. The first mistake is returned,
// as an *Error. It panics if into has fields, or tags, that it does not know.
func Decode(text []byte, into any) error {
	if len(text) == 0 {
		text = []byte("null")
	}
	r := &reader{text: text}
	if _, err := r.skip(0); err != nil {
		return err
	}
	if r.space() != 0 || r.at < len(text) {
		return r.broken()
	}
	r.at = 0
	v := reflect.ValueOf(into).Elem()
	own(v)
	return r.value("", tags{}, v)
}

// own puts copies in the place of what a value may share with another one.
func own(v reflect.Value) {
	switch sort(v.Type()) {
	case rawSort:
		v.SetBytes(slices.Clone(v.Bytes()))
	case objectSort:
		for _, f := range fieldsOf(v.Type()) {
			own(v.FieldByIndex(f.index))
		}
	case listSort:
		if !v.IsNil() {
			all := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			for i := range reflect.Copy(all, v) {
				own(all.Index(i))
			}
			v.Set(all)
		}
	case mapSort:
		if !v.IsNil() {
			all := reflect.MakeMapWithSize(v.Type(), v.Len())
			for key, value := range v.Seq2() {
				all.SetMapIndex(key, owned(value))
			}
			v.Set(all)
		}
	case pointerSort:
		if !v.IsNil() {
			v.Set(owned(v.Elem()).Addr())
		}
	}
}

// owned returns a copy that shares nothing.
func owned(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	own(c)
	return c
}

// value reads a value. All that is read was found to be JSON before.
func (r *reader) value(path string, t tags, into reflect.Value) error {
	if r.word("null") {
		if path == "" && into.Kind() == reflect.Struct {
			return missing("", into, nil)
		}
		return nil
	}
	switch sort(into.Type()) {
	case rawSort:
		text, err := r.skip(0)
		into.SetBytes(slices.Clone(text))
		return err
	case objectSort:
		return r.fields(path, into)
	case listSort:
		return r.elements(path, t, into)
	case mapSort:
		return r.entries(path, t, into)
	case pointerSort:
		if into.IsNil() {
			into.Set(reflect.New(into.Type().Elem()))
		}
		return r.value(path, t, into.Elem())
	}
	return r.leaf(path, t, into)
}

func (r *reader) fields(path string, into reflect.Value) error {
	if r.space() != '{' {
		return r.expected(path, "an object")
	}
	known := fieldsOf(into.Type())
	var seen []string
	err := r.object(func(key string) error {
		at := join(path, key)
		f := known.named(key)
		switch {
		case f == nil:
			return &Error{at, "unknown" + nearest.Suggest(key, known.names())}
		case slices.Contains(seen, key):
			return &Error{at, "is there twice"}
		}
		if r.space() != 'n' {
			seen = append(seen, key)
		}
		return r.value(at, f.tags, into.FieldByIndex(f.index))
	})
	if err != nil {
		return err
	}
	return missing(path, into, seen)
}

// missing is an error for the first field that must be there and wasn't seen.
func missing(path string, of reflect.Value, seen []string) error {
	for _, f := range fieldsOf(of.Type()) {
		if !f.required() {
			continue
		}
		v := of.FieldByIndex(f.index)
		if !slices.Contains(seen, f.name) || v.Kind() == reflect.String && v.Len() == 0 {
			return &Error{join(path, f.name), strings.TrimSuffix("is missing: "+f.doc(), ": ")}
		}
	}
	return nil
}

func (r *reader) elements(path string, t tags, into reflect.Value) error {
	if r.space() != '[' {
		return r.expected(path, "a list")
	}
	all := reflect.MakeSlice(into.Type(), 0, 0)
	err := r.list(func(i int) error {
		e := reflect.New(into.Type().Elem()).Elem()
		err := r.value(At(path, i), t.each(), e)
		all = reflect.Append(all, e)
		return err
	})
	if err != nil {
		return err
	}
	into.Set(all)
	return t.length(path, all.Len(), "element")
}

func (r *reader) entries(path string, t tags, into reflect.Value) error {
	if r.space() != '{' {
		return r.expected(path, "an object")
	}
	into.Set(reflect.MakeMap(into.Type()))
	return r.object(func(key string) error {
		v := reflect.New(into.Type().Elem()).Elem()
		err := r.value(join(path, key), t.each(), v)
		into.SetMapIndex(reflect.ValueOf(key).Convert(into.Type().Key()), v)
		return err
	})
}

func (r *reader) leaf(path string, t tags, into reflect.Value) error {
	switch s := sort(into.Type()); s {
	case boolSort:
		switch {
		case r.word("true"):
			into.SetBool(true)
		case r.word("false"):
			into.SetBool(false)
		default:
			return r.expected(path, "true or false")
		}
		return nil
	case numberSort:
		return r.amount(path, t, into)
	default:
		if next := r.space(); next != '"' {
			return &Error{path, "expected a string, not " + sortOf(next)}
		}
		text, err := r.string()
		if err != nil {
			return err
		}
		switch s {
		case durationSort:
			return t.duration(path, text, into)
		case textSort:
			if err := into.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
				return &Error{path, err.Error()}
			}
			return nil
		}
		into.SetString(text)
		return t.text(path, text)
	}
}

// amount reads a number.
func (r *reader) amount(path string, t tags, into reflect.Value) error {
	next, begin := r.space(), r.at
	if next != '-' && (next < '0' || next > '9') {
		return r.expected(path, describe(into.Type()))
	}
	text, err := r.number()
	if err != nil {
		return err
	}
	bits := into.Type().Bits()
	switch {
	case into.CanInt():
		var n int64
		n, err = strconv.ParseInt(text, 10, bits)
		into.SetInt(n)
	case into.CanUint():
		var n uint64
		n, err = strconv.ParseUint(text, 10, bits)
		into.SetUint(n)
	default:
		var n float64
		n, err = strconv.ParseFloat(text, bits)
		into.SetFloat(n)
	}
	if err != nil {
		r.at = begin
		return r.expected(path, describe(into.Type()))
	}
	return t.number(path, text)
}

// expected is the error for a value of another sort.
func (r *reader) expected(path, what string) error {
	found, err := r.skip(0)
	if err != nil {
		return err
	}
	text := string(found)
	if len(text) > 40 {
		text = strings.ToValidUTF8(text[:40], "") + "…"
	}
	return &Error{path, "expected " + what + ", not " + text}
}

// sortOf says what sort of value begins with a byte. Where text is expected the value itself is not
// shown: passwords are text, and one of digits alone is easily left without quotation marks.
func sortOf(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	}
	return "a number"
}

// describe says what a number may be.
func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return "a number from 0 to " + strconv.FormatUint(uint64(1)<<t.Bits()-1, 10)
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint64:
		return "a whole number from 0 on"
	}
	return "a whole number"
}

// At returns the path of an element: list[i].
func At(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Duration reads a duration as Go writes it, such as 20ms; otherwise is what empty text means.
func Duration(text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errors.New(quote(text) + " is no duration; write such as 20ms")
	}
	return d, nil
}
