package host

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/google/jsonschema-go/jsonschema"
)

// conforms checks an entry's config against the schema that its plugin declared. What is wrong is
// named by its place in plugins.yaml.
func conforms(e *manifest.Entry, with *filled, schema []byte) error {
	if len(schema) == 0 || len(with.config) == 0 {
		return nil
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return fmt.Errorf("the schema of its config: %w", err)
	}
	resolved, err := s.Resolve(nil) // it refers to nothing outside of itself
	if err != nil {
		return fmt.Errorf("the schema of its config: %w", err)
	}
	var value any
	if err := json.Unmarshal(with.config, &value); err != nil {
		return err
	}
	if err = resolved.Validate(value); err == nil {
		return nil
	}
	field, reason := locate(&s, &s, value, err)
	if with.secrets[field] {
		reason = "the secret is not what it takes"
	}
	return &RefusedError{Field: field, Reason: reason + " (the schema that it declares)", At: e.PlaceOf(field)}
}

// locate returns the innermost field of a value that its part of a schema refuses, as plugins write
// it (services[0].ports), and why. err is why the value itself is refused.
func locate(root, s *jsonschema.Schema, value any, err error) (field, reason string) {
	inner := func(name string, part *jsonschema.Schema, value any) bool {
		why := refuses(root, part, value)
		if why != nil {
			field, reason = locate(root, part, value, why)
			if field != "" && field[0] != '[' {
				field = "." + field
			}
			field = name + field
		}
		return why != nil
	}
	s = referred(root, s)
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if part := s.Properties[name]; part != nil && inner(name, part, value[name]) {
				return field, reason
			}
		}
	case []any:
		for i, item := range value {
			if s.Items != nil && inner("["+strconv.Itoa(i)+"]", s.Items, item) {
				return field, reason
			}
		}
	}
	reason = err.Error()
	for strings.HasPrefix(reason, "validating ") { // a place in the schema
		_, reason, _ = strings.Cut(reason, ": ")
	}
	return "", reason
}

// referred returns the root's definition that a schema refers to, or the schema itself.
func referred(root, s *jsonschema.Schema) *jsonschema.Schema {
	dir, name := path.Split(s.Ref)
	for at, definitions := range map[string]map[string]*jsonschema.Schema{"#/$defs/": root.Defs, "#/definitions/": root.Definitions} {
		if dir == at && definitions[name] != nil {
			return definitions[name]
		}
	}
	return s
}

// refuses returns why a part of a schema refuses a value. It may refer to the root's definitions.
func refuses(root, part *jsonschema.Schema, value any) error {
	own := part.CloneSchemas()
	if own.Defs == nil && own.Definitions == nil {
		whole := root.CloneSchemas()
		own.Defs, own.Definitions = whole.Defs, whole.Definitions
	}
	resolved, err := own.Resolve(nil)
	if err != nil { // it refers to something else; what holds it is refused
		return nil
	}
	return resolved.Validate(value)
}
