package control

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// Run drives what depends on time, until ctx ends.
func (c *Control) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		c.mu.Lock()
		next := c.mid.Due()
		c.mu.Unlock()
		wait := time.Hour
		if !next.IsZero() {
			wait = max(time.Until(next), 0)
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-c.wake:
		case <-ctx.Done():
			c.end()
			return nil
		}
	}
}

func (c *Control) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mid.State.Course.Close()
	for _, conn := range c.mid.State.Connections.All {
		conn.Wake(xds.WakeAll)
	}
}

// schedule begins what is due. Every event ends with it.
func (c *Control) schedule() {
	c.mid.Due()
	c.mid.State.Course.Ring()
}

// ring makes Run look at the time again.
func (c *Control) ring() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// do does something under the lock, and then what is due.
func (c *Control) do(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.schedule()
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

// shell is the lock for core/control/operations.
type shell struct {
	*timed
	c *Control
}

// Do implements operations.Shell.
func (s shell) Do(f func() error) error { return s.c.do(f) }

// Await implements operations.Shell.
func (s shell) Await(ctx context.Context, answer <-chan error, leave func()) error {
	return s.c.await(ctx, answer, leave)
}

// timed is a lock that sets a clock.
type timed struct {
	sync.Mutex
	clock *state.Clock
}

// Lock implements sync.Locker.
func (g *timed) Lock() {
	g.Mutex.Lock()
	g.clock.Set(time.Now())
}

// clientLock is the lock for what clients do: one of them at a time waits for the lock itself. So
// what plugins say, edits above all, waits for one client, though thousands come at once.
type clientLock struct {
	queue sync.Mutex
	inner *timed
}

// Lock implements sync.Locker.
func (l *clientLock) Lock() {
	l.queue.Lock()
	l.inner.Lock()
}

// Unlock implements sync.Locker.
func (l *clientLock) Unlock() {
	l.inner.Unlock()
	l.queue.Unlock()
}
