package etcd

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// object is one as JSON decodes it; numbers stay as they are written.
type object map[string]any

func invalid(field, format string, args ...any) error {
	return &sdk.StoreError{Code: sdk.StoreInvalid, Field: field, Reason: fmt.Sprintf(format, args...)}
}

// decode reads JSON that is an object.
func decode(text []byte) (object, error) {
	var o object
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		return nil, invalid("", "is no JSON object: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, invalid("", "is no JSON object: something follows it")
	}
	if o == nil {
		return nil, invalid("", "is no JSON object")
	}
	return o, nil
}

// stored reads a key's value, JSON or YAML, of a version.
func stored(i id, value []byte, version int64) (object, error) {
	text := value
	if !json.Valid(text) {
		var err error
		if text, err = yaml.YAMLToJSON(value); err != nil {
			return nil, invalid("", "what stands in etcd is neither JSON nor YAML: %v", err)
		}
	}
	o, err := decode(text)
	if err != nil {
		return nil, err
	}
	if o.meta() == nil {
		o["metadata"] = map[string]any{}
	}
	if o.meta()["namespace"] == nil && !i.cluster() {
		o.meta()["namespace"] = i.namespace
	}
	o.meta()["resourceVersion"] = strconv.FormatInt(version, 10)
	return o, nil
}

// given reads an object of a table that somebody wants to write, and returns what names it.
func given(table string, text []byte) (object, id, error) {
	o, err := decode(text)
	if err != nil {
		return nil, id{}, err
	}
	i := id{table: table}
	if err := o.is(i); err != nil {
		return nil, i, err
	}
	if i.namespace, _ = o.meta()["namespace"].(string); i.namespace == "" && !i.cluster() {
		return nil, i, invalid("metadata.namespace", "is missing")
	}
	if i.name, _ = o.meta()["name"].(string); i.name == "" {
		return nil, i, invalid("metadata.name", "is missing")
	}
	return o, i, nil
}

// is checks that the object is of the table of an id.
func (o object) is(i id) error {
	version, _ := o["apiVersion"].(string)
	if group, _, ok := bytes.Cut([]byte(version), []byte("/")); !ok || string(group) != i.group() {
		return invalid("apiVersion", "%q is none of %s", version, i.group())
	}
	if kind, _ := o["kind"].(string); kind != i.kind() {
		return invalid("kind", "%q is not %s", kind, i.kind())
	}
	if o.meta() == nil {
		return invalid("metadata", "is missing")
	}
	return nil
}

// meta is the object's metadata; nil: it has none.
func (o object) meta() map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}

// version is metadata.resourceVersion.
func (o object) version() string {
	v, _ := o.meta()["resourceVersion"].(string)
	return v
}

// text is the object as the store has it; version 0: without one, as it is kept.
func (o object) text(version int64) ([]byte, error) {
	out := maps.Clone(o)
	meta := maps.Clone(o.meta())
	delete(meta, "resourceVersion")
	if version > 0 {
		meta["resourceVersion"] = strconv.FormatInt(version, 10)
	}
	out["metadata"] = meta
	return json.Marshal(out)
}

// begin makes the object a new one.
func (o object) begin() {
	delete(o, "status")
	meta := o.meta()
	for _, key := range system {
		delete(meta, key)
	}
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	text := hex.EncodeToString(b)
	meta["uid"] = text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
	meta["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
}

// system are the fields of metadata that the store alone writes.
var system = []string{"uid", "creationTimestamp", "deletionTimestamp"}

// over makes of this object what it is after an update of another: the status and what the store
// alone writes stay as they were.
func (o object) over(was object) object {
	out := maps.Clone(o)
	out["metadata"] = maps.Clone(o.meta())
	keep(out, was, "status")
	for _, key := range system {
		keep(out.meta(), was.meta(), key)
	}
	return out
}

func keep(into, from map[string]any, key string) {
	if value, ok := from[key]; ok {
		into[key] = value
	} else {
		delete(into, key)
	}
}

// finalizers reports whether something wants to do work before the object goes.
func (o object) finalizers() bool {
	list, _ := o.meta()["finalizers"].([]any)
	return len(list) > 0
}

// deleted reports whether the object is to go once it has no finalizers.
func (o object) deleted() bool { return o.meta()["deletionTimestamp"] != nil }

// merge applies a JSON merge patch.
// Source: RFC 7386, section 2.
func merge(target any, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	now, _ := target.(map[string]any)
	out := maps.Clone(now)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(out, key)
		} else {
			out[key] = merge(out[key], value)
		}
	}
	return out
}

// first returns the first error among faults, as the store tells it.
func first(faults []kinds.Fault) error {
	for _, f := range faults {
		if kinds.Refuses([]kinds.Fault{f}) {
			reason := f.Message
			if f.Hint != "" {
				reason += "; " + f.Hint
			}
			return invalid(f.Field, "%s", reason)
		}
	}
	return nil
}
