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

// idiom is what Go's own comments say otherwise: they say “reports whether”.
var idiom = regexp.MustCompile(`^\s*// .*\b(says|tells|returns) whether\b`)

// TestComments: they can be read beside each other, and read like Go's own.
func TestComments(t *testing.T) {
	goFiles(t, "..", func(file string) error {
		if strings.HasSuffix(file, ".gen.go") || strings.HasSuffix(file, ".pb.go") {
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
			if idiom.MatchString(lines.Text()) {
				t.Errorf("%s:%d: say “reports whether”, as Go's own comments do", file, n)
			}
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
