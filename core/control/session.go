package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/sched"
	"github.com/coxswain-mesh/coxswain/core/ticks"

	"github.com/coxswain-mesh/coxswain/core/control/internal/outbox"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/host"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Serve implements host.Sessions.
func (c *Control) Serve(ctx context.Context, inst *host.Instance) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer inst.Link.Close()
	s, err := c.join(inst, cancel)
	if err != nil {
		return err
	}
	defer c.leave(s)
	go c.watch(ctx, s, inst)
	go func() {
		if err := s.Out.Run(ctx, inst.Link); err != nil {
			cancel(err)
		}
	}()
	for {
		m, cost, err := inst.Link.Recv(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
				return cause
			}
			return err
		}
		if err = s.Oversize(cost); err == nil {
			err = c.handle(s, m)
		}
		inst.Link.Release(cost)
		if err != nil {
			c.cfg.Metrics.Broken(s.Name())
			return fmt.Errorf("plugin %s broke the contract: %w", s.Name(), err)
		}
	}
}

// Learn implements host.Sessions.
func (c *Control) Learn(inst *host.Instance) error {
	return c.do(func() error { return c.mid.Plugins.Members.Learn(inst.Entry.Name, inst.Ready) })
}

// join takes a session in: it is sent everything it reads, and what it makes of it comes with a
// revision of its own.
func (c *Control) join(inst *host.Instance, cancel context.CancelCauseFunc) (*state.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.schedule()
	admit := c.mid.Plugins.Members.Admit
	if inst.Candidate {
		admit = c.mid.Plugins.Members.AdmitRival
	}
	s, err := admit(inst.Entry.Name, inst.Ready, func(k *state.Plugin) *state.Session { return c.newSession(k, inst, cancel) })
	if s != nil && !inst.Candidate {
		c.IsAwake(s.Name())
	}
	return s, err
}

func (c *Control) newSession(k *state.Plugin, inst *host.Instance, cancel context.CancelCauseFunc) *state.Session {
	s := state.NewSession(k, inst.Ready, inst.Link, inst.Entry.MayStore, cancel, c.mid.State.Clock.Now())
	out := outbox.New(func(n uint64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.mid.Stages.Feeder.StateSent(s, n)
	}, func(m *pb.FromCore, why error) { c.undelivered(s, m, why) })
	out.Answered = func(m *pb.Stored) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.mid.Stages.Writes.StoredSent(s, m)
	}
	s.Say(out)
	return s
}

// leave takes a session out. Its shard and its views stay served.
func (c *Control) leave(s *state.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mid.Stages.Writes.Stores.Left(s)
	c.mid.Stages.Writes.TellStores()
	c.Abandon(s)
	c.mid.Plugins.Members.Dismiss(s)
	c.schedule()
}

// handle takes one message. An error ends the session and blames the plugin.
func (c *Control) handle(s *state.Session, m *pb.FromPlugin) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.schedule()
	switch {
	case m.Caller != nil && s.Kind().Authenticates():
		c.Handle(s, m.Caller.Id, m)
	case m.Called != nil && s.Kind().Answers():
		c.Handle(s, m.Called.Id, m)
	case m.Because != nil && s.Generates():
		c.HandleBecause(s, m.Because)
	default:
		return c.mid.Handle(s, m)
	}
	return nil
}

// undelivered takes back a call that was too large to be sent.
func (c *Control) undelivered(s *state.Session, m *pb.FromCore, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.schedule()
	if m.Explain != nil {
		c.HandleBecause(s, &pb.Because{Id: m.Explain.Id, Error: why.Error()})
		return
	}
	if c.mid.Undelivered(s, m, why); m.Authenticate != nil || m.Call != nil {
		c.Undelivered(s, m, why)
	}
}

// watch looks after a session until ctx ends.
func (c *Control) watch(ctx context.Context, s *state.Session, inst *host.Instance) {
	every, id := s.LookEvery(), uint64(1)
	meter := sched.NewMeter(inst.PID, every, time.Now())
	for range ticks.Every(ctx, every) {
		lost := meter.Lost(time.Now(), c.owes(s))
		if c.look(s, lost) {
			_ = inst.Link.Send(ctx, &pb.FromCore{Ping: &pb.Ping{Id: id}}) // costs no credit, so it never waits; an error is the session's end
			id++
		}
	}
}

// owes reports whether a limit runs for a plugin: something is expected of it.
func (c *Control) owes(s *state.Session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !s.State.Busy.IsZero() || !s.Watch.Pinged.At.IsZero() || s.Maker.Asked.Len() > 0 || c.Owes(s)
}

// look ends a session that hangs, and reports whether the plugin is to be pinged.
func (c *Control) look(s *state.Session, lost time.Duration) (ping bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.schedule()
	return c.mid.Plugins.Members.Inspect(s, c.mid.State.Clock.Now(), lost)
}
