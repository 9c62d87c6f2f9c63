package manifest

import (
	"strings"
	"testing"
)

// TestSame: where an entry stands, and where its values do, is no difference.
func TestSame(t *testing.T) {
	const entry = `
  - name: a
    kind: registry
    insecure: true
    process: {command: ./a, env: {A: b}}
    sandbox: {read: [/tmp], write: [/tmp]}
    limits: {rows: 5}
  - {name: m, kind: patch, insecure: true, wasm: {path: m.wasm}, guard: {maxRemoved: 5}, rollback: {window: 1m}, select: {generator: grpc}}
`
	read := func(text string) *Set {
		t.Helper()
		set, err := Parse("plugins.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	here, there := read("plugins:"+entry), read("# A line more.\nplugins:"+strings.ReplaceAll(entry, "{", "{\n          "))
	for i, e := range here.Plugins {
		if at := there.Plugins[i]; !Same(e, at) {
			t.Errorf("%s is another one elsewhere, in %v", e.Name, Differing(e, at))
		}
	}
	if changed := read("plugins:" + strings.Replace(entry, "read: [/tmp]", "read: [/]", 1)); Same(here.Plugins[0], changed.Plugins[0]) {
		t.Error("another sandbox is no difference")
	}
}
