// Package encode turns xDS messages into bytes that are the same whenever their meaning is.
package encode

import (
	"fmt"

	udpa "github.com/cncf/xds/go/udpa/type/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

const typePrefix = "type.googleapis.com/"

// Bytes encodes a message. It panics on text that is not UTF-8, which no decoded configuration holds; the function that asked
// then keeps its last good result.
func Bytes(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().FullName(), err))
	}
	return b
}

// Any wraps a message.
func Any(m proto.Message) *anypb.Any {
	return &anypb.Any{TypeUrl: typePrefix + string(m.ProtoReflect().Descriptor().FullName()), Value: Bytes(m)}
}

// TypedStruct wraps the JSON form of a message whose Go type no library ships: typeName is its full name.
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
