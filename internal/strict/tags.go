package strict

import (
	"cmp"
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
)

// The sorts of values that fields may have.
const (
	stringSort = iota
	boolSort
	numberSort
	durationSort
	textSort
	rawSort
	objectSort
	listSort
	mapSort
	pointerSort
)

// sort returns which sort of value a type is.
func sort(t reflect.Type) int {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return durationSort
	case t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return textSort
	}
	switch t.Kind() {
	case reflect.String:
		return stringSort
	case reflect.Bool:
		return boolSort
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return numberSort
	case reflect.Struct:
		return objectSort
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return rawSort
		}
		return listSort
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return mapSort
		}
	case reflect.Pointer:
		return pointerSort
	}
	panic("strict: there is no config of type " + t.String())
}

// field is a field of a struct.
type field struct {
	name  string
	index []int
	tags
}

type fields []field

// fieldsOf returns a struct's fields, those of embedded structs among them.
func fieldsOf(t reflect.Type) (all fields) {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			all = append(all, field{name, f.Index, tags{f.Tag}})
		}
	}
	return all
}

func (f fields) named(name string) *field {
	if i := slices.IndexFunc(f, func(f field) bool { return f.name == name }); i >= 0 {
		return &f[i]
	}
	return nil
}

func (f fields) names() []string {
	all := make([]string, len(f))
	for i := range f {
		all[i] = f[i].name
	}
	slices.Sort(all)
	return all
}

// tags are what a field's tags say of it.
type tags struct{ reflect.StructTag }

func (t tags) doc() string    { return t.Get("doc") }
func (t tags) required() bool { return t.Get("required") == "true" }

func (t tags) enum() []string {
	if e := t.Get("enum"); e != "" {
		return strings.Split(e, ",")
	}
	return nil
}

// each are the tags that go for each element of a list or map.
func (t tags) each() tags {
	if e := t.Get("enum"); e != "" {
		return tags{reflect.StructTag("enum:" + strconv.Quote(e))}
	}
	return tags{}
}

// text checks a string.
func (t tags) text(path, text string) error {
	if known := t.enum(); known != nil && !slices.Contains(known, text) {
		return &Error{path, quote(text) + " is none of its values" + nearest.Suggest(text, known)}
	}
	return t.length(path, len(text), "byte")
}

// length checks how much there is of a field.
func (t tags) length(path string, n int, of string) error {
	least, most := t.bound("min", int64(0)), t.bound("max", int64(1)<<62)
	switch {
	case int64(n) < least:
		return &Error{path, "has " + strconv.Itoa(n) + " " + of + "s, and needs at least " + strconv.FormatInt(least, 10)}
	case int64(n) > most:
		return &Error{path, "has " + strconv.Itoa(n) + " " + of + "s, and may have at most " + strconv.FormatInt(most, 10)}
	}
	return nil
}

// bound returns a whole number that a tag has.
func (t tags) bound(name string, otherwise int64) int64 {
	text := t.Get(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("strict: the tag " + name + ":" + strconv.Quote(text) + " has no whole number")
	}
	return n
}

// number checks a number, given as text.
func (t tags) number(path, text string) error {
	n, _ := strconv.ParseFloat(text, 64)
	return t.within(path, text, func(bound string) int {
		b, err := strconv.ParseFloat(bound, 64)
		if err != nil {
			panic("strict: a bound " + strconv.Quote(bound) + " is no number")
		}
		return cmp.Compare(n, b)
	})
}

// duration reads and checks a time.Duration. Empty text leaves it as it was.
func (t tags) duration(path, text string, into reflect.Value) error {
	d, err := Duration(text, time.Duration(into.Int()))
	if err != nil {
		return &Error{path, err.Error()}
	}
	into.SetInt(int64(d))
	return t.within(path, short(d), func(bound string) int {
		b, err := time.ParseDuration(bound)
		if err != nil {
			panic("strict: a bound " + strconv.Quote(bound) + " is no duration")
		}
		return cmp.Compare(d, b)
	})
}

// within checks bounds, given how the value compares with one.
func (t tags) within(path, value string, compare func(bound string) int) error {
	least, most, above := t.Get("min"), t.Get("max"), t.Get("above")
	low, high := least != "" && compare(least) < 0, most != "" && compare(most) > 0
	switch {
	case (low || high) && least != "" && most != "":
		return &Error{path, value + " is not between " + least + " and " + most}
	case low:
		return &Error{path, value + " is less than " + least + ", which is the least"}
	case high:
		return &Error{path, value + " is more than " + most + ", which is the most"}
	case above != "" && compare(above) <= 0:
		return &Error{path, value + " is not more than " + above}
	}
	return nil
}

// short writes a duration without parts that are zero.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
