package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// object is one of the API server's, as far as its status is written: all else stays as it is.
type object struct {
	fields map[string]json.RawMessage
	meta   metadata
	status fields
}

// fields are those of a JSON object. Numbers are json.Number.
type fields = map[string]any

// metadata is what counts of an object's.
type metadata struct {
	Namespace, Name   string
	Generation        int64
	Labels            map[string]string
	DeletionTimestamp string
	ManagedFields     []managed
}

// managed says which fields a manager was the last to write. Source: Kubernetes, "Server-Side
// Apply", "Field management".
type managed struct {
	Manager, Subresource string
	FieldsV1             fields
}

// mostText is how large an object may be, in bytes: more than an API server keeps.
const mostText = 4 << 20

func decode(text []byte, into any) error {
	if len(text) > mostText {
		return fmt.Errorf("%d bytes are too many", len(text))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// read reads an object.
func read(text []byte) (*object, error) {
	o := &object{}
	if err := decode(text, &o.fields); err != nil {
		return nil, err
	}
	for name, into := range map[string]any{"metadata": &o.meta, "status": &o.status} {
		if part := o.fields[name]; len(part) > 0 {
			if err := decode(part, into); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if o.status == nil {
		o.status = fields{}
	}
	return o, nil
}

// with returns the object's text with another status.
func (o *object) with(status fields) ([]byte, error) {
	text, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(o.fields)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	all["status"] = text
	return json.Marshal(all)
}

// list is a list of objects; what is none in it is left out.
func list(of any) (out []fields) {
	all, _ := of.([]any)
	for _, one := range all {
		if f, ok := one.(fields); ok {
			out = append(out, f)
		}
	}
	return out
}

// anyOf is a list as JSON has it.
func anyOf(of []fields) []any {
	out := make([]any, len(of))
	for i, f := range of {
		out[i] = f
	}
	return out
}

func word(f fields, name string) string { s, _ := f[name].(string); return s }

// owns reports whether Coxswain was the last to write a part of the status, and nobody else wrote
// anything in it since.
func (o *object) owns(path ...string) bool {
	ours := false
	for _, m := range o.meta.ManagedFields {
		if m.Subresource != "status" || !has(m.FieldsV1, append([]string{"f:status"}, path...)) {
			continue
		}
		if m.Manager != manager {
			return false
		}
		ours = true
	}
	return ours
}

// writtenBy reports whether somebody was the last to write a part of the status.
func (o *object) writtenBy(who string, path ...string) bool {
	return slices.ContainsFunc(o.meta.ManagedFields, func(m managed) bool {
		return m.Manager == who && m.Subresource == "status" && has(m.FieldsV1, append([]string{"f:status"}, path...))
	})
}

func has(f fields, path []string) bool {
	for i, name := range path {
		next, ok := f[name]
		if !ok {
			return false
		}
		if i == len(path)-1 {
			return true
		}
		if f, ok = next.(fields); !ok {
			return false
		}
	}
	return false
}

// keyed is how managed fields name an element of a list that has a key.
func keyed(key, value string) string {
	text, _ := json.Marshal(map[string]string{key: value}) // strings can be encoded
	return "k:" + string(text)
}

// same reports whether two values are equal as JSON.
func same(a, b any) bool {
	x, err := json.Marshal(a)
	y, wrong := json.Marshal(b)
	return err == nil && wrong == nil && bytes.Equal(x, y)
}

func without(of []fields, drop func(fields) bool) []fields {
	return slices.DeleteFunc(slices.Clone(of), drop)
}
