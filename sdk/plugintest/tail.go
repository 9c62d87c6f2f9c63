package plugintest

import (
	"slices"
	"strings"
	"sync"
)

// tailLines is how many of the last lines of standard error a failure shows.
const tailLines = 10

// tail keeps the last lines that were written to it.
type tail struct {
	mu    sync.Mutex
	lines []string
	open  string
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(t.open+string(b), "\n")
	t.open = lines[len(lines)-1]
	t.lines = append(t.lines, lines[:len(lines)-1]...)
	t.lines = t.lines[max(0, len(t.lines)-tailLines):]
	return len(b), nil
}

func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines)
}
