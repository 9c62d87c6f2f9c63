package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

func generated(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../entry.go")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := generate(text)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestFresh(t *testing.T) {
	have, err := os.ReadFile("../../../" + target)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, generated(t)) {
		t.Errorf("%s is stale: run make generate", target)
	}
}

// The schema takes what the host takes, and refuses most of what it refuses: all but what concerns
// more than one key.
func TestAgreesWithParse(t *testing.T) {
	schema := compile(t)
	defaults, err := os.ReadFile("../../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(plain(t, defaults)); err != nil {
		t.Errorf("the default set: %v", err)
	}
	archive, err := txtar.ParseFile("../testdata/mistakes.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		switch strings.TrimSuffix(file.Name, ".yaml") {
		case "toplevel", "list", "hints", "types", "missing", "values":
			if schema.Validate(plain(t, file.Data)) == nil {
				t.Errorf("%s is taken", file.Name)
			}
		}
	}
}

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(generated(t)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("plugins.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("plugins.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func plain(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
