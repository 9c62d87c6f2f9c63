package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestReadingsWithoutTerminal: readings that go elsewhere than to a terminal have an empty line
// between them, and nothing that only a terminal understands.
func TestReadingsWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	a := &asked{p: &program{out: &out}, format: "table"}
	for _, text := range []string{"one", "two"} {
		if err := a.show(nil, false, func(w io.Writer, _ bool) { _, _ = io.WriteString(w, text+"\n") }); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "one\n\ntwo\n" {
		t.Errorf("%q", out.String())
	}
}

// TestFailedStartInJSON: with a log for programs each line of a start that fails is JSON, the last
// one too, and said once.
func TestFailedStartInJSON(t *testing.T) {
	var out, complaint bytes.Buffer
	args := []string{"discovery", "--logFormat", "json", "--plugins", t.TempDir() + "/nowhere.yaml"}
	code := run(t.Context(), args, nil, strings.NewReader(""), &out, &complaint)
	lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
	if last := lines[len(lines)-1]; code == 0 || !strings.Contains(last, `"level":"ERROR"`) || !strings.Contains(last, "nowhere.yaml") {
		t.Errorf("exit code %d: %s", code, complaint.String())
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "{") {
			t.Errorf("%s is no JSON", line)
		}
	}
	if n := strings.Count(complaint.String(), "nowhere.yaml"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
}
