// Package archive reads, for tests, the conversations that a package keeps as text: the files of
// testdata/*.txtar.
package archive

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Archive is one of testdata: its name without .txtar, and its files.
type Archive struct {
	Name  string
	Files []txtar.File
}

// All returns the archives, in the order of their names. The test fails if there are none.
func All(t testing.TB) (all []Archive) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Archive{strings.TrimSuffix(filepath.Base(path), ".txtar"), archive.Files})
	}
	return all
}

// Play runs play with each file of each archive, as a test called ARCHIVE/FILE.
func Play(t *testing.T, play func(t *testing.T, text string)) {
	t.Helper()
	for _, a := range All(t) {
		for _, f := range a.Files {
			t.Run(a.Name+"/"+f.Name, func(t *testing.T) { play(t, string(f.Data)) })
		}
	}
}

// Lines runs do with the words of each line of a script; what stands behind " #" is a comment, and
// empty lines are none. The test fails with the line's number and text where do does.
func Lines(t testing.TB, script string, do func(words []string) error) {
	t.Helper()
	for i, line := range strings.Split(script, "\n") {
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := do(words); err != nil {
			t.Fatalf("line %d: %s: %v", i+1, strings.TrimSpace(line), err)
		}
	}
}

// Expect is nil if a script wants what there is.
func Expect(got, want string) error {
	if got != want {
		return fmt.Errorf("it is: %s", got)
	}
	return nil
}

// YesNo writes b as scripts do.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
