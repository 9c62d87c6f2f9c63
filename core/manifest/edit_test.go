package manifest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEdit(t *testing.T) {
	const file = `# The plugins.
plugins:
  # Where services come from.
  - name: memory # the first
    kind: registry
    builtin: registry/memory

    config:
      services: []   # none yet
  # Second.

  - {name: flow, kind: config, builtin: config/mesh}

  # What proxies get.
  - name: istio
    kind: generator
    process:
      command: ./old
      args: [-v]
    sha256: 0000000000000000000000000000000000000000000000000000000000000000
# The end.
`
	for name, c := range map[string]struct {
		entry  string
		change func(Mapping) error
		want   string
	}{
		"a key is added": {"memory", func(m Mapping) error { return m.Set("disabled", true) }, strings.Replace(file,
			"services: []   # none yet\n", "services: [] # none yet\n    disabled: true\n", 1)},
		"in one line": {"flow", func(m Mapping) error { return m.Set("optional", true) }, strings.Replace(file,
			"builtin: config/mesh}", "builtin: config/mesh, optional: true}", 1)},
		"another carrier": {"istio", func(m Mapping) error {
			m.Delete("sha256")
			return m.Rename("process", "wasm", map[string]string{"path": "new.wasm"})
		}, strings.Replace(file, `    process:
      command: ./old
      args: [-v]
    sha256: 0000000000000000000000000000000000000000000000000000000000000000
`, "    wasm:\n      path: new.wasm\n", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := NewEdit([]byte(file))
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Entry(c.entry, c.change)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if _, err := Parse("plugins.yaml", got); err != nil {
				t.Error(err)
			}
		})
	}
	if e, err := NewEdit([]byte(file)); err != nil {
		t.Error(err)
	} else if _, err := e.Entry("absent", nil); err == nil {
		t.Error("an entry that isn't there was changed")
	}
}

// Empty lines of an entry stay where the line behind them does, and a text that has some stays as
// it is.
func TestEditKeepsEmptyLines(t *testing.T) {
	const file = `plugins:
  - name: a
    kind: registry

    # what runs
    process:
      command: ./a

      args: [-v]
    insecure: true


    config:
      text: |
        one

        insecure: true

        two

      last: 1
  - {name: b, kind: config, builtin: config/mesh}
`
	for name, c := range map[string]struct {
		change func(Mapping) error
		want   *strings.Replacer
	}{
		"a new key": {
			func(m Mapping) error { return m.Set("disabled", true) },
			strings.NewReplacer("      last: 1\n", "      last: 1\n    disabled: true\n"),
		},
		// the next such line is in the text
		"a line goes":  {func(m Mapping) error { m.Delete("insecure"); return nil }, strings.NewReplacer("    insecure: true\n\n\n    config", "    config")},
		"a value else": {func(m Mapping) error { return m.Set("kind", "config") }, strings.NewReplacer("kind: registry", "kind: config")},
	} {
		e, err := NewEdit([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Entry("a", c.change)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want.Replace(file), string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestPin(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "1", "m.wasm": "2", "s.py": "3"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "plugins.yaml")
	text := []byte(`plugins:
  - {name: a, kind: registry, process: {command: ./a}, insecure: true}
  - {name: m, kind: patch, wasm: {path: m.wasm}}
  - name: s
    kind: registry
    process:
      command: python
      args: [s.py]
      files:
        - {path: s.py, sha256: ` + strings.Repeat("0", 64) + `} # the script
  - {name: b, kind: registry, builtin: registry/memory}
`)
	look := func(string) (string, error) { return filepath.Join(dir, "a"), nil }
	for _, name := range []string{"a", "m", "s", "b"} {
		e, err := NewEdit(text)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = e.Entry(name, func(m Mapping) error { return Pin(m, dir, look) }); err != nil {
			t.Fatal(err)
		}
	}
	set, err := Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	sum := func(text string) Digest { return Digest(fmt.Sprintf("%x", sha256.Sum256([]byte(text)))) }
	a, m, s := set.Plugins[0], set.Plugins[1], set.Plugins[2]
	if a.SHA256 != sum("1") || a.Insecure || m.Wasm.SHA256 != sum("2") || s.SHA256 != sum("1") || s.Process.Files[0].SHA256 != sum("3") {
		t.Errorf("it became\n%s", text)
	}
	for _, e := range set.Plugins {
		if err := e.Trusted(); err != nil {
			t.Error(err)
		}
	}
	if err := (&Entry{Process: &Process{}}).Trusted(); err == nil {
		t.Error("what nobody pinned is trusted")
	}
}
