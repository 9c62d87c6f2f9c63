package strict

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Schema returns the JSON Schema (draft 2020-12) of what Decode reads into a value like this one,
// which has the defaults.
func Schema(defaults any) []byte {
	v := reflect.ValueOf(defaults)
	s := schema{parts: []string{`"$schema":"https://json-schema.org/draft/2020-12/schema"`}}
	s.describe(tags{}, v.Type(), v, 0)
	return []byte(s.String())
}

// schema is a JSON object in the making.
type schema struct{ parts []string }

func (s *schema) add(key, value string) { s.parts = append(s.parts, quote(key)+":"+value) }

func (s *schema) String() string { return "{" + strings.Join(s.parts, ",") + "}" }

// deepest is how deep types are followed: those that contain themselves have no end.
const deepest = 12

// describe adds what a type's values may be. Without a valid value there are no defaults.
func (s *schema) describe(t tags, typ reflect.Type, value reflect.Value, depth int) {
	if depth > deepest {
		return
	}
	part := func(t tags, typ reflect.Type, value reflect.Value) string {
		var p schema
		p.describe(t, typ, value, depth+1)
		return p.String()
	}
	switch sort(typ) {
	case rawSort:
	case pointerSort:
		if value.IsValid() && !value.IsNil() {
			value = value.Elem()
		} else {
			value = reflect.Value{}
		}
		s.describe(t, typ.Elem(), value, depth)
		return
	case boolSort:
		s.add("type", `"boolean"`)
	case numberSort:
		s.number(t, typ)
	case listSort:
		s.add("type", `"array"`)
		s.add("items", part(t.each(), typ.Elem(), reflect.Value{}))
		s.length(t, "minItems", "maxItems")
	case mapSort:
		s.add("type", `"object"`)
		s.add("additionalProperties", part(t.each(), typ.Elem(), reflect.Value{}))
	case objectSort:
		s.object(typ, value, part)
	default:
		s.add("type", `"string"`)
		if typ != reflect.TypeFor[time.Duration]() {
			s.length(t, "minLength", "maxLength")
		}
		if known := t.enum(); known != nil {
			s.add("enum", texts(known))
		}
	}
	if value.IsValid() && (typ.Kind() == reflect.Bool || !value.IsZero()) {
		if d := literal(value); d != "" {
			s.add("default", d)
		}
	}
	if doc := t.doc(); doc != "" {
		s.add("description", quote(doc))
	}
}

func (s *schema) number(t tags, typ reflect.Type) {
	kind, least, most := `"integer"`, t.Get("min"), t.Get("max")
	switch typ.Kind() {
	case reflect.Float32, reflect.Float64:
		kind = `"number"`
	case reflect.Uint8, reflect.Uint16:
		if most == "" {
			most = strconv.Itoa(1<<typ.Bits() - 1)
		}
		fallthrough
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		if least == "" {
			least = "0"
		}
	}
	s.add("type", kind)
	for _, bound := range [...][2]string{{"minimum", least}, {"maximum", most}, {"exclusiveMinimum", t.Get("above")}} {
		if bound[1] != "" {
			s.add(bound[0], bound[1])
		}
	}
}

func (s *schema) length(t tags, least, most string) {
	if n := t.Get("min"); n != "" {
		s.add(least, n)
	}
	if n := t.Get("max"); n != "" {
		s.add(most, n)
	}
}

func (s *schema) object(typ reflect.Type, value reflect.Value, part func(tags, reflect.Type, reflect.Value) string) {
	s.add("type", `"object"`)
	s.add("additionalProperties", "false")
	var required []string
	var properties schema
	for _, f := range fieldsOf(typ) {
		if f.required() {
			required = append(required, f.name)
		}
		var v reflect.Value
		if value.IsValid() {
			v = value.FieldByIndex(f.index)
		}
		properties.add(f.name, part(f.tags, typ.FieldByIndex(f.index).Type, v))
	}
	if required != nil {
		s.add("required", texts(required))
	}
	s.add("properties", properties.String())
}

// literal returns a value as JSON, empty where it has none as a default: an object's fields have
// theirs.
func literal(v reflect.Value) string {
	switch sort(v.Type()) {
	case boolSort:
		return strconv.FormatBool(v.Bool())
	case durationSort:
		return quote(short(time.Duration(v.Int())))
	case stringSort:
		return quote(v.String())
	case numberSort:
		switch {
		case v.CanInt():
			return strconv.FormatInt(v.Int(), 10)
		case v.CanUint():
			return strconv.FormatUint(v.Uint(), 10)
		}
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits())
	case listSort:
		var all []string
		for i := range v.Len() {
			all = append(all, literal(v.Index(i)))
		}
		if slices.Contains(all, "") {
			return ""
		}
		return "[" + strings.Join(all, ",") + "]"
	case mapSort:
		var all schema
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		}) {
			value := literal(v.MapIndex(key))
			if value == "" {
				return ""
			}
			all.add(key.String(), value)
		}
		return all.String()
	}
	return ""
}

// texts returns a list of strings as JSON.
func texts(list []string) string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = quote(s)
	}
	return "[" + strings.Join(all, ",") + "]"
}
