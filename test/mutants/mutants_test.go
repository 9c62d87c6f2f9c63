package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// small is a module with a test that notices some changes of it.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module small\n\ngo 1.24\n",
		"a/a.go":      "package a\n\nfunc Grown(age int) bool { return age >= 18 && age > 0 }\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestGrown(t *testing.T) {\n\tif Grown(1) || !Grown(40) {\n\t\tt.Error()\n\t}\n}\n",
		"b/b.go":      "package b\n\nimport \"small/a\"\n\nfunc Votes(age int) bool { return a.Grown(age) }\n",
		"b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestVotes(t *testing.T) {\n\tif Votes(17) || !Votes(18) {\n\t\tt.Error()\n\t}\n}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestMutants: each change is made, tests of the package and of those that import it judge it, the
// tree stays as it was, and what is known isn't done again.
func TestMutants(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Fatal(err)
	}
	dir := small(t)
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	before, _ := os.ReadFile("a/a.go")
	s := settings{folders: []string{"a", "b"}, sample: 100, timeout: time.Minute, jobs: 2, results: "results/all.jsonl"}
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	known, err := open(s.results, false)
	if err != nil {
		t.Fatal(err)
	}
	defer known.close()
	got := map[string]outcome{}
	for _, r := range known.by {
		got[r.After] = r.Outcome
	}
	line := func(text string) string { return "func Grown(age int) bool { return " + text + " }" }
	want := map[string]outcome{
		line("age > 18 && age > 0"): killed, line("age < 18 && age > 0"): killed, line("age >= 19 && age > 0"): killed, line("age >= 18 || age > 0"): killed,
		line("age >= 18 && age >= 0"): survived, line("age >= 18 && age <= 0"): killed, line("age >= 18 && age > 1"): survived,
		line("age > 0"): killed, line("age >= 18"): survived,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if after, _ := os.ReadFile("a/a.go"); !slices.Equal(before, after) {
		t.Errorf("the tree has become\n%s", after)
	}
	size, _ := os.Stat(s.results)
	s.least = 90
	if err := s.run(t.Context()); err == nil {
		t.Error("fewer than 90 % are killed, and it says nothing")
	}
	if again, _ := os.Stat(s.results); again.Size() != size.Size() {
		t.Error("what is known is done again")
	}
}
