package host

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/host/process"
)

// Processes starts plugins as child processes; it is what a core uses.
type Processes struct{}

// Start runs the process and shakes hands with it.
func (Processes) Start(ctx context.Context, l Launch) (Running, error) {
	p, err := process.Start(ctx, process.Spec{
		Name: l.Name, Path: l.Path, Args: l.Args, Dir: l.Dir, Env: l.Env, SocketDir: l.SocketDir, TLS: l.TLS,
		StartTimeout: l.Timeout, Stderr: &lines{log: l.Log}, Logger: l.Log,
	})
	if err != nil {
		return nil, nameless{err, l.Name}
	}
	return p, nil
}

// nameless leaves out the plugin's name, which whoever reports the error has said already.
type nameless struct {
	error
	name string
}

func (e nameless) Error() string { return strings.TrimPrefix(e.error.Error(), "plugin "+e.name+": ") }

func (e nameless) Unwrap() error { return e.error }

// maxLine is where a line without an end is cut.
const maxLine = 8 << 10

// lines logs what is written to it, line by line.
type lines struct {
	log  *slog.Logger
	mu   sync.Mutex
	rest string
}

func (w *lines) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest += string(p)
	for {
		line, rest, ok := strings.Cut(w.rest, "\n")
		if !ok && len(w.rest) < maxLine {
			return len(p), nil
		}
		if !ok {
			line, rest = w.rest, ""
		}
		if w.rest = rest; line != "" {
			w.log.Info(line)
		}
	}
}
