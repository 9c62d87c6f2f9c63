package main

import (
	"encoding/json"
	"maps"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// object is a Note: all that was given of it, decoded. The store looks at its metadata, its spec's
// text and its status.
type object struct{ rest map[string]any }

// read reads and checks an object.
func read(t string, text []byte) (*object, error) {
	o := &object{}
	if t != table {
		return nil, unknown(t)
	}
	if err := decode(text, &o.rest); err != nil {
		return nil, err
	}
	spec, _ := o.rest["spec"].(map[string]any)
	words, isText := spec["text"].(string)
	switch {
	case o.rest["apiVersion"] != "example.com/v1":
		return nil, fail(sdk.StoreInvalid, "apiVersion", "is not example.com/v1")
	case o.rest["kind"] != "Note":
		return nil, fail(sdk.StoreInvalid, "kind", "is not Note")
	case o.namespace() == "" || o.name() == "":
		return nil, fail(sdk.StoreInvalid, "metadata", "lacks namespace or name")
	case !isText || words == "":
		return nil, fail(sdk.StoreInvalid, "spec.text", "is no text")
	}
	return o, nil
}

func (o *object) meta() map[string]any {
	m, _ := o.rest["metadata"].(map[string]any)
	return m
}

func (o *object) namespace() string { s, _ := o.meta()["namespace"].(string); return s }

func (o *object) name() string { s, _ := o.meta()["name"].(string); return s }

func (o *object) key() string { return o.namespace() + "/" + o.name() }

// text is the object as JSON; nil of none.
func (o *object) text() []byte {
	if o == nil {
		return nil
	}
	text, _ := json.Marshal(o.rest) // it was JSON
	return text
}

func (o *object) copy() *object {
	c := &object{}
	_ = json.Unmarshal(o.text(), &c.rest) // it was an object
	return c
}

// take makes a key as it is in another object.
func (o *object) take(key string, from *object) {
	delete(o.rest, key)
	if value, ok := from.rest[key]; ok {
		o.rest[key] = value
	}
}

// row is what is published: the spec, as JSON with sorted keys.
func (o *object) row() *sdk.Row {
	spec, _ := json.Marshal(o.rest["spec"])
	return &sdk.Row{Key: o.key(), Source: "memory", Labels: texts(o.meta()["labels"]), Annotations: texts(o.meta()["annotations"]), Payload: spec}
}

// texts are the entries of a map that are texts.
func texts(of any) map[string]string {
	m, _ := of.(map[string]any)
	out := make(map[string]string, len(m))
	for key, value := range m {
		if s, ok := value.(string); ok {
			out[key] = s
		}
	}
	return out
}

// merged is a JSON merge patch (RFC 7386): null takes a key away, objects are merged, all else is
// replaced.
func merged(into, patch map[string]any) map[string]any {
	out := maps.Clone(into)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range patch {
		inner, nested := value.(map[string]any)
		switch old, _ := out[key].(map[string]any); {
		case value == nil:
			delete(out, key)
		case nested:
			out[key] = merged(old, inner)
		default:
			out[key] = value
		}
	}
	return out
}
