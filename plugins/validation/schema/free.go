package schema

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// free returns what has no schema of its own.
func free(m protoreflect.Message) any {
	switch v := m.Interface().(type) {
	case *structpb.Struct:
		return v.AsMap()
	case *structpb.ListValue:
		return v.AsSlice()
	case *structpb.Value:
		return v.AsInterface()
	case *anypb.Any:
		return map[string]any{"@type": v.GetTypeUrl()}
	}
	return map[string]any{}
}
