// Package encode turns xDS messages into bytes that are the same whenever their meaning is.
package encode

import (
	"fmt"

	udpa "github.com/cncf/xds/go/udpa/type/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
)

const typePrefix = "type.googleapis.com/"

// Bytes encodes a message that keeps Envoy's own rules for its fields, and those of the messages in
// it. It panics with a *RefusedError on one that breaks them; the function that asked then keeps
// its last good result. What is wrapped in the message was checked when Any wrapped it.
func Bytes(m proto.Message) []byte { return must(Try(m)) }

// Patched is Bytes for a message in which there may be wrapped ones that Any has not seen: they are
// read and checked, too.
func Patched(m proto.Message) []byte { return must(try(m, envoyrules.CheckAll)) }

// Try is Bytes for those who keep what was good themselves: the error is a *RefusedError.
func Try(m proto.Message) ([]byte, error) { return try(m, envoyrules.Check) }

// TryPatched is Patched for those who keep what was good themselves: the error is a *RefusedError.
func TryPatched(m proto.Message) ([]byte, error) { return try(m, envoyrules.CheckAll) }

func try(m proto.Message, check func(proto.Message) error) ([]byte, error) {
	err := check(m)
	if err == nil {
		var b []byte
		if b, err = (proto.MarshalOptions{Deterministic: true}).Marshal(m); err == nil {
			return b, nil
		}
	}
	return nil, &RefusedError{m.ProtoReflect().Descriptor().FullName(), nameOf(m), err}
}

// Check is what Bytes would say of a message that is to be part of another: the error is a
// *RefusedError.
func Check(m proto.Message) error {
	if err := envoyrules.Check(m); err != nil {
		return &RefusedError{m.ProtoReflect().Descriptor().FullName(), nameOf(m), err}
	}
	return nil
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// Any wraps a message, and panics as Bytes does.
func Any(m proto.Message) *anypb.Any { return wrap(m, Bytes(m)) }

// Wrap is Any without the check, for messages that end up in one that Patched encodes.
func Wrap(m proto.Message) *anypb.Any {
	return wrap(m, must(try(m, func(proto.Message) error { return nil })))
}

func wrap(m proto.Message, body []byte) *anypb.Any {
	return &anypb.Any{TypeUrl: URL(m.ProtoReflect().Descriptor().FullName()), Value: body}
}

// TypedStruct wraps the JSON form of a message whose Go type no library ships: typeName is its full
// name.
func TypedStruct(typeName string, value map[string]any) *anypb.Any {
	return Any(&udpa.TypedStruct{TypeUrl: typePrefix + typeName, Value: Struct(value)})
}

// Struct makes a protobuf struct of plain values; it panics on values that JSON has no word for.
func Struct(value map[string]any) *structpb.Struct {
	s, err := structpb.NewStruct(value)
	if err != nil {
		panic(fmt.Errorf("encode struct: %w", err))
	}
	return s
}
