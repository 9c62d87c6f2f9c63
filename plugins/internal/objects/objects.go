// Package objects is for kinds of Kubernetes whose spec stands in a row as JSON, with the fields of
// the API's own Go type: how an object becomes a row's payload, and a row an object again.
//
// A kind's table is named GROUP/KIND. A row's key is NAMESPACE/NAME, or NAME for kinds without a
// namespace.
package objects

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Kind is a kind of an API.
type Kind struct {
	// Table is GROUP/KIND.
	Table string
	// Versions that are read, the one to prefer first. They have the same Go type.
	Versions []string
	// Cluster: its objects are in no namespace.
	Cluster bool
	// Spec returns a pointer to an empty spec.
	Spec func() any
}

// Group returns the API group, Name the kind's name.
func (k Kind) Group() string { group, _, _ := strings.Cut(k.Table, "/"); return group }

// Name returns the kind's name, such as HTTPRoute.
func (k Kind) Name() string { _, name, _ := strings.Cut(k.Table, "/"); return name }

// Serves reports whether a version of the kind is read.
func (k Kind) Serves(version string) bool { return slices.Contains(k.Versions, version) }

// Tables returns the tables of kinds, in their order.
func Tables(list []Kind) []string {
	out := make([]string, 0, len(list))
	for _, k := range list {
		out = append(out, k.Table)
	}
	return out
}

// Lookup returns the kind of a table among some.
func Lookup(list []Kind, table string) (Kind, bool) {
	for _, k := range list {
		if k.Table == table {
			return k, true
		}
	}
	return Kind{}, false
}

// Key returns the key of an object's row.
func (k Kind) Key(namespace, name string) string {
	if k.Cluster {
		return name
	}
	return namespace + "/" + name
}

// Encode returns the payload of a row for a spec that is JSON. The error's path says which field
// has another type than the API's; it is empty where that is not known.
func (k Kind) Encode(spec []byte) (payload []byte, path string, err error) {
	into := k.Spec()
	if err := json.Unmarshal(spec, into); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, "spec." + wrong.Field, fmt.Errorf("expected %s, got %s", wrong.Type.Kind(), wrong.Value)
		}
		return nil, "", err
	}
	payload, err = json.Marshal(into)
	return payload, "", err
}

// Object is an object of a kind, as a row has it.
type Object[S any] struct {
	Namespace, Name string
	Row             *pb.Row
	Spec            S
}

// Decode reads a row.
func Decode[S any](row *pb.Row) (*Object[S], error) {
	o := &Object[S]{Row: row}
	var inside bool
	if o.Namespace, o.Name, inside = strings.Cut(row.Key, "/"); !inside {
		o.Namespace, o.Name = "", row.Key
	}
	if err := json.Unmarshal(row.Payload, &o.Spec); err != nil {
		return nil, fmt.Errorf("row %s (%s) can't be read: %w", row.Key, row.Source, err)
	}
	return o, nil
}

// Same reports whether two objects say the same, at the same place.
func Same[S any](a, b *Object[S]) bool { return a == b || SameRow(a.Row, b.Row) }

// SameRow reports whether two rows say the same, at the same place.
func SameRow(a, b *pb.Row) bool {
	return a == b || a.Key == b.Key && a.Source == b.Source && a.Created == b.Created && a.Undated == b.Undated &&
		bytes.Equal(a.Payload, b.Payload) && sameTexts(a.Labels, b.Labels) && sameTexts(a.Annotations, b.Annotations)
}

func sameTexts(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}
