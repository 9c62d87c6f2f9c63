package encode

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// RefusedError says that a message would be refused by every proxy.
type RefusedError struct {
	Type protoreflect.FullName
	// Name of the resource; empty where the message has none.
	Name string
	Err  error
}

// Error implements error.
func (e *RefusedError) Error() string {
	what := string(e.Type)
	if e.Name != "" {
		what += " " + strconv.Quote(e.Name)
	}
	return fmt.Sprintf("Envoy would refuse %s: %v", what, e.Err)
}

// Unwrap returns the error's cause.
func (e *RefusedError) Unwrap() error { return e.Err }

func nameOf(m proto.Message) string {
	for _, field := range []protoreflect.Name{"name", "cluster_name"} {
		if f := m.ProtoReflect().Descriptor().Fields().ByName(field); f != nil && f.Kind() == protoreflect.StringKind && !f.IsList() {
			return m.ProtoReflect().Get(f).String()
		}
	}
	return ""
}
