package gateway

import (
	"encoding/json"
	"reflect"
	"strings"
)

// settled reports whether applying an object would change nothing: the live one says what is
// wished, and the fields that are ours are those that are wished, no more and no fewer. owned are
// our fields, as metadata.managedFields has them. Source: Kubernetes, "Server-Side Apply";
// structured-merge-diff, FieldsV1.
func settled(wish, owned, live map[string]any) bool {
	if !within(wish, live) {
		return false
	}
	bare := make(map[string]any, len(wish))
	for k, v := range wish {
		if k != "apiVersion" && k != "kind" {
			bare[k] = v
		}
	}
	if meta, ok := wish["metadata"].(map[string]any); ok {
		own := make(map[string]any, len(meta))
		for k, v := range meta {
			if k != "name" && k != "namespace" {
				own[k] = v
			}
		}
		bare["metadata"] = own
	}
	return owns(bare, owned)
}

// within reports whether another value has all that one says; defaults may have been added to it.
func within(one, other any) bool {
	switch one := one.(type) {
	case map[string]any:
		m, ok := other.(map[string]any)
		if !ok {
			return len(one) == 0 && other == nil
		}
		for k, v := range one {
			if !within(v, m[k]) {
				return false
			}
		}
		return true
	case []any:
		l, ok := other.([]any)
		if !ok || len(l) != len(one) {
			return false
		}
		for i := range one {
			if !within(one[i], l[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(one, other)
}

// owns reports whether fields are those of a value. A field without any below it is owned as a
// whole.
func owns(value any, fields map[string]any) bool {
	below := 0
	for k := range fields {
		if k != "." {
			below++
		}
	}
	if below == 0 {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		if below != len(value) {
			return false
		}
		for k, v := range value {
			f, ok := fields["f:"+k].(map[string]any)
			if !ok || !owns(v, f) {
				return false
			}
		}
		return true
	case []any:
		if below != len(value) {
			return false
		}
		for k, f := range fields {
			if k == "." {
				continue
			}
			f, _ := f.(map[string]any)
			if !element(value, k, f) {
				return false
			}
		}
		return true
	}
	return false
}

// element reports whether a list has the element that a key of fields means, and owns it.
func element(list []any, key string, fields map[string]any) bool {
	if text, ok := strings.CutPrefix(key, "v:"); ok {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			return false
		}
		for _, e := range list {
			if reflect.DeepEqual(e, v) {
				return true
			}
		}
		return false
	}
	text, ok := strings.CutPrefix(key, "k:")
	var keys map[string]any
	if !ok || json.Unmarshal([]byte(text), &keys) != nil {
		return false
	}
	for _, e := range list {
		if m, ok := e.(map[string]any); ok && within(keys, m) {
			return owns(m, fields)
		}
	}
	return false
}
