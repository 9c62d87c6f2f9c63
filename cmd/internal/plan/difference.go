// Package plan says what an edit of the configuration, or another version of the program, would
// change for proxies, before it is made: two control planes run beside each other, the same proxies
// ask both, and their answers are compared field by field.
package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// Change is one field that differs. Path names fields as protobuf does, elements of lists by their
// name where they have one and by their place (of the new list, or of the old one for what is
// gone) otherwise, and keys of maps: virtual_hosts[web:80].routes[0].route.timeout.
type Change struct {
	Path string `json:"path"`
	// Before and After are JSON as protobuf has it; empty: not set.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Differences returns the fields in which two messages of one type differ, in order of the type's
// fields. What is in an Any is compared by its own meaning; of a type that this program doesn't
// know, by its bytes. Elements of lists that have names are matched by them, others by what they
// have in common in order. None: they mean the same.
func Differences(before, after proto.Message) []Change {
	var w walk
	w.message("", before.ProtoReflect(), after.ProtoReflect())
	return w.changes
}

type walk struct{ changes []Change }

func (w *walk) add(path string, before, after json.RawMessage) {
	w.changes = append(w.changes, Change{path, before, after})
}

func (w *walk) message(path string, a, b protoreflect.Message) {
	switch a.Descriptor().FullName() {
	case "google.protobuf.Any":
		w.any(path, a.Interface().(*anypb.Any), b.Interface().(*anypb.Any))
		return
	case "google.protobuf.Duration", "google.protobuf.Timestamp", "google.protobuf.Value",
		"google.protobuf.BoolValue", "google.protobuf.StringValue", "google.protobuf.BytesValue",
		"google.protobuf.UInt32Value", "google.protobuf.UInt64Value", "google.protobuf.Int32Value", "google.protobuf.Int64Value",
		"google.protobuf.DoubleValue", "google.protobuf.FloatValue":
		if !same(a, b) {
			w.add(path, shown(a), shown(b))
		}
		return
	}
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		at := join(path, string(f.Name()))
		switch {
		case !a.Has(f) && !b.Has(f):
		case f.IsMap():
			w.entries(at, f, a.Get(f).Map(), b.Get(f).Map())
		case f.IsList():
			w.list(at, f, a.Get(f).List(), b.Get(f).List())
		case !a.Has(f) || !b.Has(f):
			w.add(at, field(f, a), field(f, b))
		case f.Message() != nil:
			w.message(at, a.Get(f).Message(), b.Get(f).Message())
		case !a.Get(f).Equal(b.Get(f)):
			w.add(at, value(f, a.Get(f)), value(f, b.Get(f)))
		}
	}
	if !bytes.Equal(a.GetUnknown(), b.GetUnknown()) {
		w.add(join(path, "(unknown fields)"), size(a.GetUnknown()), size(b.GetUnknown()))
	}
}

func (w *walk) any(path string, a, b *anypb.Any) {
	x, errX := a.UnmarshalNew()
	y, errY := b.UnmarshalNew()
	switch {
	case a.TypeUrl != b.TypeUrl:
		w.add(path, shown(a.ProtoReflect()), shown(b.ProtoReflect()))
	case errX == nil && errY == nil:
		w.message(path, x.ProtoReflect(), y.ProtoReflect())
	case !bytes.Equal(a.Value, b.Value):
		w.add(path, size(a.Value), size(b.Value))
	}
}

func (w *walk) entries(path string, f protoreflect.FieldDescriptor, a, b protoreflect.Map) {
	keys := map[string]protoreflect.MapKey{}
	for _, m := range []protoreflect.Map{a, b} {
		m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool { keys[k.String()] = k; return true })
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		k, at := keys[name], path+"["+name+"]"
		var x, y *protoreflect.Value
		if a.Has(k) {
			v := a.Get(k)
			x = &v
		}
		if b.Has(k) {
			v := b.Get(k)
			y = &v
		}
		w.element(at, f.MapValue(), x, y)
	}
}

// element compares two elements of a list or map; nil: there is none.
func (w *walk) element(path string, f protoreflect.FieldDescriptor, a, b *protoreflect.Value) {
	switch {
	case a == nil:
		w.add(path, nil, value(f, *b))
	case b == nil:
		w.add(path, value(f, *a), nil)
	case f.Message() != nil:
		w.message(path, a.Message(), b.Message())
	case !a.Equal(*b):
		w.add(path, value(f, *a), value(f, *b))
	}
}

func (w *walk) list(path string, f protoreflect.FieldDescriptor, a, b protoreflect.List) {
	x, y := elements(f, a), elements(f, b)
	if named(x) && named(y) {
		w.named(path, f, x, y)
		return
	}
	common := longest(x, y)
	common = append(common, [2]int{len(x), len(y)}) // the ends match
	i, j := 0, 0
	for _, c := range common {
		for ; i < c[0] || j < c[1]; i, j = min(i+1, c[0]), min(j+1, c[1]) {
			var before, after *protoreflect.Value
			at := i
			if i < c[0] {
				before = &x[i].value
			}
			if j < c[1] {
				after, at = &y[j].value, j
			}
			w.element(path+"["+strconv.Itoa(at)+"]", f, before, after)
		}
		i, j = c[0]+1, c[1]+1
	}
}

