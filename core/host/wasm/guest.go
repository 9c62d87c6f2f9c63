package wasm

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// guest is an instance and the session with it.
type guest struct {
	runner   *runner
	instance *instance
	link     *session.Core
	// at returns the rows that Get reads.
	at func() *state.State

	mu      sync.Mutex
	fetches int
	wakes   int
}

// start starts an instance.
func (r *runner) start(ctx context.Context) *guest {
	g := &guest{runner: r, at: r.rows.reached}
	g.instance = r.module.start(ctx, r.grants, r.cfg.Stderr, r.rows.read)
	r.watch.add(g.instance)
	g.link = session.NewCore(g.instance.stdio)
	return g
}

// greet says Hello. It returns what the module is, or nil if it refused its config, which the core
// is told.
func (g *guest) greet(ctx context.Context, forward func(context.Context, *pb.FromPlugin) error) (*pb.Ready, error) {
	if err := g.link.Send(ctx, &pb.FromCore{Hello: g.runner.hello}); err != nil {
		return nil, g.why(err)
	}
	for {
		m, cost, err := g.link.Recv(ctx)
		if err != nil {
			return nil, g.why(err)
		}
		g.link.Release(cost)
		switch {
		case m.Ready != nil:
			return m.Ready, nil
		case m.Refused != nil:
			return nil, forward(ctx, m)
		case g.assist(ctx, m):
		default:
			if err := forward(ctx, m); err != nil {
				return nil, err
			}
		}
	}
}

// why returns why the instance's session is over, in the module's words rather than the link's.
func (g *guest) why(err error) error {
	var cause error
	select {
	case <-g.instance.stdio.ended:
		cause = g.instance.stdio.cause()
	default:
	}
	switch {
	case cause != nil && !errors.Is(cause, io.EOF):
		return cause
	case cause != nil || errors.Is(err, io.EOF):
		return errors.New("the module ended by itself (status 0)")
	}
	return err
}

// end ends the instance: its input ends, and after grace it is stopped at its next call of the
// host. One that does not end even so is left to the watch.
func (g *guest) end(grace time.Duration) {
	_ = g.link.Close()
	select {
	case <-g.instance.stdio.ended:
		return
	case <-time.After(grace):
	}
	g.instance.stdio.stop()
	select {
	case <-g.instance.stdio.ended:
	case <-time.After(grace / 4):
	}
}

const (
	// wakes that an instance may wait for.
	wakes = 1024
	// longestWake is the longest time that one may be away.
	longestWake = 24 * time.Hour
)

// assist answers what the runner does for modules. It is false for all other messages.
func (g *guest) assist(ctx context.Context, m *pb.FromPlugin) bool {
	switch {
	case m.Get != nil:
		_ = g.link.Send(ctx, &pb.FromCore{Got: g.runner.rows.got(g.at(), m.Get)})
	case m.Fetch != nil:
		g.fetch(ctx, m.Fetch)
	case m.Wake != nil:
		g.wake(ctx, m.Wake)
	default:
		return false
	}
	return true
}

func (g *guest) fetch(ctx context.Context, m *pb.Fetch) {
	if !g.count(&g.fetches, fetches) {
		_ = g.link.Send(ctx, &pb.FromCore{Fetched: &pb.Fetched{Id: m.Id, Error: "too many fetches are under way"}})
		return
	}
	go func() {
		defer g.count(&g.fetches, -1)
		// The answer goes nowhere if the instance is gone.
		_ = g.link.Send(ctx, &pb.FromCore{Fetched: g.runner.fetcher.fetch(ctx, m)})
	}()
}

func (g *guest) wake(ctx context.Context, m *pb.Wake) {
	if !g.count(&g.wakes, wakes) {
		g.runner.grants.warn("wakes", "the module waits for more than 1024 Wakes; further ones are not answered")
		return
	}
	time.AfterFunc(min(time.Duration(min(m.AfterMs, 1<<40))*time.Millisecond, longestWake), func() {
		defer g.count(&g.wakes, -1)
		_ = g.link.Send(ctx, &pb.FromCore{Tick: &pb.Tick{Id: m.Id}})
	})
}

// count takes one of most, or gives one back for -1. It is false if there was none left.
func (g *guest) count(n *int, most int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case most < 0:
		*n--
	case *n >= most:
		return false
	default:
		*n++
	}
	return true
}
