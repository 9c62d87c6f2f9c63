package schema

import (
	"strconv"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// isOtherType reports whether a scalar is of another type to JSON than the field that takes it has
// by protobuf's mapping: a string for a number, a number for an enum.
func isOtherType(n *yaml.Node, fd protoreflect.FieldDescriptor) bool {
	if n == nil {
		return false
	}
	if n = protoyaml.Resolve(n); n.Kind != yaml.ScalarNode {
		return false
	}
	switch fd.Kind() {
	case protoreflect.EnumKind:
		return n.Tag == "!!int" || n.Tag == "!!float"
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.BoolKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return false
	}
	return n.Tag == "!!str"
}

// unread returns the value of a field that has its default, as it is written or because the text
// could not be read.
func unread(n *yaml.Node, fd protoreflect.FieldDescriptor) any {
	n = protoyaml.Resolve(n)
	if kind := fd.Kind(); kind == protoreflect.StringKind || kind == protoreflect.BytesKind {
		return shallow(n)
	}
	number, err := strconv.ParseInt(n.Value, 0, 64)
	switch fd.Kind() {
	case protoreflect.BoolKind:
		if n.Kind == yaml.ScalarNode && n.Style == 0 {
			return false
		}
		return shallow(n)
	case protoreflect.EnumKind:
		return shallow(n)
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		if number, err := strconv.ParseFloat(n.Value, 64); err == nil {
			return number
		}
		return shallow(n)
	}
	if err == nil {
		return number
	}
	return shallow(n)
}

// shallow returns a scalar as YAML has it, and of anything larger an empty one: enough to say that
// it is of the wrong type.
func shallow(n *yaml.Node) any {
	n = protoyaml.Resolve(n)
	switch {
	case n.Kind == yaml.MappingNode:
		return map[string]any{}
	case n.Kind == yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, each := range n.Content {
			if each = protoyaml.Resolve(each); each.Kind != yaml.ScalarNode {
				return []any{}
			}
			list = append(list, shallow(each))
		}
		return list
	case protoyaml.IsNull(n):
		return nil
	case n.Tag == "!!int":
		if number, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			return number
		}
	case n.Tag == "!!float":
		if number, err := strconv.ParseFloat(n.Value, 64); err == nil {
			return number
		}
	case n.Tag == "!!bool":
		return n.Value == "true"
	}
	return n.Value
}
