package host

import (
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fill := func(config string) (*filled, *manifest.Entry, error) {
		t.Helper()
		set, err := manifest.Parse(filepath.Join(dir, "plugins.yaml"),
			[]byte("plugins:\n  - {name: a, kind: registry, builtin: registry/a, config: "+config+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		ln := &launcher{set: set, variables: []string{"USER=me=you"}}
		f, err := ln.fill(set.Plugins[0])
		return f, set.Plugins[0], err
	}
	for config, want := range map[string]string{
		"{a: {file: token}, b: [{env: USER}], n: 12345678901234567}": `{"a":"hunter2","b":["me=you"],"n":12345678901234567}`,
		"{file: token}":                      `{"file":"token"}`, // the config itself is the plugin's own
		"{a: {file: token, mode: x}}":        `{"a":{"file":"token","mode":"x"}}`,
		"{a: {mode: token}}":                 `{"a":{"mode":"token"}}`,
		"{a: {file: 5}, b: {file: [token]}}": `{"a":{"file":5},"b":{"file":["token"]}}`,
	} {
		if f, _, err := fill(config); err != nil || string(f.config) != want {
			t.Errorf("%s: %s, %v", config, f.config, err)
		}
	}
	for config, want := range map[string]string{
		"{a: {file: nowhere}}": "plugins.yaml:2:64): a: open ",
		"{a: {env: NOBODY}}":   "plugins.yaml:2:64): a: the core's environment has no NOBODY",
	} {
		if _, _, err := fill(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
	f, e, err := fill("{a: {file: token}}")
	if err != nil {
		t.Fatal(err)
	}
	err = conforms(e, f, []byte(`{"properties": {"a": {"enum": ["x"]}}}`))
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "a: the secret is not what it takes") {
		t.Errorf("got %v", err)
	}
}
