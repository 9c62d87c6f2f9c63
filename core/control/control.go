// Package control is the core's middle: it takes rows from plugins into the environment, leads each
// revision through the stages, keeps the views that generators make, and tells connections when
// there is something new. All state is behind one mutex; what happens in it is short and never
// blocks: messages to plugins go through outboxes, streams are only woken. What is decided by rules
// alone lies outside, in machines without clock or goroutine: core/caller, core/patch,
// core/placement, core/feed, core/revision, core/trial, core/guard, core/store, core/environment,
// core/stage, core/view.
//
// The life of a plugin: Serve and join (session.go) take its session in; handle (session.go) takes
// each message; watch (watch.go) sees that it does not hang; leave (session.go) takes it out, and
// what it said stays served. Another takes its place by Try, Compare and Switch (trial.go,
// swap.go).
//
// The life of a row: takeRows (rows.go) puts it into its plugin's shard; schedule (schedule.go)
// sees that it is time; begin (flight.go) commits it; hand (flight.go) gives the revision to those
// who read it, derivers first, and takeDone (done.go) notes that they are done; serve (flight.go)
// publishes what generators made of it. guards (hold.go) has core/guard judge what is about to be
// shown: rows that take too much away are taken back.
//
// The life of a placement: Connect (connection.go) takes a stream in; Subscribe says what it wants,
// and introduce has generators told; takePlace (generated.go) takes their answer, and want
// (wants.go) asks for what the view lacks, in turn; settle (settle.go) shows what patches made of
// it (patches.go), and Pull (connection.go) hands it to the stream. depart (retention.go) keeps the
// view for a while when the stream has gone.
//
// The life of a request for who is calling: Authenticate (authenticate.go); of one for an object
// where it is kept: takeStore (store.go).
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
	// DebounceAfter and DebounceMax gather changes; DebounceEndpoints gathers those of endpoints alone, too.
	DebounceAfter, DebounceMax time.Duration
	DebounceEndpoints          bool
	// EndpointPatience is how long endpoints wait for a revision in the making before they overtake it.
	EndpointPatience time.Duration
	// EndpointPause keeps revisions of endpoints alone apart while endpoints change all the time: as long for each connection.
	EndpointPause time.Duration
	// HoldMax is how long a revision waits for a plugin before it is served without.
	HoldMax time.Duration
	placement.Retention
	// Gather has the first revision wait until all that is declared is in, Gathered is closed, and Go is called: what came may ask for more plugins.
	Gather  bool
	Log     *slog.Logger
	Metrics state.Metrics
	// Shown returns what the caller of a stream showed, given the stream's context, nil for nothing; optional. It is kept with the connection, so that
	// another authenticator can be asked about it.
	Shown func(context.Context) (*caller.Credentials, error)
	// OnServing is called, in a goroutine of its own, when what a plugin's session said is being served; optional.
	OnServing func(plugin string)
	// OnWanted is called, in a goroutine of its own, when somebody asks for what a plugin makes that sleeps: Serve returned host.ErrAsleep for it.
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
