// Package control is the core's middle with a lock, a clock and goroutines around it: it takes
// sessions of plugins and streams in, hands what they say to core/control/internal/middle one at a
// time, and sees that what is due begins. What happens under the lock is short and never blocks:
// messages to plugins go through outboxes, streams are only woken.
package control

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/control/internal/calls"
	"github.com/coxswain-mesh/coxswain/core/control/internal/middle"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/revision"
)

// Config of a Control.
type Config struct {
	Plugins []state.Expected
	state.Rules
	revision.Timing
	Retention placement.Retention
	Earlier   serving.Earlier
	// Stages of pushes; nil: all are served what people change at once.
	Stages *Stages
	// Bounds are those of namespaces.
	Bounds environment.Bounds
	// Gather has the first revision wait until all that is declared is in, Gathered is closed, and
	// Go is called: what came may ask for more plugins.
	Gather  bool
	Log     *slog.Logger
	Metrics state.Metrics
	// Shown returns what the caller of a stream showed, given the stream's context, nil for
	// nothing; optional. It is kept with the connection, so that another authenticator can be asked
	// about it.
	Shown func(context.Context) (*caller.Credentials, error)
	// Naming says of which namespace an identity is, which has a vote for the proxies of that where
	// what proxies say counts for others; without it nobody has.
	Naming caller.Naming
	// OnServing is called, in a goroutine of its own, when what a plugin's session said is being
	// served; optional.
	OnServing func(plugin string)
	// OnWanted is called, in a goroutine of its own, when somebody asks for what a plugin makes
	// that sleeps: Serve returned host.ErrAsleep for it.
	OnWanted func(plugin string)
	// Pushed is called when a push is over, with what plugins and connections did for it, and must
	// not wait; optional.
	Pushed func(report.Push)
}

// Control is the core's middle.
type Control struct {
	cfg Config

	// mu guards all below; what clients do takes it by clients.
	mu      timed
	clients clientLock
	mid     *middle.Middle
	*calls.Calls
	operator *operations.Core
	wake     chan struct{}
}

// New returns a Control. It checks nothing that needs plugins; Run must be called.
func New(cfg Config) (*Control, error) {
	if cfg.Choose == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("control: Choose, Log and Metrics are needed")
	}
	if err := cfg.Timing.Check(); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	c := &Control{cfg: cfg, wake: make(chan struct{}, 1)}
	c.mid = middle.New(middle.Config{
		Log: cfg.Log, Metrics: cfg.Metrics, Rules: cfg.Rules, Epoch: newEpoch(), Gather: cfg.Gather,
		Timing: cfg.Timing, Retention: cfg.Retention, Earlier: cfg.Earlier, Stages: cfg.Stages, Bounds: cfg.Bounds, Pushed: cfg.Pushed,
		Ring: c.ring, Wake: inBackground(cfg.OnWanted), Serving: inBackground(cfg.OnServing),
		Overdue: func(s *state.Session) (n int, since time.Time) { return c.Overdue(s) },
	})
	c.mu.clock, c.clients.inner = c.mid.State.Clock, &c.mu
	c.Calls = calls.New(&c.clients, c.mid.State)
	c.operator = &operations.Core{Shell: shell{&c.mu, c}, Middle: c.mid, Calls: c.Calls, Log: cfg.Log, History: cfg.Earlier.History, HoldMax: cfg.HoldMax}
	explainer := operations.NewExplainer(c.operator)
	c.mid.Serving.Quarantine.OnRefused = func(r *serving.Refused, of []serving.Question) { go explainer.Blame(r, of) }
	now := time.Now()
	for _, e := range cfg.Plugins {
		c.mid.Plugins.Members.Declare(state.NewPlugin(e, state.NewShard(e), now))
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

// Operator is what people ask of the core, and order, that takes more than a step.
func (c *Control) Operator() *operations.Core { return c.operator }

// Epoch is the start of the core that revisions belong to.
func (c *Control) Epoch() uint64 { return c.mid.State.Course.Epoch }

// Started is closed when the first complete revision is served.
func (c *Control) Started() <-chan struct{} { return c.mid.Stages.Pipeline.StartedUp }
