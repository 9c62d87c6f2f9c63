package view

import (
	"bytes"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
)

// Same reports whether two resources of a type mean the same, however they are encoded: fields and
// keys of maps have no order, and what is in an Any is compared by its own meaning. A type that
// this binary doesn't know means its bytes.
func Same(typeURL string, a, b *Body) bool {
	if a.Exists() != b.Exists() {
		return false
	}
	if a.version == b.version { // absent ones have one version
		return true
	}
	if len(a.life()) != len(b.life()) || !bytes.Equal(a.life(), b.life()) {
		return false
	}
	x, errX := canonical(typeURL, a.Value())
	y, errY := canonical(typeURL, b.Value())
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// life is what stands before the resource's Any: with a name and a version, which have a fixed
// length, its time to live.
func (b *Body) life() []byte {
	head := b.fragment[:b.sotw]
	if i := bytes.Index(head, []byte(b.version)); i >= 0 {
		return head[i+len(b.version):]
	}
	return nil
}

// canonical is the one encoding that all of the same meaning have.
func canonical(typeURL string, value []byte) ([]byte, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByURL(typeURL)
	if err != nil {
		return value, nil
	}
	m := t.New()
	if err := proto.Unmarshal(value, m.Interface()); err != nil {
		return nil, err
	}
	if err := canonicalAnys(m); err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
}

// canonicalAnys makes what is in Anys canonical, however deep.
func canonicalAnys(m protoreflect.Message) error {
	if a, ok := m.Interface().(*anypb.Any); ok {
		value, err := canonical(a.TypeUrl, a.Value)
		a.Value = value
		return err
	}
	var failed error
	each := func(v protoreflect.Message) bool {
		failed = canonicalAnys(v)
		return failed == nil
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { return each(v.Message()) })
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				if !each(v.List().Get(i).Message()) {
					break
				}
			}
		case !f.IsMap() && !f.IsList() && f.Message() != nil:
			each(v.Message())
		}
		return failed == nil
	})
	return failed
}
