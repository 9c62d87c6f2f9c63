package rules

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// fieldError is what protoc-gen-validate says of a field.
type fieldError interface {
	error
	Field() string
	Reason() string
	Cause() error
}

// fieldRules checks what a patch's value says by the rules of Envoy's fields, wrapped messages too.
// Only what is there counts: a value that is merged need not be whole. So lists may be too short,
// and required fields away.
func (c *checker) fieldRules(at path, value *structpb.Value, m protoreflect.Message) {
	if a, ok := m.Interface().(*anypb.Any); ok {
		if wrapped, err := a.UnmarshalNew(); err == nil {
			c.fieldRules(at, value, wrapped.ProtoReflect())
		}
		return
	}
	if v, ok := m.Interface().(interface{ ValidateAll() error }); ok {
		c.brokenRules(at, value, m, v.ValidateAll())
	}
	for i := range m.Descriptor().Fields().Len() {
		if f := m.Descriptor().Fields().Get(i); m.Has(f) {
			key, inner := written(value, f)
			c.rulesBelow(at.field(key), inner, f, m.Get(f))
		}
	}
}

// rulesBelow checks the messages in a field.
func (c *checker) rulesBelow(at path, value *structpb.Value, f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case f.IsMap() && f.MapValue().Message() != nil:
		entries := value.GetStructValue().GetFields()
		for _, k := range sorted(entries) {
			if entry := v.Map().Get(protoreflect.ValueOfString(k).MapKey()); f.MapKey().Kind() == protoreflect.StringKind && entry.IsValid() {
				c.fieldRules(at.key(k), entries[k], entry.Message())
			}
		}
	case f.Message() == nil || f.IsMap():
	case f.IsList():
		elements := value.GetListValue().GetValues()
		for i := range min(v.List().Len(), len(elements)) {
			c.fieldRules(at.index(i), elements[i], v.List().Get(i).Message())
		}
	default:
		c.fieldRules(at, value, v.Message())
	}
}

// brokenRules tells the rules that a message's own fields break, as far as they are there.
func (c *checker) brokenRules(at path, value *structpb.Value, m protoreflect.Message, err error) {
	all, ok := err.(interface{ AllErrors() []error })
	if !ok {
		return
	}
	for _, err := range all.AllErrors() {
		e, ok := err.(fieldError)
		if !ok || e.Cause() != nil {
			continue // of a message below, which is looked at by itself
		}
		name, _, element := strings.Cut(e.Field(), "[")
		f := fieldNamed(m.Descriptor(), name)
		if f == nil || !m.Has(f) || !element && (f.IsList() || f.IsMap()) {
			continue
		}
		key, _ := written(value, f)
		c.fail(refusedValue, at.field(key), "Envoy filter: Envoy would refuse %s.%s: %s", m.Descriptor().Name(), e.Field(), e.Reason())
	}
}

// fieldNamed returns the field of a Go name.
func fieldNamed(d protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	for i := range d.Fields().Len() {
		if f := d.Fields().Get(i); strings.EqualFold(strings.ReplaceAll(string(f.Name()), "_", ""), strings.ReplaceAll(name, "_", "")) {
			return f
		}
	}
	return nil
}

// written returns the key under which a field stands in a value, and what stands there.
func written(value *structpb.Value, f protoreflect.FieldDescriptor) (string, *structpb.Value) {
	fields := value.GetStructValue().GetFields()
	if v, ok := fields[f.JSONName()]; ok {
		return f.JSONName(), v
	}
	return string(f.Name()), fields[string(f.Name())]
}
