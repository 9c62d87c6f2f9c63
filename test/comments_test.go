package test

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// commentColumns is where comments are wrapped; a tab counts as four.
const commentColumns = 100

// prose is a line that holds a comment and nothing else: no directive, list or quoted text.
var prose = regexp.MustCompile(`^(\t*)// [^-*\s].* \S`)

// TestCommentsAreWrapped: comments can be read beside each other.
func TestCommentsAreWrapped(t *testing.T) {
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && file != ".." && strings.HasPrefix(name, "."), d.IsDir() && name == "testdata":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".gen.go"):
			return nil
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for n := 1; lines.Scan(); n++ {
			m := prose.FindStringSubmatch(lines.Text())
			if m == nil {
				continue
			}
			if width := utf8.RuneCountInString(lines.Text()) + 3*len(m[1]); width > commentColumns {
				t.Errorf("%s:%d: a comment of %d columns; wrap it at %d", file, n, width, commentColumns)
			}
		}
		return lines.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}
