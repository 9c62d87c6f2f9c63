package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestDocumentsAreWrapped: lines of documents have at most 120 columns, but for tables, code,
// headings and what can't be broken.
func TestDocumentsAreWrapped(t *testing.T) {
	const most = 120
	var files []string
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 50 {
		t.Fatalf("only %d documents were found", len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range wide(string(text), most) {
			t.Errorf("%s:%d: a line of more than %d columns; wrap it", file, n, most)
		}
	}
}

// wide returns the numbers of the lines that are too wide.
func wide(text string, most int) (lines []int) {
	code := false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			code = !code
		}
		switch {
		case code, trimmed == "", strings.ContainsRune("|#<", rune(trimmed[0])), strings.HasPrefix(line, "    "):
		case utf8.RuneCountInString(line) <= most:
		case strings.LastIndexByte(line[:min(len(line), most)], ' ') < len(line)-len(strings.TrimLeft(line, " -*0123456789.")): // one word
		default:
			lines = append(lines, i+1)
		}
	}
	return lines
}

// TestWide: prose that is too long is found; tables and code are not.
func TestWide(t *testing.T) {
	long := strings.Repeat("word ", 30)
	text := "# " + long + "\n| " + long + "|\n```\n" + long + "\n```\nshort\n" + long + "\n- " + long + "\n- " + strings.Repeat("x", 130)
	if got := wide(text, 120); len(got) != 2 || got[0] != 7 || got[1] != 8 {
		t.Errorf("lines %v", got)
	}
}
