// Package control is the core's middle: it takes rows from plugins into the environment, leads each
// revision through the stages, keeps the views that generators make, and tells connections when
// there is something new. Control keeps the lock and the time, and hands what happens to those that
// it concerns; what happens under the lock is short and never blocks: messages to plugins go
// through outboxes, streams are only woken. The parts have neither lock nor clock, and know those
// below them alone: core/state is what all of them know; core/serving is what connections are
// served, core/pipeline leads revisions there, core/members is who takes part, core/status what is
// shown of it. What can be decided without knowing plugins or connections lies still lower:
// core/caller, core/patch, core/placement, core/feed, core/revision, core/trial, core/guard,
// core/store, core/environment, core/stage, core/view.
//
// The life of a plugin: Control.Serve takes its session in (Members.Admit); Control.handle takes
// each message; Control.watch sees that it does not hang (Members.Inspect); Control.leave takes it
// out (Members.Dismiss), and what it said stays served. Another takes its place by Control.Try and
// Trial.Switch (Trials.Swap).
//
// The life of a row: Intake.TakeRows puts it into its plugin's shard; Control.due sees that it is
// time; Pipeline.Begin commits it and gives the revision to those who read it, derivers first, and
// Pipeline.TakeDone notes that they are done; Pipeline.Advance goes on, until what generators made
// of it is published. Losses.guards has core/guard judge what is about to be shown: rows that take
// too much away are taken back.
//
// The life of a placement: Control.Connect takes a stream in; Streams.Subscribe notes what it
// wants, and Placer.Introduce has generators told; Placer.TakeGenerated takes their answer, and
// asks for what the view lacks, in turn; Screen.Settle shows what patches made of it
// (Patches.ComposeBy), and Streams.Pull hands it to the stream. When the stream has gone Placer
// keeps the view for a while.
//
// The life of a request for who is calling: Calls.Authenticate; of one for an object where it is
// kept: Writes.TakeStore.
package control

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/calls"
	"github.com/coxswain-mesh/coxswain/core/members"
	"github.com/coxswain-mesh/coxswain/core/pipeline"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/serving"
	"github.com/coxswain-mesh/coxswain/core/state"
	"github.com/coxswain-mesh/coxswain/core/status"
)

// Config of a Control.
type Config struct {
	Plugins []state.Expected
	state.Rules
	// DebounceAfter and DebounceMax gather changes; DebounceEndpoints gathers those of endpoints
	// alone, too.
	DebounceAfter, DebounceMax time.Duration
	DebounceEndpoints          bool
	// EndpointPatience is how long endpoints wait for a revision in the making before they overtake
	// it.
	EndpointPatience time.Duration
	// EndpointPause keeps revisions of endpoints alone apart while endpoints change all the time:
	// as long for each connection.
	EndpointPause time.Duration
	// HoldMax is how long a revision waits for a plugin before it is served without.
	HoldMax time.Duration
	placement.Retention
	// Gather has the first revision wait until all that is declared is in, Gathered is closed, and
	// Go is called: what came may ask for more plugins.
	Gather  bool
	Log     *slog.Logger
	Metrics state.Metrics
	// Shown returns what the caller of a stream showed, given the stream's context, nil for
	// nothing; optional. It is kept with the connection, so that another authenticator can be asked
	// about it.
	Shown func(context.Context) (*caller.Credentials, error)
	// OnServing is called, in a goroutine of its own, when what a plugin's session said is being
	// served; optional.
	OnServing func(plugin string)
	// OnWanted is called, in a goroutine of its own, when somebody asks for what a plugin makes
	// that sleeps: Serve returned host.ErrAsleep for it.
	OnWanted func(plugin string)
}

// Control is the core's middle.
type Control struct {
	cfg Config

	// mu guards all below; what clients do takes it by the door.
	mu      timed
	clients door
	state   *state.State
	serving *serving.Parts
	stages  *pipeline.Parts
	plugins *members.Parts
	pages   *status.Pages
	*calls.Calls
	wake chan struct{}
}

// New returns a Control. It checks nothing that needs plugins; Run must be called.
func New(cfg Config) (*Control, error) {
	if cfg.Choose == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("control: Choose, Log and Metrics are needed")
	}
	if cfg.DebounceAfter < 0 || cfg.DebounceMax < cfg.DebounceAfter {
		return nil, errors.New("control: debounceMax must not be less than debounceAfter")
	}
	if cfg.HoldMax <= 0 {
		return nil, errors.New("control: holdMax must be more than 0")
	}
	c := &Control{cfg: cfg, wake: make(chan struct{}, 1)}
	c.state = state.New(state.Config{
		Log: cfg.Log, Metrics: cfg.Metrics, Rules: cfg.Rules, Epoch: newEpoch(),
		DebounceAfter: cfg.DebounceAfter, DebounceMax: cfg.DebounceMax, EndpointPause: cfg.EndpointPause, Gather: cfg.Gather,
		Ring: c.ring, Wake: inBackground(cfg.OnWanted), Serving: inBackground(cfg.OnServing),
	})
	c.serving = serving.New(c.state, serving.Config{
		Patience: cfg.HoldMax, Retention: cfg.Retention,
		Instead: func(next state.Shown) (held, judges bool) { return c.plugins.Departure.PartingLoses(next) },
	})
	c.stages = pipeline.New(c.state, c.serving, pipeline.Config{
		HoldMax: cfg.HoldMax, EndpointPatience: cfg.EndpointPatience, DebounceEndpoints: cfg.DebounceEndpoints,
		Served: func(number uint64) { c.plugins.Trials.NoteSwitched(number) },
	})
	c.plugins = members.New(c.state, c.serving, c.stages, cfg.HoldMax)
	c.pages = status.NewPages(c.state, c.serving, cfg.HoldMax, func(s *state.Session) (n int, since time.Time) { return c.Overdue(s) })
	c.mu.clock, c.clients.inner = c.state.Clock, &c.mu
	c.Calls = calls.New(&c.clients, c.state)
	now := time.Now()
	for _, e := range cfg.Plugins {
		c.plugins.Members.Declare(state.NewPlugin(e, state.NewShard(e), now))
	}
	return c, nil
}

// do does something under the lock, and then what is due.
func (c *Control) do(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.schedule()
	return f()
}

// locked returns what f does under the lock.
func locked[T any](c *Control, f func() T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f()
}

// await waits for an answer. If ctx ends before it comes, leave is called under the lock.
func (c *Control) await(ctx context.Context, answer <-chan error, leave func()) error {
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	return c.do(func() error {
		select {
		case err := <-answer:
			return err
		default:
			leave()
			return context.Cause(ctx)
		}
	})
}

// inBackground returns a func that calls f in a goroutine of its own.
func inBackground(f func(string)) func(string) {
	if f == nil {
		return func(string) {}
	}
	return func(plugin string) { go f(plugin) }
}

func newEpoch() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// Epoch is the start of the core that revisions belong to.
func (c *Control) Epoch() uint64 { return c.state.Course.Epoch }

// Started is closed when the first complete revision is served.
func (c *Control) Started() <-chan struct{} { return c.stages.Pipeline.StartedUp }
