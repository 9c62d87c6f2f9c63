package host

import (
	"context"
	"log/slog"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/host/family"
	"github.com/coxswain-mesh/coxswain/core/host/process"
)

// Processes starts plugins as child processes; it is what a core uses.
type Processes struct {
	// Family ends with each process all that it started.
	Family *family.Family
}

// Start runs the process and shakes hands with it.
func (ps Processes) Start(ctx context.Context, l Launch) (Running, error) {
	p, err := process.Start(ctx, process.Spec{
		Name: l.Name, Path: l.Path, Program: l.Program, Files: l.Files, Sockets: l.Sockets, Args: l.Args,
		Dir: l.Dir, Env: l.Env, SocketDir: l.SocketDir, TLS: l.TLS,
		OpenFiles: l.OpenFiles, Group: l.Group, User: l.User, Sandbox: l.Sandbox, Family: ps.Family,
		StartTimeout: l.Timeout, Stderr: &lines{log: l.Log}, LeftOut: leftOut(l.Log), Logger: l.Log,
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

// leftOut says how much of a plugin's standard error is not in the log.
func leftOut(log *slog.Logger) func(lines, bytes int) {
	return func(lines, bytes int) {
		log.Warn("standard error of a plugin was left out: it writes too much", "lines", lines, "bytes", bytes)
	}
}

// lines logs standard error, which comes line by line.
type lines struct {
	log *slog.Logger
}

func (w *lines) Write(line []byte) (int, error) {
	if text := strings.TrimRight(string(line), "\r\n"); text != "" {
		w.log.Info(text, "stream", "stderr")
	}
	return len(line), nil
}
