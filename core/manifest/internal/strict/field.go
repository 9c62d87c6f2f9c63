package strict

import (
	"reflect"
	"strings"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
)

// Field is a key that a struct takes.
type Field struct {
	Key string
	// Name and Index are the Go field's.
	Name  string
	Index []int
	Type  reflect.Type
	// Enum lists the legal words, comma separated; empty: any.
	Enum string
	Need bool
}

// Fields returns the keys of a struct type, in its order. Schema generators use it too, so that
// both tell the same.
func Fields(t reflect.Type) []Field {
	var fields []Field
	for f := range t.Fields() {
		key := f.Tag.Get("yaml")
		if key == "" || key == "-" {
			continue
		}
		fields = append(fields, Field{key, f.Name, f.Index, f.Type, enum(f), f.Tag.Get("need") == "true"})
	}
	return fields
}

// enum lists the legal words of a field: those of its tag, or of its type.
func enum(f reflect.StructField) string {
	if w, ok := reflect.Zero(f.Type).Interface().(interface{ Words() []string }); ok && f.Type.Kind() == reflect.String {
		return strings.Join(w.Words(), ",")
	}
	return f.Tag.Get("enum")
}

func keys(fields []Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Key
	}
	return names
}

// Hint is "; did you mean `X`?" if one of the words is near, otherwise a list of them.
func Hint(got string, words []string) string {
	if hint := near(got, words); hint != "" {
		return hint
	}
	return "; there is " + strings.Join(words, ", ")
}

// near is "; did you mean `X`?", or nothing.
func near(got string, words []string) string {
	if best := nearest.Name(got, words); best != "" {
		return "; did you mean `" + best + "`?"
	}
	return ""
}
