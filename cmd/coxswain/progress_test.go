package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestProgress: a text takes the place of the one before, once, and goes when all is over; what is
// no terminal is told nothing.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	g := &progress{out: &out}
	for _, text := range []string{"1 of 2", "1 of 2", "2 of 2"} {
		g.says(text)
	}
	g.over()
	g.over()
	if want := eraseLine + "1 of 2" + eraseLine + "2 of 2" + eraseLine; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, p := range []*program{{err: file}, {err: &bytes.Buffer{}}} {
		g := progressOf(p)
		g.says("lost")
		g.ofChange(t.Context(), p, which{}, "plugin", "swap")()
		g.over()
		if g.out != nil {
			t.Errorf("%T is taken for a terminal", p.err)
		}
	}
	if text, err := os.ReadFile(file.Name()); err != nil || len(text) > 0 {
		t.Errorf("the file has %q: %v", text, err)
	}
}
