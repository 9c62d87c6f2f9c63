package server

import (
	"bytes"
	"log/slog"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/levels"
)

// recent keeps the last lines of the log, for reports.
type recent struct {
	mu    sync.Mutex
	lines [][]byte
	size  int
}

// What is kept of the log, in lines and bytes.
const (
	mostLines = 5000
	mostSize  = 1 << 20
)

// handler returns one that writes to another, too.
func (r *recent) handler(h slog.Handler) slog.Handler {
	return slog.NewMultiHandler(h, levels.New(&slog.LevelVar{}).Handler(slog.NewTextHandler(r, nil)))
}

// Write keeps a line.
func (r *recent) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, bytes.Clone(line))
	r.size += len(line)
	for len(r.lines) > mostLines || r.size > mostSize && len(r.lines) > 1 {
		r.size -= len(r.lines[0])
		r.lines[0] = nil
		r.lines = r.lines[1:]
	}
	return len(line), nil
}

// all returns the lines, oldest first.
func (r *recent) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]string, len(r.lines))
	for i, line := range r.lines {
		out[i] = string(bytes.TrimRight(line, "\n"))
	}
	return out
}
