// Package registrytest is what tests of registries share: of their configs and READMEs, of the rows
// that they make, and of what they publish while a server does this and that.
package registrytest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
)

// Readme is what a registry's README.md is checked by: its examples are two entries of
// plugins.yaml, something that the registry's server has, and what becomes of that.
type Readme struct {
	Schema string
	// Parse reads a config. Secret is a field of it that an example takes from elsewhere, which the
	// core reads before.
	Parse  func(config []byte) error
	Secret string
	// Describe says what becomes of what the server has.
	Describe func(example string) string
	// Reasons why instances are lost, all of which the README explains.
	Reasons []string
}

// Check runs the examples of README.md: two configs, what a server has, and what becomes of it.
func (r Readme) Check(t *testing.T) {
	t.Helper()
	blocks, _ := readme.Example(t, 4)
	for _, b := range blocks[:2] {
		config, err := b.Config()
		if err != nil {
			t.Fatal(err)
		}
		config = r.resolved(t, config)
		CheckSchema(t, r.Schema, config)
		if err := r.Parse(config); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(blocks[3].Text, r.Describe(blocks[2].Text)); diff != "" {
		t.Errorf("(-README +got):\n%s", diff)
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range r.Reasons {
		if !strings.Contains(string(text), "`"+reason+"`") {
			t.Errorf("the README doesn't say what %s is", reason)
		}
	}
}

// Names are the keys of a map, as text.
func Names[K ~string, V any](of map[K]V) (all []string) {
	for name := range of {
		all = append(all, string(name))
	}
	return all
}

// resolved is a config in which a secret stands in the place of where it is from.
func (r Readme) resolved(t *testing.T, config []byte) []byte {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(config, &fields); err != nil {
		t.Fatal(err)
	}
	if _, elsewhere := fields[r.Secret].(map[string]any); !elsewhere {
		return config
	}
	fields[r.Secret] = "read"
	out, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// CheckSchema checks a config against a plugin's schema.
func CheckSchema(t *testing.T, schema string, config []byte) {
	t.Helper()
	var document, instance any
	if err := json.Unmarshal([]byte(schema), &document); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(config, &instance); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(instance); err != nil {
		t.Error(err)
	}
}

// CheckDefaults checks that a schema has the fields of a config, the struct that JSON is read into,
// and its defaults.
func CheckDefaults(t *testing.T, schema string, defaults any) {
	t.Helper()
	usual, err := json.Marshal(defaults)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(usual, &want); err != nil {
		t.Fatal(err)
	}
	var s property
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		t.Fatal(err)
	}
	s.check(t, "", want)
}

// property is a part of a schema.
type property struct {
	Default    any
	Properties map[string]property
}

func (p property) check(t *testing.T, at string, want map[string]any) {
	t.Helper()
	for name, value := range want {
		one, ok := p.Properties[name]
		if !ok {
			t.Errorf("the schema lacks %s%s", at, name)
		}
		if inner, ok := value.(map[string]any); ok && len(one.Properties) > 0 {
			one.check(t, at+name+".", inner)
		} else if one.Default != nil && !cmp.Equal(one.Default, value) {
			t.Errorf("%s%s: the schema's default is %v, not %v", at, name, one.Default, value)
		}
	}
	if len(p.Properties) != len(want) {
		t.Errorf("%s: %d properties, %d fields", at, len(p.Properties), len(want))
	}
}
