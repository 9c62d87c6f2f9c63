package control

import (
	"context"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/host/sched"
	"github.com/coxswain-mesh/coxswain/core/state"
	"github.com/coxswain-mesh/coxswain/core/status"
	"github.com/coxswain-mesh/coxswain/core/ticks"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// watch looks after a session until ctx ends.
func (c *Control) watch(ctx context.Context, s *state.Session, inst *host.Instance) {
	every, id := s.LookEvery(), uint64(1)
	w := &watcher{every: every, last: time.Now(), pid: inst.PID}
	for range ticks.Every(ctx, every) {
		lost := w.lost(time.Now(), c.owes(s))
		if c.look(s, time.Now(), lost) {
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

// watcher measures how much time a plugin loses.
type watcher struct {
	every time.Duration
	last  time.Time
	pid   int
	times sched.Times
}

// lost returns how much time was lost since the last call, of a plugin that owed something then and does so now: what the others wait for matters to
// nobody, and costs something to know.
func (w *watcher) lost(now time.Time, owes bool) time.Duration {
	interval, before := now.Sub(w.last), w.times
	w.last, w.times = now, sched.Times{}
	if !owes {
		return 0
	}
	times, ok := sched.Read(w.pid)
	w.times = times
	if interval > 2*w.every { // this process did not run either: nobody can say what the plugin might have done
		return interval - w.every
	}
	if !ok || before == (sched.Times{}) {
		return 0
	}
	return sched.Lost(before, times, interval)
}

// look ends a session that hangs, and reports whether the plugin is to be pinged.
func (c *Control) look(s *state.Session, now time.Time, lost time.Duration) (ping bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.schedule(now)
	return c.plugins.Members.Inspect(s, now, lost)
}

// Stale returns for each plugin whether its last words may be out of date.
func (c *Control) Stale() map[string]status.Stale {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.Stale()
}
