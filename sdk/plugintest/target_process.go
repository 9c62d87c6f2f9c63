//go:build !wasip1

package plugintest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/process"
)

// Process runs a program as a core does; c.Stderr and c.Timeout are the harness's.
func Process(c process.Command) Target {
	return Target{Carrier: "process", name: filepath.Base(c.Path), open: func(stderr io.Writer) (*running, error) {
		c.Stderr, c.Timeout = stderr, Timeout
		l, err := process.Launch(c)
		if err != nil {
			return nil, fmt.Errorf("starting %s: %w", c.Path, err)
		}
		stopped, ended := make(chan struct{}), make(chan error, 1)
		go watch(l, stopped, ended)
		return &running{carrier: l, ended: ended, abandon: l.Abandon, hasten: l.Stop, stop: func() { close(stopped); l.Stop() }}, nil
	}}
}

// watch waits for a process's end, or until it is stopped.
func watch(l *process.Launched, stopped <-chan struct{}, ended chan<- error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !l.Exited() {
		select {
		case <-tick.C:
		case <-stopped:
			ended <- errors.New("it had to be stopped")
			return
		}
	}
	ended <- nil
}

// Module runs a WASM module. runner is the path of the coxswain binary, whose processes run
// modules; cache, which may be empty, is where it keeps what it has compiled.
func Module(runner, module, cache string) Target {
	absolute, err := filepath.Abs(module)
	if err == nil {
		_, err = os.Stat(absolute)
	}
	if err != nil {
		return Target{Carrier: "wasm", name: module, open: func(io.Writer) (*running, error) { return nil, err }}
	}
	t := Process(process.Command{Path: runner, Args: []string{"wasm-runner", "-module", absolute, "-cache", cache}, Dir: filepath.Dir(absolute)})
	t.Carrier, t.name = "wasm", filepath.Base(module)
	return t
}