func (w *walk) named(path string, f protoreflect.FieldDescriptor, x, y []item) {
	of := map[string]*protoreflect.Value{}
	for i := range x {
		of[x[i].name] = &x[i].value
	}
	in := map[string]bool{}
	for i := range y {
		in[y[i].name] = true
		w.element(path+"["+y[i].name+"]", f, of[y[i].name], &y[i].value)
	}
	var before, after []string
	for i := range x {
		if in[x[i].name] {
			before = append(before, x[i].name)
			continue
		}
		w.element(path+"["+x[i].name+"]", f, &x[i].value, nil)
	}
	for i := range y {
		if of[y[i].name] != nil {
			after = append(after, y[i].name)
		}
	}
	if !slices.Equal(before, after) {
		w.add(path+"(order)", quoted(before), quoted(after))
	}
}

// item is an element of a list, with its name if it has one, and one encoding of its meaning.
type item struct {
	name, meaning string
	value         protoreflect.Value
}

func elements(f protoreflect.FieldDescriptor, l protoreflect.List) (all []item) {
	for i := range l.Len() {
		v := l.Get(i)
		it := item{value: v}
		if f.Message() != nil {
			it.name, it.meaning = nameOf(v.Message()), string(meaning(v.Message()))
		} else {
			it.meaning = fmt.Sprint(v.Interface())
		}
		all = append(all, it)
	}
	return all
}

// named reports whether all have a name of their own.
func named(all []item) bool {
	seen := map[string]bool{}
	for _, it := range all {
		if it.name == "" || seen[it.name] {
			return false
		}
		seen[it.name] = true
	}
	return true
}

// nameOf is what an element is called: its own name, its key, or the address of an endpoint.
func nameOf(m protoreflect.Message) string {
	for _, path := range [][]protoreflect.Name{
		{"name"}, {"key"}, {"header", "key"}, {"endpoint", "address", "socket_address"}, {"endpoint", "address", "envoy_internal_address"}, {"locality"},
	} {
		at := m
		for i, name := range path {
			f := at.Descriptor().Fields().ByName(name)
			if f == nil || f.IsList() || f.IsMap() || !at.Has(f) {
				break
			}
			last := i == len(path)-1
			switch {
			case last && f.Kind() == protoreflect.StringKind:
				return at.Get(f).String()
			case last && f.Message() != nil:
				return words(at.Get(f).Message())
			case f.Message() == nil:
				return ""
			}
			at = at.Get(f).Message()
		}
	}
	return ""
}

// words joins the plain values of a message, such as an address and its port.
func words(m protoreflect.Message) (text string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); m.Has(f) && f.Message() == nil && !f.IsList() && f.Kind() != protoreflect.EnumKind {
			if text != "" {
				text += ":"
			}
			text += m.Get(f).String()
		}
	}
	return text
}

// mostCells bounds the table of longest: lists beyond it are compared place by place.
const mostCells = 4 << 20

// longest returns the places of a longest common sequence.
func longest(x, y []item) (common [][2]int) {
	if len(x)*len(y) > mostCells {
		for i := range min(len(x), len(y)) {
			if x[i].meaning == y[i].meaning {
				common = append(common, [2]int{i, i})
			}
		}
		return common
	}
	length := make([][]int, len(x)+1)
	length[len(x)] = make([]int, len(y)+1)
	for i := len(x) - 1; i >= 0; i-- {
		length[i] = make([]int, len(y)+1)
		for j := len(y) - 1; j >= 0; j-- {
			if x[i].meaning == y[j].meaning {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(x) && j < len(y); {
		switch {
		case x[i].meaning == y[j].meaning:
			common = append(common, [2]int{i, j})
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return common
}

// meaning is one encoding for what two messages of a type mean, but for what is in an Any whose
// writers order its fields otherwise.
func meaning(m protoreflect.Message) []byte {
	text, _ := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m.Interface())
	return text
}

func same(a, b protoreflect.Message) bool { return proto.Equal(a.Interface(), b.Interface()) }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func field(f protoreflect.FieldDescriptor, m protoreflect.Message) json.RawMessage {
	if !m.Has(f) {
		return nil
	}
	return value(f, m.Get(f))
}

// value is a field's value, or an element's, as JSON.
func value(f protoreflect.FieldDescriptor, v protoreflect.Value) json.RawMessage {
	switch {
	case f.Message() != nil:
		return shown(v.Message())
	case f.Kind() == protoreflect.EnumKind:
		if name := f.Enum().Values().ByNumber(v.Enum()); name != nil {
			return quoted(string(name.Name()))
		}
		return quoted(int32(v.Enum()))
	case f.Kind() == protoreflect.BytesKind:
		return size(v.Bytes())
	}
	return quoted(v.Interface())
}

// shown is a message as JSON, always with the same spaces.
func shown(m protoreflect.Message) json.RawMessage {
	text, err := protojson.MarshalOptions{UseProtoNames: true, AllowPartial: true}.Marshal(m.Interface())
	if err != nil { // there is an Any of an unknown type in it
		return size(meaning(m))
	}
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return size(text)
	}
	return out.Bytes()
}

func size(b []byte) json.RawMessage { return quoted(fmt.Sprintf("(%d bytes)", len(b))) }

func quoted(v any) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // infinity, of a field that is a number
		return quoted(fmt.Sprint(v))
	}
	return bytes.TrimSpace(out.Bytes())
}
