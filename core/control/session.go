package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/coxswain-mesh/coxswain/core/feed"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/outbox"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"golang.org/x/time/rate"
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.plugins.Members.Learn(inst.Entry.Name, inst.Ready); err != nil {
		return err
	}
	c.schedule(c.state.Clock.Now())
	return nil
}

// join takes a session in: it is sent everything it reads, and what it makes of it comes with a revision of its own.
func (c *Control) join(inst *host.Instance, cancel context.CancelCauseFunc) (*state.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	admit := c.plugins.Members.Admit
	if inst.Candidate {
		admit = c.plugins.Members.AdmitRival
	}
	s, err := admit(inst.Entry.Name, inst.Ready, func(k *state.Plugin) *state.Session { return c.newSession(k, inst, cancel) })
	if err != nil && !errors.Is(err, host.ErrAsleep) {
		return nil, err
	}
	if s != nil && !inst.Candidate {
		c.IsAwake(s.Name())
	}
	c.schedule(c.state.Clock.Now())
	return s, err
}

func (c *Control) newSession(k *state.Plugin, inst *host.Instance, cancel context.CancelCauseFunc) *state.Session {
	s := &state.Session{
		Plugin: k, Link: inst.Link, MayStore: inst.Entry.MayStore, Cancel: cancel, Feed: feed.New(inst.Ready.Reads),
		Watch:  state.Watch{Answered: c.state.Clock.Now()},
		Source: state.Source{Candidate: map[string]map[string]*pb.Row{}},
		Lines:  state.Lines{Limit: rate.NewLimiter(state.LogsPerSecond, state.LogsAtOnce)},
		Maker: state.Maker{
			Turns: placement.NewTurns[*state.Connection](), Asked: placement.NewAsked(), Unused: placement.NewUnused(),
			Extensions: map[uint64]int{}, Attached: map[uint64]bool{},
		},
	}
	s.Out = outbox.New(func(n uint64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stages.Feeder.StateSent(s, n)
	}, func(m *pb.FromCore, why error) { c.undelivered(s, m, why) })
	s.Out.Answered = func(m *pb.Stored) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stages.Writes.StoredSent(s, m)
	}
	return s
}

// leave takes a session out. Its shard and its views stay served.
func (c *Control) leave(s *state.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stages.Writes.Stores.Left(s)
	c.stages.Writes.TellStores()
	c.Abandon(s)
	c.plugins.Members.Dismiss(s)
	c.schedule(c.state.Clock.Now())
}

// handle takes one message. An error ends the session and blames the plugin.
func (c *Control) handle(s *state.Session, m *pb.FromPlugin) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.state.Clock.Now()
	defer c.schedule(now)
	switch {
	case m.Rows != nil:
		return c.stages.Intake.TakeRows(s, m.Rows, now)
	case m.Synced != nil:
		return c.stages.Intake.TakeSynced(s, now)
	case m.Done != nil:
		return c.stages.Pipeline.TakeDone(s, m.Done, now)
	case m.Log != nil:
		c.state.Roster.TakeLog(s, m.Log)
	case m.Lost != nil && state.PublishesRows(s.Plugin.Ready):
		c.stages.Intake.SourceLost(s, m.Lost.Reason, now)
	case m.Found != nil && state.PublishesRows(s.Plugin.Ready):
		c.stages.Intake.SourceFound(s, now)
	case m.Progress != nil, m.Pong != nil, m.Credit != nil:
	case m.Store != nil:
		return c.stages.Writes.TakeStore(s, m.Store, now)
	case m.Stored != nil:
		c.stages.Writes.TakeStored(s, m.Stored)
	case m.Caller != nil && s.Kind() == pb.KindAuthenticator:
		c.Take(s, m.Caller.Id, m)
	case m.Called != nil && s.Kind() == pb.KindController:
		c.Take(s, m.Called.Id, m)
	case s.Generates():
		err := c.serving.Placer.TakeGenerated(s, m)
		if m.Wanted != nil {
			c.stages.Pipeline.Advance(now)
		}
		return err
	case m.Patched != nil && s.Kind() == pb.KindPatch:
		return c.stages.Results.TakePatched(s, m.Patched)
	default:
		c.cfg.Metrics.Unknown(s.Name(), "message", 1)
	}
	return nil
}
