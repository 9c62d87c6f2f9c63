package envoyfilter

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// duration is the one message that replaces another whole: a merge of its two fields would mean
// nothing.
const duration = "google.protobuf.Duration"

// merge merges a message into another of its type, as protobuf does: scalars win, messages merge,
// lists grow, maps gain entries. With replace, lists that src has replace those of dst, at any
// depth.
func merge(dst, src proto.Message, replace bool) {
	mergeMessage(dst.ProtoReflect(), src.ProtoReflect(), replace)
}

func mergeMessage(dst, src protoreflect.Message, replace bool) {
	src.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList():
			mergeList(dst, f, v.List(), replace)
		case f.IsMap():
			to := dst.Mutable(f).Map()
			v.Map().Range(func(k protoreflect.MapKey, e protoreflect.Value) bool {
				to.Set(k, clone(f.MapValue(), e))
				return true
			})
		case f.Message() != nil && f.Message().FullName() != duration && dst.Has(f):
			mergeMessage(dst.Mutable(f).Message(), v.Message(), replace)
		default:
			dst.Set(f, clone(f, v))
		}
		return true
	})
	if len(src.GetUnknown()) > 0 {
		dst.SetUnknown(append(dst.GetUnknown(), src.GetUnknown()...))
	}
}

func mergeList(dst protoreflect.Message, f protoreflect.FieldDescriptor, from protoreflect.List, replace bool) {
	if replace {
		dst.Clear(f)
	}
	to := dst.Mutable(f).List()
	for i := range from.Len() {
		to.Append(clone(f, from.Get(i)))
	}
}

// clone copies a value of a field, so that patches stay as they are.
func clone(f protoreflect.FieldDescriptor, v protoreflect.Value) protoreflect.Value {
	if f.Message() == nil {
		return v
	}
	return protoreflect.ValueOfMessage(proto.Clone(v.Message().Interface()).ProtoReflect())
}

// mergeAny merges a wrapped message into another. One of another type, or that can't be read,
// replaces it.
func mergeAny(dst, src *anypb.Any) *anypb.Any {
	if dst == nil || dst.MessageName() != src.MessageName() {
		return src
	}
	to, err := dst.UnmarshalNew()
	if err != nil {
		return src
	}
	from, err := src.UnmarshalNew()
	if err != nil {
		return dst
	}
	merge(to, from, false)
	return encode.Wrap(to)
}
