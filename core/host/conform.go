package host

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	words "golang.org/x/text/message"
)

// conforms checks an entry's config against the schema that its plugin declared. What is wrong is named by its place in plugins.yaml.
func conforms(e *manifest.Entry, with *filled, schema []byte) error {
	if len(schema) == 0 || len(with.config) == 0 {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return fmt.Errorf("the schema of its config is no JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // a schema refers to nothing outside of itself
	const name = "config.json"
	if err := c.AddResource(name, doc); err != nil {
		return fmt.Errorf("the schema of its config: %w", err)
	}
	s, err := c.Compile(name)
	if err != nil {
		return fmt.Errorf("the schema of its config: %w", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(with.config))
	if err != nil {
		return err
	}
	var wrong *jsonschema.ValidationError
	if err := s.Validate(value); !errors.As(err, &wrong) {
		return err
	}
	for len(wrong.Causes) > 0 {
		wrong = wrong.Causes[0]
	}
	field := fieldPath(wrong.InstanceLocation)
	reason := "the secret is not what it takes"
	if !with.secrets[field] {
		reason = wrong.ErrorKind.LocalizedString(words.NewPrinter(language.English))
	}
	return &RefusedError{Field: field, Reason: reason + " (the schema that it declares)", At: e.PlaceOf(field)}
}

// fieldPath writes a place in the config as plugins do: services[0].ports.
func fieldPath(location []string) string {
	var b strings.Builder
	for _, part := range location {
		if _, err := strconv.Atoi(part); err == nil {
			b.WriteString("[" + part + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}
