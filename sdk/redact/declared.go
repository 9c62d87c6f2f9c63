package redact

import (
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// declared are what programs say of messages that have no annotations.
var declared struct {
	sync.RWMutex
	fields map[protoreflect.FullName]bool
	rows   map[string]protoreflect.FullName
}

// Declare says that fields are secret with all that is below them, by their full names, such as
// example.v1.Account.pin.
func Declare(fields ...protoreflect.FullName) {
	declared.Lock()
	defer declared.Unlock()
	if declared.fields == nil {
		declared.fields = map[protoreflect.FullName]bool{}
	}
	for _, f := range fields {
		declared.fields[f] = true
	}
}

// DeclareRows says that the payload of a table's rows is a message, by its full name. Of others it
// is found out by how they look.
func DeclareRows(table string, message protoreflect.FullName) {
	declared.Lock()
	defer declared.Unlock()
	if declared.rows == nil {
		declared.rows = map[string]protoreflect.FullName{}
	}
	declared.rows[table] = message
}

// environment has the values of an extension's environment, of which Envoy does not say that they
// are sensitive.
const environment = "envoy.extensions.wasm.v3.EnvironmentVariables.key_values"

func isDeclared(field protoreflect.FullName) bool {
	if field == environment {
		return true
	}
	declared.RLock()
	defer declared.RUnlock()
	return declared.fields[field]
}

// find returns the descriptor of a type by its URL or full name; nil: this program doesn't know it.
func find(typeURL string) protoreflect.MessageDescriptor {
	name := protoreflect.FullName(typeURL[strings.LastIndexByte(typeURL, '/')+1:])
	if t, err := protoregistry.GlobalTypes.FindMessageByName(name); err == nil {
		return t.Descriptor()
	}
	return nil
}

// rowsOf returns the descriptor of a table's payload; nil: it is not known.
func rowsOf(table string) protoreflect.MessageDescriptor {
	declared.RLock()
	name, ok := declared.rows[table]
	declared.RUnlock()
	if !ok {
		return nil
	}
	return find(string(name))
}
