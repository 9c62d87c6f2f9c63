// Package wasm is the runner: it runs a WASI command module in wazero and speaks for it to the
// core. It is a process of its own, between the core and the module, so that a module that loops or
// grows harms nobody else.
//
// The module's standard input and output carry the contract's messages, so that the runner has a
// session on either side: a session.Plugin towards the core and a session.Core towards each
// instance of the module. It relays between them, keeps the rows, and answers itself what a module
// can't do alone: Get, Fetch and Wake.
package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Config of a runner.
type Config struct {
	// Code is the module, File its path, for people.
	Code []byte
	File string
	// Memory that one instance may have, in bytes.
	Memory uint64
	// Instances of a stateless plugin (a patch, an authenticator) that may run at once.
	Instances uint
	// Cache is the directory of compiled modules; none if it is empty.
	Cache string
	// Environ is the runner's environment, of which the module gets what is granted.
	Environ []string
	// Stderr takes the module's standard error.
	Stderr io.Writer
}

const (
	// ending is how long a module may take to end by itself once its input has ended.
	ending = 2 * time.Second
	// beat is how often the core is told that the module is being compiled.
	beat = 100 * time.Millisecond
	// flushing is how long the last words of a session may take.
	flushing = 2 * time.Second
)

// runner is a session with the core.
type runner struct {
	cfg     Config
	up      *session.Plugin
	module  *module
	hello   *pb.Hello
	grants  *grants
	fetcher *fetcher
	rows    *rows
	watch   *watch
}

// Run serves a session with the core: it waits for Hello, compiles the module, and runs it until
// the core drains it or ends the session, which is nil, or something fails. A module that hangs
// makes Run return while the module goes on: the process has to end.
func Run(ctx context.Context, cfg Config, carrier session.Carrier) error {
	if cfg.Memory < pageBytes || cfg.Memory > 4<<30 {
		return fmt.Errorf("wasm.memory is %d bytes; it is at least 64Ki and at most 4Gi", cfg.Memory)
	}
	cfg.Instances = max(1, cfg.Instances)
	// A module that computes holds a thread of Go's scheduler until it calls its host: the runner
	// itself must have some left.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), int(cfg.Instances)+2))
	r := &runner{cfg: cfg, up: session.NewPlugin(carrier), rows: newRows()}
	defer r.up.Close()
	err := r.run(ctx)
	r.flush()
	if quiet(ctx, err) {
		return nil
	}
	return err
}

func quiet(ctx context.Context, err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, session.ErrClosed) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}

func (r *runner) run(ctx context.Context) (err error) {
	m, _, err := r.up.Recv(ctx)
	if err != nil {
		return err
	}
	if r.hello = m.Hello; r.hello == nil {
		return errors.New("the session did not begin with Hello")
	}
	if r.hello.Limits == nil {
		r.hello.Limits = &pb.Limits{}
	}
	if r.grants, err = newGrants(r.hello.Grants, r.cfg.Environ, func(text string) { r.warn(pb.LogLevelWarn, text) }); err != nil {
		return err
	}
	r.fetcher = newFetcher(r.grants)
	defer r.fetcher.close()
	compiled := r.compiling(ctx)
	r.module, err = load(ctx, r.cfg)
	if compiled(); err != nil {
		return err
	}
	r.cfg.Code = nil
	r.watch = newWatch(time.Duration(r.hello.Limits.ProgressMs) * time.Millisecond)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go r.watch.run(ctx, cancel)
	defer func() {
		// A module that runs still would lose its memory under its feet: then the process's end
		// clears up.
		if r.watch.empty() {
			err = errors.Join(err, r.module.close(context.WithoutCancel(ctx)))
		}
	}()
	return r.converse(ctx)
}

// converse makes the first instance and goes on as what it says it is.
func (r *runner) converse(ctx context.Context) error {
	g := r.start(ctx)
	defer g.end(ending)
	ready, err := g.greet(ctx, r.forward)
	if err != nil || ready == nil {
		return err
	}
	if err := r.up.Send(ctx, &pb.FromPlugin{Ready: ready}); err != nil {
		return err
	}
	if ready.Kind.Patches() || ready.Kind.Authenticates() {
		return newPool(r, g).run(ctx)
	}
	return r.relay(ctx, g)
}

// compiling tells the core, until it is over, that the module is being compiled: that has a limit
// of its own.
func (r *runner) compiling(ctx context.Context) (over func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for ctx.Err() == nil {
			_ = r.up.Send(ctx, &pb.FromPlugin{Progress: &pb.Progress{}})
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() { cancel(); <-done }
}

// forward passes a message of a module on to the core.
func (r *runner) forward(ctx context.Context, m *pb.FromPlugin) error {
	return r.up.Send(ctx, m)
}

// warn logs a line at the core; one that can't be sent is lost.
func (r *runner) warn(level pb.LogLevel, text string) {
	ctx, cancel := context.WithTimeout(context.Background(), flushing)
	defer cancel()
	_ = r.up.Send(ctx, &pb.FromPlugin{Log: &pb.Log{Level: level, Text: text}})
}

func (r *runner) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), flushing)
	defer cancel()
	_ = r.up.Flush(ctx)
}
