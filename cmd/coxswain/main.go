// Command coxswain is a control plane for Envoy and every other xDS client, made of plugins.
// `coxswain help` says what it can do.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
)

// version is set by the linker.
var version string

func main() {
	tuned(os.Environ())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 0, 1 for what went wrong, 2 for a command line that can't be, 3 for
// what is held, or would be.
func run(ctx context.Context, args, environ []string, in io.Reader, out, errOut io.Writer) int {
	p := &program{environ: environ, in: in, out: out, err: errOut}
	ctx = context.WithValue(ctx, tokenKey{}, p.variable(tokenVariable))
	ctx = context.WithValue(ctx, authorityKey{}, p.variable(authorityVariable))
	root := rootCommand(p, args)
	root.SetArgs(args)
	if slices.Contains(args, "completion") {
		refuseShells(root)
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if errors.As(err, new(heldError)) {
		return 3
	}
	if !errors.As(err, new(loggedError)) {
		fmt.Fprintf(errOut, "coxswain: %v\n", err)
	}
	var exit exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

// program is what commands get of the process that they run in: its environment, as KEY=VALUE, and
// its standard streams.
type program struct {
	environ  []string
	in       io.Reader
	out, err io.Writer
}

// usageError is about the command line itself.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// loggedError is one that a log which programs read has already.
type loggedError struct{ error }

func (e loggedError) Unwrap() error { return e.error }

// build returns the version of this program, from the linker or from what the Go toolchain noted.
func build() string {
	if version != "" {
		return version
	}
	if i, ok := debug.ReadBuildInfo(); ok && i.Main.Version != "" {
		return i.Main.Version
	}
	return "unknown"
}
