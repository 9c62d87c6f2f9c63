package control

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/state"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// Run drives what depends on time, until ctx ends.
func (c *Control) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		c.mu.Lock()
		next := c.due(c.state.Clock.Now())
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
	c.state.Course.Closed = true
	for _, conn := range c.state.Connections.All {
		conn.Wake(xds.WakeAll)
	}
}

// schedule begins what is due. Every event ends with it.
func (c *Control) schedule() {
	c.due(c.state.Clock.Now())
	c.state.Course.Ring()
}

// due begins what is due, and returns when to look again; the zero time if nothing waits.
func (c *Control) due(now time.Time) (next time.Time) {
	at := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	c.stages.Results.Overdue(now, at)
	c.stages.Writes.LateStores(now, at)
	c.stages.Sleepers.Slumber(now, at)
	for s := range c.state.Roster.AllSessions() {
		s.Give(now, at)
	}
	c.serving.Placer.Expire(now, at)
	if !c.state.Course.Started {
		c.stages.Feeder.TellEarly()
	}
	if !c.state.Course.Started && c.state.Course.Flight == nil && len(c.stages.Pipeline.Unready()) > 0 {
		return next
	}
	c.stages.Feeder.FeedShadows()
	c.plugins.Departure.Part(now, at)
	if c.plugins.Departure.Parting == nil {
		c.stages.Pipeline.Drop(now, at)
	}
	if c.plugins.Trials.Meets(now, at) {
		return next
	}
	c.serving.Losses.OverHolds()
	for c.state.Course.Flight == nil {
		endpoints, rest := c.state.Env.Pending()
		due := c.state.Course.Debounce.Due()
		switch {
		case !c.state.Course.Started, c.state.Course.Soon, len(c.state.Course.Forced) > 0, !due.IsZero() && !due.After(now):
			c.stages.Pipeline.Begin(revision.Full, nil, false, now)
		case endpoints && !c.cfg.DebounceEndpoints && c.stages.Pipeline.Paced(now, at):
			c.stages.Pipeline.Begin(revision.Endpoints, c.state.Env.Ahead, false, now)
		case c.stages.Pipeline.Tidy(now, at):
			c.stages.Pipeline.Begin(revision.Full, nil, false, now)
		default:
			if rest || endpoints {
				at(due)
			}
			return next
		}
	}
	c.stages.Pipeline.Hold(now, at)
	return next
}

// ring makes Run look at the time again.
func (c *Control) ring() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
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

// door is the lock for what clients do: one of them at a time waits for the lock itself. So what
// plugins say, edits above all, waits for one client, though thousands come at once.
type door struct {
	queue sync.Mutex
	inner *timed
}

// Lock implements sync.Locker.
func (d *door) Lock() {
	d.queue.Lock()
	d.inner.Lock()
}

// Unlock implements sync.Locker.
func (d *door) Unlock() {
	d.inner.Unlock()
	d.queue.Unlock()
}
