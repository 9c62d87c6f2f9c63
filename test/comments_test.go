package test

import (
	"bufio"
	"os"
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
	goFiles(t, "..", func(file string) error {
		if strings.HasSuffix(file, ".gen.go") {
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
}
