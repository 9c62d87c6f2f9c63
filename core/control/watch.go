package control

import (
	"context"
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/deadline"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/host/sched"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/ticks"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
)

// Nothing hangs unseen: a plugin is pinged, whatever its kind, and what it owes has a deadline. A deadline counts the time that a plugin had: not
// that in which it could have run and the machine was busy with others (core/deadline).
const (
	pingEvery = 10 * time.Second
	lookEvery = time.Second
)

// now is a moment of what is watched.
func (w *Watch) now(at time.Time) deadline.Moment { return deadline.Moment{At: at, Lost: w.Lost} }

// due is when a limit that began at a moment ends, as far as is known now.
func (w *Watch) due(m deadline.Moment, limit time.Duration) time.Time { return m.End(limit, w.Lost) }

// watch looks after a session until ctx ends.
func (c *Control) watch(ctx context.Context, s *session, inst *host.Instance) {
	every, id := s.lookEvery(), uint64(1)
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
func (c *Control) owes(s *session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !s.State.Busy.IsZero() || !s.Watch.Pinged.At.IsZero() || s.Maker.Asked.Len() > 0 || c.questions.desk.Owes(s)
}

// lookEvery is how often the session is looked at: limits are kept to within a quarter of them.
func (s *session) lookEvery() time.Duration {
	every := lookEvery
	for _, l := range []time.Duration{s.Limits().Progress, s.Limits().Revision} {
		if l > 0 {
			every = min(every, l/4)
		}
	}
	return max(every, 10*time.Millisecond)
}

// pingEvery is a third of the time after which a plugin counts as hung, so that it is known before.
func (s *session) pingEvery() time.Duration {
	if l := s.Limits().Progress; l > 0 {
		return min(pingEvery, l/3)
	}
	return pingEvery
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
func (c *Control) look(s *session, now time.Time, lost time.Duration) (ping bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.schedule(now)
	return c.members.inspect(s, now, lost)
}

func (mb *members) inspect(s *session, now time.Time, lost time.Duration) (ping bool) {
	s.Watch.Lost += lost
	if mb.course.flight != nil {
		mb.course.flight.Lost(s.Name(), lost, now)
	}
	if seen := s.link.LastSeen(); s.Watch.Pinged.At.IsZero() || !seen.Before(s.Watch.Pinged.At) {
		if s.Watch.Silent = false; !s.Watch.Pinged.At.IsZero() {
			s.Watch.Answered, s.Watch.Pinged = now, deadline.Moment{}
		}
	}
	if p := s.link.LastProgress(); p.After(s.Watch.Progress.At) {
		s.Watch.Progress = s.Watch.now(p)
	}
	mb.results.askAgain(s, now)
	why := s.hangs(now)
	if rival := mb.roster.rivals[s.plugin]; why == nil && rival != nil && !rival.warm {
		why = s.gaveUp(now)
	}
	if why != nil {
		mb.metrics.Crossed(s.Name(), "hung")
		s.cancel(why)
		s.State.Busy, s.Watch.Pinged = time.Time{}, deadline.Moment{}
		return false
	}
	switch {
	case !s.Watch.Pinged.At.IsZero():
		if end := s.Watch.due(s.Watch.Pinged, s.pingEvery()); !s.Watch.Silent && !now.Before(end) {
			s.Watch.Silent = true
			mb.log.Warn("a plugin does not answer; what it said last stays", "plugin", s.Name(), "since", s.Watch.Pinged.At.UTC(), "limit", s.Limits().Progress)
		}
		return false
	case now.Sub(s.Watch.Answered) >= s.pingEvery():
		s.Watch.Pinged = s.Watch.now(now)
		return true
	}
	return false
}

// hangs says why a session counts as hung; nil: it doesn't.
func (s *session) hangs(now time.Time) error {
	over := func(m deadline.Moment, limit time.Duration) bool {
		return limit > 0 && !m.At.IsZero() && !now.Before(s.Watch.due(m, limit))
	}
	l := s.Limits()
	if over(s.Watch.Pinged, l.Progress) {
		return carrier.Crossed("progress", "plugin %s hangs: it answered no ping for limits.progress, %s", s.Name(), l.Progress)
	}
	if s.State.Busy.IsZero() {
		return nil
	}
	owed := deadline.Moment{At: s.State.Busy, Lost: s.State.BusyLost}
	if over(owed, l.Revision) {
		return carrier.Crossed("revision", "plugin %s did not finish revision %d: it took longer than limits.revision, %s", s.Name(), s.State.Sent, l.Revision)
	}
	last := s.Watch.Progress
	if last.At.Before(owed.At) {
		last = owed
	}
	if over(last, l.Progress) {
		return carrier.Crossed("progress", "plugin %s did not finish revision %d: it showed no progress for limits.progress, %s", s.Name(), s.State.Sent, l.Progress)
	}
	return nil
}

// gaveUp says why a plugin that is to take another's place will not get ready: it leaves questions without an answer, and says that its work failed, or
// nothing for as long as it may take for a revision. Nobody else waits for its answers, so nobody would see.
func (s *session) gaveUp(now time.Time) error {
	open := s.Maker.Asked.Len()
	if open == 0 {
		return nil
	}
	quiet := s.link.LastProgress()
	if heard := s.Maker.Asked.Heard(); heard.After(quiet) {
		quiet = heard
	}
	switch l := s.Limits().Revision; {
	case s.Lines.Complaint != "" && now.Sub(quiet) >= placement.PieceLate:
		return fmt.Errorf("it left %d questions about views without an answer; it said: %s", open, s.Lines.Complaint)
	case l > 0 && !now.Before(s.Watch.due(s.Maker.Asked.Since(), l)):
		return carrier.Crossed("revision", "it left %d questions about views without an answer for limits.revision, %s", open, l)
	}
	return nil
}

// askAgain has a patch that left a call without an answer asked again, so that it is known whether it answers at all before the next change needs it.
func (rs *results) askAgain(s *session, now time.Time) {
	p := rs.roster.patcher(s.Name())
	if p == nil || rs.roster.session(s.Name()) != s || !p.TryAgain(now, s.pingEvery()) {
		return
	}
	rs.screen.retryLate()
	rs.screen.settle()
}

// Stale says since when, and why, what a plugin said last may be out of date.
type Stale struct {
	Since time.Time
	Why   string
}

// staleness is the zero value for a plugin that is there and owes nothing for long.
func (pg *pages) staleness(k *known, now time.Time) Stale {
	if !k.away.IsZero() {
		if k.ready == nil {
			return Stale{}
		}
		return Stale{k.away, "away"}
	}
	s := pg.roster.session(k.Name())
	if s == nil {
		return Stale{}
	}
	overdue, since := pg.overdue(s)
	missed := Stale{}
	if p := pg.roster.patcher(k.Name()); p != nil {
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
	for name, k := range pg.roster.known {
		all[name] = pg.staleness(k, now)
	}
	return all
}
