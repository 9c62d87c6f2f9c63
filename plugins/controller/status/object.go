package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// object is one of the API server's, as far as its status is written.
type object struct {
	apiVersion, kind string
	meta             metadata
	status           fields
}

// fields are those of a JSON object. Numbers are json.Number.
type fields = map[string]any

// metadata is what counts of an object's.
type metadata struct {
	Namespace, Name      string
	UID, ResourceVersion string
	Generation           int64
	Labels               map[string]string
	DeletionTimestamp    string
	ManagedFields        []managed
}

// managed says which fields a manager was the last to write. Source: Kubernetes, "Server-Side
// Apply", "Field management". The fields are read where somebody asks for them.
type managed struct {
	Manager, Subresource string
	FieldsV1             json.RawMessage
}

// has reports whether a part of the status is among the fields.
func (m *managed) has(path []string) bool {
	if m.Subresource != "status" || len(m.FieldsV1) == 0 {
		return false
	}
	var f fields
	return decode(m.FieldsV1, &f) == nil && has(f, append([]string{"f:status"}, path...))
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
	var o struct {
		APIVersion, Kind string
		Metadata         metadata
		Status           fields
	}
	if err := decode(text, &o); err != nil {
		return nil, err
	}
	if o.Status == nil {
		o.Status = fields{}
	}
	return &object{o.APIVersion, o.Kind, o.Metadata, o.Status}, nil
}

// with returns what is sent for the object to have another status: which object it is, in which
// version, and the status. All else is not taken where a status is.
func (o *object) with(status fields) ([]byte, error) {
	type named struct {
		Namespace       string `json:"namespace,omitempty"`
		Name            string `json:"name"`
		UID             string `json:"uid,omitempty"`
		ResourceVersion string `json:"resourceVersion"`
	}
	return json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   named  `json:"metadata"`
		Status     fields `json:"status"`
	}{o.apiVersion, o.kind, named{o.meta.Namespace, o.meta.Name, o.meta.UID, o.meta.ResourceVersion}, status})
}

// hasStatus reports whether an object has exactly a status.
func hasStatus(text []byte, status fields) bool {
	var o struct{ Status json.RawMessage }
	want, err := json.Marshal(status)
	return err == nil && decode(text, &o) == nil && bytes.Equal(o.Status, want)
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
		if !m.has(path) {
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
		return m.Manager == who && m.has(path)
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
