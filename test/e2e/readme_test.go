package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// TestReadme does what the README says about a first plugin.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../examples/registry-hello/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if code := block(t, string(readme), "go"); !strings.HasSuffix(string(source), code) {
		t.Errorf("README.md shows a plugin that isn't examples/registry-hello:\n%s", code)
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "registry-hello"), "../../examples/registry-hello")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	set := filepath.Join(dir, "plugins.yaml")
	if err := os.WriteFile(set, []byte(block(t, string(readme), "yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	plane := mesh.Start(t, program, "", "--plugins", set)
	plane.Ready(t)
	if page, err := plane.Get("/debug/services"); err != nil || !strings.Contains(page, "hello.example.com") {
		t.Errorf("%v: %s", err, page)
	}
	if _, ok := plane.Plugins(t)["hello"]; !ok {
		t.Error("no plugin hello")
	}
}

// block returns the first code block of a language.
func block(t *testing.T, text, language string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "```"+language+"\n")
	code, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatalf("README.md has no block of %s", language)
	}
	return code
}
