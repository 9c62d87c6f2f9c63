package schema

import (
	"encoding/base64"
	"math"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// object returns a resource as the API server has it after it read its JSON: maps, lists, strings,
// booleans, int64, float64 and nil. Which fields there are is what the text says, nulls included;
// values are those that the message has, so that what the protobuf JSON mapping takes besides
// (names with underscores) is no mistake. Numbers in quotes and numbers of enums, which it takes as
// well, stay what they are: the schema decides on them.
func object(r finding.Resource) map[string]any {
	o := map[string]any{
		"apiVersion": r.Group + "/" + r.Version,
		"kind":       r.Kind,
		"metadata":   map[string]any{"name": r.Name, "namespace": r.Namespace},
	}
	if r.Spec == nil {
		if n := spec(r.Node); n != nil {
			o["spec"], _, _ = protoyaml.JSON(n) // who read it has said if it is none
		}
		return o
	}
	if r.Node == nil {
		o["spec"] = message(r.Spec.ProtoReflect(), nil)
		return o
	}
	if n := protoyaml.Child(r.Node, "spec"); n != nil {
		o["spec"] = message(r.Spec.ProtoReflect(), n)
	}
	return o
}

// spec is an object's spec as it is written; nil: it has none.
func spec(n *yaml.Node) *yaml.Node {
	if n == nil {
		return nil
	}
	if n = protoyaml.Child(n, "spec"); n != nil {
		n = protoyaml.Resolve(n)
	}
	return n
}

// message returns a message's fields; n is its text, nil where there is none.
func message(m protoreflect.Message, n *yaml.Node) any {
	if n != nil {
		n = protoyaml.Resolve(n)
		if protoyaml.IsNull(n) {
			return nil
		}
	}
	if m.Descriptor().FullName().Parent() == "google.protobuf" {
		return wellKnown(m, n)
	}
	if n == nil {
		return populated(m)
	}
	if n.Kind != yaml.MappingNode {
		return shallow(n)
	}
	pairs, _ := protoyaml.Pairs(n)
	o := make(map[string]any, len(pairs))
	for _, p := range pairs {
		if fd := protoyaml.Field(m.Descriptor(), p.Key.Value); fd != nil {
			o[fd.JSONName()] = value(m.Get(fd), fd, p.Value)
		}
	}
	return o
}

// populated returns the fields that a message without a text has.
func populated(m protoreflect.Message) map[string]any {
	o := make(map[string]any)
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		o[fd.JSONName()] = value(v, fd, nil)
		return true
	})
	return o
}

func value(v protoreflect.Value, fd protoreflect.FieldDescriptor, n *yaml.Node) any {
	if n != nil {
		if n = protoyaml.Resolve(n); protoyaml.IsNull(n) {
			return nil
		}
	}
	switch {
	case fd.IsList():
		return list(v.List(), fd, n)
	case fd.IsMap():
		return dictionary(v.Map(), fd, n)
	}
	return single(v, fd, n)
}

func list(l protoreflect.List, fd protoreflect.FieldDescriptor, n *yaml.Node) any {
	if n != nil && (n.Kind != yaml.SequenceNode || l.Len() != len(n.Content)) {
		return shallow(n)
	}
	out := make([]any, l.Len())
	for i := range out {
		if n == nil {
			out[i] = single(l.Get(i), fd, nil)
		} else {
			out[i] = single(l.Get(i), fd, n.Content[i])
		}
	}
	return out
}

func dictionary(m protoreflect.Map, fd protoreflect.FieldDescriptor, n *yaml.Node) any {
	out, texts := make(map[string]any, m.Len()), make(map[string]*yaml.Node)
	if n != nil {
		if n.Kind != yaml.MappingNode {
			return shallow(n)
		}
		pairs, _ := protoyaml.Pairs(n)
		for _, p := range pairs {
			texts[p.Key.Value] = p.Value
			out[p.Key.Value] = shallow(p.Value)
		}
	}
	m.Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		out[key.String()] = single(v, fd.MapValue(), texts[key.String()])
		return true
	})
	return out
}

func single(v protoreflect.Value, fd protoreflect.FieldDescriptor, n *yaml.Node) any {
	if isOtherType(n, fd) {
		return shallow(n)
	}
	if n != nil && fd.Message() == nil && v.Equal(fd.Default()) {
		return unread(n, fd)
	}
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return message(v.Message(), n)
	case protoreflect.EnumKind:
		if known := fd.Enum().Values().ByNumber(v.Enum()); known != nil {
			return string(known.Name())
		}
		return int64(v.Enum())
	case protoreflect.BytesKind:
		return base64.StdEncoding.EncodeToString(v.Bytes())
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return int64(min(v.Uint(), math.MaxInt64))
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return v.Float()
	case protoreflect.BoolKind, protoreflect.StringKind:
		return v.Interface()
	}
	return v.Int()
}

// wellKnown returns a message of a type with a JSON form of its own.
func wellKnown(m protoreflect.Message, n *yaml.Node) any {
	fields := m.Descriptor().Fields()
	switch m.Descriptor().Name() {
	case "Duration":
		if n != nil {
			return shallow(n)
		}
		return (time.Duration(m.Get(fields.ByNumber(1)).Int())*time.Second + time.Duration(m.Get(fields.ByNumber(2)).Int())).String()
	case "Timestamp":
		if n != nil {
			return shallow(n)
		}
		return time.Unix(m.Get(fields.ByNumber(1)).Int(), m.Get(fields.ByNumber(2)).Int()).UTC().Format(time.RFC3339Nano)
	case "Struct", "Value", "ListValue", "Any":
		return free(m)
	}
	if fields.Len() == 1 && fields.Get(0).Name() == "value" {
		return single(m.Get(fields.Get(0)), fields.Get(0), n)
	}
	return map[string]any{}
}
