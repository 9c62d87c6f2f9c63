package test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPluginsHaveREADMEs: each built-in plugin has one of the same shape, whose examples a test of
// the plugin runs.
func TestPluginsHaveREADMEs(t *testing.T) {
	plugins, err := filepath.Glob("../plugins/*/*/plugin.go")
	if err != nil || len(plugins) == 0 {
		t.Fatal(err, plugins)
	}
	for _, file := range plugins {
		dir := filepath.Dir(file)
		text, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil {
			t.Error(err)
			continue
		}
		var sections []string
		for line := range strings.Lines(string(text)) {
			if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
				sections = append(sections, title)
			}
		}
		if len(sections) < 4 || !slices.Equal(sections[:4], []string{"Name", "Description", "Config", "Examples"}) {
			t.Errorf("%s/README.md has sections %q; they begin with Name, Description, Config, Examples", dir, sections)
		}
		if !testsExamples(t, dir) {
			t.Errorf("no test in %s runs the examples of its README.md", dir)
		}
	}
}

func testsExamples(t *testing.T, dir string) bool {
	t.Helper()
	tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(tests, func(file string) bool {
		text, err := os.ReadFile(file)
		runs := func(how string) bool { return strings.Contains(string(text), how) }
		return err == nil && slices.ContainsFunc([]string{`"README.md"`, "readme.Example(t, ", "registrytest.Readme{"}, runs)
	})
}
