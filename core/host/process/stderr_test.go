package process

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// said is what is passed on of a text, what the tail keeps, and how much was left out.
func said(t *testing.T, from io.Reader) (passed string, last []string, lines, size int) {
	t.Helper()
	var to bytes.Buffer
	kept := newTail()
	newStderr(kept, &to, func(l, b int) { lines, size = lines+l, size+b }).run(from)
	return to.String(), kept.lines(), lines, size
}

// A flood is cut, counted to the last byte, and its last lines are known all the same; so is why a
// Go program crashed.
func TestFlood(t *testing.T) {
	const lines, line = 300_000, "goroutine 18446744 [chan receive]: and so on, and so forth, and so on"
	var all bytes.Buffer
	for i := range lines {
		if i == lines/2 {
			all.WriteString("fatal error: too many ants\n")
		}
		fmt.Fprintln(&all, line)
	}
	all.WriteString("the end")
	total := all.Len() + 1
	passed, last, lost, size := said(t, &all)
	if n := strings.Count(passed, "\n"); n+lost != lines+2 || len(passed)+size != total {
		t.Errorf("%d lines passed on and %d left out are not %d; %d and %d bytes are not %d", n, lost, lines+2, len(passed), size, total)
	}
	if len(passed) > 1<<20 {
		t.Errorf("%d bytes were passed on", len(passed))
	}
	if last[0] != "fatal error: too many ants" || last[len(last)-1] != "the end" || last[len(last)-2] != line {
		t.Errorf("the tail is %q", last)
	}
}

// TestRates: either limit is one, that of lines as that of bytes.
func TestRates(t *testing.T) {
	for name, line := range map[string]string{
		"many short lines": "x\n",
		"few long lines":   strings.Repeat("x", longestLine) + "\n",
	} {
		n := min(3*linesAtOnce, 3*bytesAtOnce/len(line)) // more than is passed on, and one limit is far
		began := time.Now()
		passed, _, lost, _ := said(t, strings.NewReader(strings.Repeat(line, n)))
		s := 1 + int(time.Since(began).Seconds())
		if kept := strings.Count(passed, "\n"); kept+lost != n || s == 1 && lost == 0 ||
			kept > linesAtOnce+s*linesPerSecond || len(passed) > bytesAtOnce+s*bytesPerSecond {
			t.Errorf("%s: of %d lines %d were passed on, %d bytes", name, n, kept, len(passed))
		}
	}
}

// A line without an end is cut, too.
func TestEndless(t *testing.T) {
	passed, last, _, _ := said(t, io.LimitReader(zeros{}, 100<<20))
	if len(passed) > 8*longestLine || !strings.Contains(passed, "bytes more)") || len(last) != 1 {
		t.Errorf("%d bytes were passed on, and the tail is %d lines", len(passed), len(last))
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'z'
	}
	return len(p), nil
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain\tü\r": "plain\tü", "\x1b[2Jgone": `\x1b[2Jgone`, "a\xffb\x00": `a\xffb\x00`, "one\rtwo": `one\rtwo`,
		"\u202eevil": `\u202eevil`, "\u2028": `\u2028`,
	} {
		if got := printable([]byte(in)); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
}
