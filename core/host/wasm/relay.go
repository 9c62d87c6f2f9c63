package wasm

import (
	"context"
	"errors"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// errDrained says that the core has asked the plugin to end.
var errDrained = errors.New("drained")

// relay serves a long-running plugin: one instance, which gets every message that a process would
// get.
func (r *runner) relay(ctx context.Context, g *guest) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	down := make(chan error, 1)
	go func() {
		err := r.down(ctx, g)
		if !errors.Is(err, errDrained) {
			cancel(err)
		}
		down <- err
	}()
	go r.progress(ctx, g)
	err := r.upward(ctx, g)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	cancel(err)
	if errors.Is(<-down, errDrained) {
		return nil
	}
	return err
}

// down passes the core's messages on to the instance. It ends with errDrained after Drain.
func (r *runner) down(ctx context.Context, g *guest) error {
	for {
		m, cost, err := r.up.Recv(ctx)
		if err != nil {
			return err
		}
		if m.State != nil {
			if err := r.rows.apply(m.State); err != nil {
				return err
			}
		}
		if err := g.link.Send(ctx, m); err != nil {
			return g.why(err)
		}
		r.up.Release(cost)
		if m.Drain != nil {
			return errDrained
		}
	}
}

// upward passes the instance's messages on to the core, but for those that the runner answers.
func (r *runner) upward(ctx context.Context, g *guest) error {
	for {
		m, cost, err := g.link.Recv(ctx)
		if err != nil {
			return g.why(err)
		}
		if !g.assist(ctx, m) && !second(m) {
			if err := r.up.Send(ctx, m); err != nil {
				return err
			}
		}
		g.link.Release(cost)
	}
}

// progress passes on signs of life, which the session with the instance has dealt with.
func (r *runner) progress(ctx context.Context, g *guest) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last := g.link.LastProgress(); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if now := g.link.LastProgress(); now.After(last) {
			last = now
			_ = r.up.Send(ctx, &pb.FromPlugin{Progress: &pb.Progress{}})
		}
	}
}

// second reports whether a message comes once in a session, before all others.
func second(m *pb.FromPlugin) bool { return m.Ready != nil || m.Refused != nil }
