package control

import (
	"context"
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/host/sched"
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
	return !s.State.Busy.IsZero() || !s.Watch.Pinged.At.IsZero() || s.Maker.Asked.Len() > 0 || c.questions.desk.Owes(s)
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

// Stale says since when, and why, what a plugin said last may be out of date.
type Stale struct {
	Since time.Time
	Why   string
}

// staleness is the zero value for a plugin that is there and owes nothing for long.
func (pg *pages) staleness(k *state.Plugin, now time.Time) Stale {
	if !k.Away.IsZero() {
		if k.Ready == nil {
			return Stale{}
		}
		return Stale{k.Away, "away"}
	}
	s := pg.roster.Session(k.Name())
	if s == nil {
		return Stale{}
	}
	overdue, since := pg.overdue(s)
	missed := Stale{}
	if p := pg.roster.Patcher(k.Name()); p != nil {
		missed.Since, missed.Why = p.Stale()
	}
	switch {
	case s.Watch.Silent:
		return Stale{s.Watch.Pinged.At, "hung: it answers no ping"}
	case missed.Why != "":
		return missed
	case overdue > 0:
		return Stale{since, fmt.Sprintf("hung: %d questions without an answer", overdue)}
	case !s.State.Busy.IsZero() && now.Sub(s.State.Busy) >= pg.holdMax:
		return Stale{s.State.Busy, fmt.Sprintf("late: it is not done with revision %d", s.State.Sent)}
	}
	return Stale{}
}

// Stale returns for each plugin whether its last words may be out of date.
func (c *Control) Stale() map[string]Stale {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.stale()
}

func (pg *pages) stale() map[string]Stale {
	now := pg.clock.Now()
	all := map[string]Stale{}
	for name, k := range pg.roster.Plugins {
		all[name] = pg.staleness(k, now)
	}
	return all
}
