package strict

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

var (
	placeType    = reflect.TypeFor[Place]()
	keysType     = reflect.TypeFor[Keys]()
	jsonType     = reflect.TypeFor[JSON]()
	durationType = reflect.TypeFor[time.Duration]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
	wordsType    = reflect.TypeFor[Words]()
)

// Words is a pointer to a struct that may also be given as one of some words.
type Words interface {
	// Words are those that there are, SetWord takes one of them.
	Words() []string
	SetWord(word string)
}

func (d *decoder) word(at, n *yaml.Node, v reflect.Value) {
	w := v.Addr().Interface().(Words)
	words := w.Words()
	if n.Tag != "!!str" || !slices.Contains(words, n.Value) {
		all := append(slices.Clone(words), "a mapping with `"+strings.Join(keys(Fields(v.Type())), "`, `")+"`")
		d.fail(at, "want %s, not %s%s", orList(all), describe(n), near(n.Value, words))
		return
	}
	w.SetWord(n.Value)
}

// value reads a node into v. enum is the field's list of legal words; it holds for the elements of
// a list too.
func (d *decoder) value(at *yaml.Node, v reflect.Value, enum string) {
	n, ok := d.enter(at)
	defer d.leave()
	if !ok {
		return
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		d.fail(at, "no value; give one or leave the key out")
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch {
	case v.Addr().Type().Implements(textType):
		d.scalar(at, n, v, enum)
	case n.Kind != yaml.MappingNode && v.Addr().Type().Implements(wordsType):
		d.word(at, n, v)
	case v.Kind() == reflect.Struct:
		d.structure(at, n, v)
	case v.Kind() == reflect.Slice:
		d.list(at, n, v, enum)
	case v.Kind() == reflect.Map:
		d.dictionary(at, n, v)
	default:
		d.scalar(at, n, v, enum)
	}
}

func (d *decoder) structure(at, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fail(at, "want a mapping, not %s", describe(n))
		return
	}
	fields := Fields(v.Type())
	given := Keys{}
	for _, p := range d.pairs(n) {
		name := p.key.Value
		given[name] = d.place(p.value)
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == name })
		if i < 0 {
			d.fail(p.key, "unknown key `%s`%s", name, Hint(name, keys(fields)))
			continue
		}
		field := v.FieldByIndex(fields[i].Index)
		if field.Type() == jsonType {
			field.SetBytes(d.json(p.value, name, given))
			continue
		}
		d.value(p.value, field, fields[i].Enum)
		if fields[i].Need && field.Kind() == reflect.String && p.value.Kind == yaml.ScalarNode && p.value.Value == "" && p.value.Tag == "!!str" {
			d.fail(p.value, "`%s` is empty", name)
		}
	}
	for _, f := range fields {
		if _, ok := given[f.Key]; f.Need && !ok {
			d.fail(at, "`%s` is missing", f.Key)
		}
	}
	for i := range v.NumField() {
		switch v.Type().Field(i).Type {
		case placeType:
			v.Field(i).Set(reflect.ValueOf(d.place(at)))
		case keysType:
			v.Field(i).Set(reflect.ValueOf(given))
		}
	}
}

func (d *decoder) list(at, n *yaml.Node, v reflect.Value, enum string) {
	if n.Kind != yaml.SequenceNode {
		d.fail(at, "want a list, not %s", describe(n))
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, one := range n.Content {
		d.value(one, list.Index(i), enum)
	}
	v.Set(list)
}

func (d *decoder) dictionary(at, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fail(at, "want a mapping, not %s", describe(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, p := range d.pairs(n) {
		value := reflect.New(v.Type().Elem()).Elem()
		d.value(p.value, value, "")
		v.SetMapIndex(reflect.ValueOf(p.key.Value), value)
	}
}

func (d *decoder) scalar(at, n *yaml.Node, v reflect.Value, enum string) {
	if n.Kind != yaml.ScalarNode {
		d.fail(at, "want a single value, not %s", describe(n))
		return
	}
	switch {
	case v.Addr().Type().Implements(textType):
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
			d.fail(at, "%s", err)
		}
	case v.Type() == durationType:
		d.duration(at, n, v)
	case v.Kind() == reflect.String:
		d.text(at, n, v, enum)
	case v.Kind() == reflect.Bool:
		if n.Tag != "!!bool" || n.Decode(v.Addr().Interface()) != nil {
			d.fail(at, "want true or false, not %s", describe(n))
		}
	default:
		if n.Tag != "!!int" || n.Decode(v.Addr().Interface()) != nil {
			d.fail(at, "want a whole number%s, not %s", sign(v), describe(n))
		}
	}
}

func sign(v reflect.Value) string {
	if v.CanUint() {
		return " from 0 up"
	}
	return ""
}

func (d *decoder) duration(at, n *yaml.Node, v reflect.Value) {
	t, err := time.ParseDuration(n.Value)
	if err != nil || t <= 0 {
		d.fail(at, "want a duration above zero, such as 500ms, 10s or 2m, not %s", describe(n))
		return
	}
	v.SetInt(int64(t))
}

func (d *decoder) text(at, n *yaml.Node, v reflect.Value, enum string) {
	if n.Tag != "!!str" {
		d.fail(at, "want text, not %s; put it in quotes if it is meant so", describe(n))
		return
	}
	if words := strings.Split(enum, ","); enum != "" && !slices.Contains(words, n.Value) {
		d.fail(at, "want %s, not `%s`%s", orList(words), n.Value, near(n.Value, words))
		return
	}
	v.SetString(n.Value)
}

func orList(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
