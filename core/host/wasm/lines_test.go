package wasm

import (
	"bytes"
	"testing"
)

// TestLines: what a module says arrives in lines, whole ones as they are, and what it said last
// with an end.
func TestLines(t *testing.T) {
	var to bytes.Buffer
	l := &lines{to: &to}
	for _, part := range []string{"one\ntw", "o\nthr", "ee"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := to.String(); got != "one\ntwo\n" {
		t.Errorf("%q before the end", got)
	}
	l.flush()
	l.flush()
	if got := to.String(); got != "one\ntwo\nthree\n" {
		t.Errorf("%q", got)
	}
}
