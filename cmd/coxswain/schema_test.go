package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

func TestSchemaIsFresh(t *testing.T) {
	have, err := os.ReadFile("../../docs/plugins.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if want, err := fullSchema(); err != nil || !bytes.Equal(have, want) {
		t.Errorf("docs/plugins.schema.json is stale: run make generate (%v)", err)
	}
}

// TestSchema shows what an editor would say.
func TestSchema(t *testing.T) {
	text, err := fullSchema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
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
	for _, test := range []struct{ plugins, wrong string }{
		{string(coxswain.DefaultSet()), ""},
		{"plugins: [{name: a, kind: config, builtin: config/file, config: {dir: {env: DIR}, settle: 1s}}]", ""},
		{"plugins: [{name: a, kind: config, builtin: config/file, config: {dir: 7}}]", "config/dir"},
		{"plugins: [{name: a, kind: config, builtin: config/file, config: {dri: x}}]", "'dri'"},
		{"plugins: [{name: a, kind: config, builtin: config/fil}]", "builtin"},
		{"plugins: [{name: a, kind: registry, process: {command: x}, config: {any: thing}}]", ""},
		{"plugins: [{name: a, kind: config, builtin: config/file, process: {command: x}}]", "/process"},
		{"plugins: [{name: a, kind: config}]", "builtin"},
	} {
		var value any
		if err := yaml.Unmarshal([]byte(test.plugins), &value); err != nil {
			t.Fatal(err)
		}
		err := schema.Validate(value)
		if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s\ngot  %v\nwant %q in it", test.plugins, err, test.wrong)
		}
	}
}
