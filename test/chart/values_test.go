package chart_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// internal is the key below which istiod's chart has all of its defaults.
const internal = "_internal_defaults_do_not_set"

// TestCopied: a copy of istiod's values installs. Below the key that they have there it says
// nothing; at the top it says what istiod has, but for the image.
func TestCopied(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(source + "/files/istiod-defaults.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var usual map[string]any
	if err := yaml.Unmarshal(text, &usual); err != nil {
		t.Fatal(err)
	}
	copied := values(t, map[string]any{internal: usual})
	if is, want := objects(t, "--values", copied), objects(t); !maps.EqualFunc(is, want, equal) {
		t.Errorf("with istiod's values as they are there are %s, not %s", is, want)
	}
	top := values(t, usual)
	if is := objects(t, "--values", top); !strings.Contains(string(is["HorizontalPodAutoscaler/istiod"]), `"minReplicas":1`) ||
		!strings.Contains(string(is["Deployment/istiod"]), image) {
		t.Errorf("with istiod's values at the top there are %s and %s", is["HorizontalPodAutoscaler/istiod"], is["Deployment/istiod"])
	}
	if _, err := helm(t, "template", "istiod", source, "--values", top); err == nil || !strings.Contains(err.Error(), "no image is published") {
		t.Errorf("without an image: %v", err)
	}
	// What an upgrade with --reuse-values has.
	usual = map[string]any{internal: usual}
	for key := range keys(t) {
		usual[key] = nil
	}
	if _, err := template(t, "--values", values(t, usual)); err == nil || !strings.Contains(err.Error(), "--reset-then-reuse-values") {
		t.Errorf("without the chart's own values: %v", err)
	}
}

// TestNull: a value that is null has its default, and of what may be left out there is nothing.
func TestNull(t *testing.T) {
	t.Parallel()
	all, want := map[string]any{}, objects(t)
	var none func(of map[string]any, path ...string)
	none = func(of map[string]any, path ...string) {
		for key, value := range of {
			if slices.Contains([]string{"resources", "cpu", "memory", "seccompProfile"}, key) {
				continue
			}
			if below, ok := value.(map[string]any); ok {
				none(below, append(path, key)...)
				if len(below) > 0 { // alone, as among all of them it would hide those below it
					if is := objects(t, "--set", strings.Join(append(path, key), ".")+"=null"); !maps.EqualFunc(is, want, equal) {
						t.Errorf("with %s %s=null there are %s, not %s", path, key, is, want)
					}
					continue
				}
			}
			at := all
			for _, key := range path {
				if at[key] == nil {
					at[key] = map[string]any{}
				}
				at = at[key].(map[string]any)
			}
			at[key] = nil
		}
	}
	none(keys(t))
	if is := objects(t, "--values", values(t, all)); !maps.EqualFunc(is, want, equal) {
		t.Errorf("where each is null there are %s, not %s", is, want)
	}
	if is := objects(t, "--values", values(t, map[string]any{"pilot": all})); !maps.EqualFunc(is, want, equal) {
		t.Errorf("where each is null below pilot there are %s, not %s", is, want)
	}
	for set, not := range map[string]string{
		"resources.requests.memory=null": `"512Mi"`, "cpu=null": `"name":"cpu"`, "env.A=null": `"A"`, "podLabels.a=null": `"a"`,
	} {
		is := objects(t, "--set", set)
		if got := string(is["Deployment/istiod"]) + string(is["HorizontalPodAutoscaler/istiod"]); strings.Contains(got, not) {
			t.Errorf("with %s there are %s", set, got)
		}
	}
}

// TestIstiods: what templates of istiod's chart read is a value here, or refused with a hint, and
// so is what its profiles set. The defaults that are passed over are that chart's.
func TestIstiods(t *testing.T) {
	need.All(t)
	t.Parallel()
	chart := filepath.Join(istios(t), "istio-control/istio-discovery")
	var usual, theirs map[string]any
	for file, to := range map[string]*map[string]any{source + "/files/istiod-defaults.yaml": &usual, chart + "/values.yaml": &theirs} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(text, to)
		}
		if err != nil {
			t.Fatal(file, err)
		}
	}
	a, _ := json.Marshal(usual)
	b, _ := json.Marshal(theirs[internal])
	if string(a) != string(b) {
		t.Errorf("istiod-defaults.yaml has %s, not %s", a, b)
	}
	text, err := os.ReadFile(source + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var read int
	for _, pattern := range []string{"templates/*", "files/*"} {
		files, _ := filepath.Glob(filepath.Join(chart, pattern))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`\.Values\)?((?:\)?\.[A-Za-z0-9_]+)+)`).FindAllStringSubmatch(string(text), -1) {
				path := strings.Split(strings.ReplaceAll(strings.TrimPrefix(m[1], "."), ")", ""), ".")
				if path[0] == "_original" { // what the chart itself keeps there
					continue
				}
				read++
				if !taken(schema, path) {
					t.Errorf("%s reads %q, which is unknown here: take it, or refuse it with a hint (files/refused.yaml)", file, path)
				}
			}
		}
	}
	profiles, _ := filepath.Glob(filepath.Join(chart, "files/profile-*"))
	if read < 300 || len(profiles) < 10 {
		t.Errorf("it reads %d values, and has the profiles %q", read, profiles)
	}
	for _, file := range profiles {
		_, err := template(t, "--values", file)
		if err != nil && !strings.Contains(err.Error(), " is a value of istiod's chart that means nothing here: ") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// taken reports whether a schema has a value at a path, or one above it that may be anything.
func taken(schema map[string]any, path []string) bool {
	if len(path) == 0 || schema["$ref"] == "#" {
		return true
	}
	properties, _ := schema["properties"].(map[string]any)
	if next, ok := properties[path[0]].(map[string]any); ok {
		return taken(next, path[1:])
	}
	return schema["additionalProperties"] != false
}

// keys are the chart's values.
func keys(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(source + "/values.yaml")
	var v map[string]any
	if err == nil {
		err = yaml.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// values writes a file of values, and returns its path.
func values(t *testing.T, v map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func equal(a, b json.RawMessage) bool { return string(a) == string(b) }
