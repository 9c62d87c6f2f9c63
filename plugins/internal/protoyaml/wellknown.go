package protoyaml

import (
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// wellKnown returns how a type with a JSON form of its own is read; nil for all others.
func wellKnown(name protoreflect.FullName) func(*decoder, *yaml.Node, protoreflect.Message) {
	if name.Parent() != "google.protobuf" {
		return nil
	}
	switch name.Name() {
	case "Duration":
		return (*decoder).duration
	case "Timestamp":
		return (*decoder).timestamp
	case "FieldMask":
		return (*decoder).fieldMask
	case "BoolValue", "StringValue", "BytesValue", "Int32Value", "Int64Value", "UInt32Value", "UInt64Value", "FloatValue", "DoubleValue":
		return (*decoder).wrapper
	case "Struct":
		return (*decoder).structure
	case "ListValue":
		return (*decoder).listValue
	case "Value":
		return (*decoder).anyValue
	case "Any":
		return (*decoder).any
	}
	return nil
}

// duration reads seconds as the JSON mapping writes them (`1.5s`), or what time.ParseDuration
// takes.
func (d *decoder) duration(n *yaml.Node, m protoreflect.Message) {
	value, err := time.ParseDuration(n.Value)
	if isText(n) && err == nil {
		setSeconds(m, int64(value/time.Second), int32(value%time.Second))
		return
	}
	// What is beyond Go's 292 years.
	if !isText(n) || protojson.Unmarshal([]byte(strconv.Quote(n.Value)), m.Interface()) != nil {
		d.fault(n, CodeValue, "expected a duration such as 1.5s or 1m30s, got %s", describe(n))
	}
}

func (d *decoder) timestamp(n *yaml.Node, m protoreflect.Message) {
	value, err := time.Parse(time.RFC3339Nano, n.Value)
	if !isText(n) || err != nil {
		d.fault(n, CodeValue, "expected a time such as 2006-01-02T15:04:05Z, got %s", describe(n))
		return
	}
	setSeconds(m, value.Unix(), int32(value.Nanosecond()))
}

// setSeconds sets the fields that Duration and Timestamp both have.
func setSeconds(m protoreflect.Message, seconds int64, nanos int32) {
	fields := m.Descriptor().Fields()
	m.Set(fields.ByNumber(1), protoreflect.ValueOfInt64(seconds))
	m.Set(fields.ByNumber(2), protoreflect.ValueOfInt32(nanos))
}

func (d *decoder) fieldMask(n *yaml.Node, m protoreflect.Message) {
	if !isText(n) || protojson.Unmarshal([]byte(strconv.Quote(n.Value)), m.Interface()) != nil {
		d.fault(n, CodeValue, "expected field names parted by commas, got %s", describe(n))
	}
}

func (d *decoder) wrapper(n *yaml.Node, m protoreflect.Message) {
	fd := m.Descriptor().Fields().ByNumber(1)
	if v, ok := d.scalar(n, fd); ok {
		m.Set(fd, v)
	}
}

func (d *decoder) structure(n *yaml.Node, m protoreflect.Message) {
	if IsNull(n) {
		return
	}
	if into, ok := m.Interface().(*structpb.Struct); ok {
		into.Fields = d.structFields(n)
	}
}

func (d *decoder) structFields(n *yaml.Node) map[string]*structpb.Value {
	fields := make(map[string]*structpb.Value, len(n.Content)/2)
	for pair := range d.pairs(n) {
		d.path.push(step{name: clip(pair.Key.Value)})
		fields[pair.Key.Value] = d.value(pair.Value)
		d.path.pop()
	}
	return fields
}

func (d *decoder) listValue(n *yaml.Node, m protoreflect.Message) {
	if n.Kind != yaml.SequenceNode {
		d.fault(n, CodeValue, "expected a list, got %s", describe(n))
		return
	}
	if into, ok := m.Interface().(*structpb.ListValue); ok {
		into.Values = d.structValues(n)
	}
}

func (d *decoder) structValues(n *yaml.Node) []*structpb.Value {
	values := make([]*structpb.Value, 0, len(n.Content))
	for i, each := range n.Content {
		d.path.push(step{index: i, kind: indexStep})
		values = append(values, d.value(each))
		d.path.pop()
	}
	return values
}

func (d *decoder) anyValue(n *yaml.Node, m protoreflect.Message) {
	if into, ok := m.Interface().(*structpb.Value); ok {
		into.Kind = d.valueOf(n).GetKind()
	}
}

// value reads what is free of a schema.
func (d *decoder) value(n *yaml.Node) *structpb.Value {
	target, ok := d.enter(n)
	if !ok {
		return structpb.NewNullValue()
	}
	defer d.leave(n)
	return d.valueOf(target)
}

func (d *decoder) valueOf(n *yaml.Node) *structpb.Value {
	switch {
	case n.Kind == yaml.MappingNode:
		return structpb.NewStructValue(&structpb.Struct{Fields: d.structFields(n)})
	case n.Kind == yaml.SequenceNode:
		return structpb.NewListValue(&structpb.ListValue{Values: d.structValues(n)})
	case IsNull(n):
		return structpb.NewNullValue()
	}
	if b, ok := truth(n); ok {
		return structpb.NewBoolValue(b)
	}
	if f, ok := number(n); ok && !isText(n) {
		return structpb.NewNumberValue(f)
	}
	if !isText(n) {
		d.fault(n, CodeValue, "expected a string, number, boolean, list or mapping, got %s", describe(n))
	}
	return structpb.NewStringValue(n.Value)
}

// any reads a message whose type stands beside its fields, under `@type`.
func (d *decoder) any(n *yaml.Node, m protoreflect.Message) {
	if IsNull(n) {
		return
	}
	into, ok := m.Interface().(*anypb.Any)
	if !ok {
		return
	}
	url, inner := d.typed(n)
	if inner == nil {
		return
	}
	if read := wellKnown(inner.Descriptor().FullName()); read != nil {
		d.wrapped(n, inner)
	} else {
		d.fields(n, inner, "@type")
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(inner.Interface())
	if err != nil {
		d.fault(n, CodeValue, "%v", err)
	}
	into.TypeUrl, into.Value = url, body
}

// typed returns an empty message of the type that `@type` names; nil where there is no such type.
func (d *decoder) typed(n *yaml.Node) (url string, m protoreflect.Message) {
	at := n
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == "@type" {
				at = Resolve(n.Content[i+1])
				url = at.Value
			}
		}
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	switch {
	case url == "":
		d.fault(at, CodeValue, `expected a mapping with "@type"`)
	case err != nil:
		d.fault(at, CodeUnknownType, "unknown type %q", clip(url))
	default:
		return url, kind.New()
	}
	return "", nil
}

// wrapped reads a well-known type within Any: it stands under `value`.
func (d *decoder) wrapped(n *yaml.Node, m protoreflect.Message) {
	for pair := range d.pairs(n) {
		d.path.push(step{name: pair.Key.Value})
		switch pair.Key.Value {
		case "@type":
		case "value":
			d.message(pair.Value, m)
		default:
			d.fault(pair.Key, CodeUnknown, "unknown field; known are @type, value")
		}
		d.path.pop()
	}
}
