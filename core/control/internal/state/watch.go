package state

import (
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/deadline"
	"github.com/coxswain-mesh/coxswain/core/placement"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
)

// Watch is what shows whether a session hangs.
type Watch struct {
	// Lost is how much time it lost to a busy machine.
	Lost     time.Duration
	Progress deadline.Moment
	// Pinged is when the ping was sent that it has not answered yet, Answered when it answered
	// last; Silent: it is marked, as it has not answered for so long.
	Pinged   deadline.Moment
	Silent   bool
	Answered time.Time
	// Needed is when somebody last needed it that starts on demand, as far as was looked.
	Needed time.Time
}

// Nothing hangs unseen: a plugin is pinged, whatever its kind, and what it owes has a deadline. A
// deadline counts the time that a plugin had: not that in which it could have run and the machine
// was busy with others (core/deadline).
const (
	PingEvery = 10 * time.Second
	lookEvery = time.Second
)

// Now is a moment of what is watched.
func (w *Watch) Now(at time.Time) deadline.Moment { return deadline.Moment{At: at, Lost: w.Lost} }

// Due is when a limit that began at a moment ends, as far as is known now.
func (w *Watch) Due(m deadline.Moment, limit time.Duration) time.Time { return m.End(limit, w.Lost) }

// Lose notes that time was lost to a busy machine.
func (w *Watch) Lose(lost time.Duration) { w.Lost += lost }

// Hear notes when it was last heard of, and when it last showed progress: a ping that was sent
// before is answered.
func (w *Watch) Hear(seen, progress, now time.Time) {
	if w.Pinged.At.IsZero() || !seen.Before(w.Pinged.At) {
		if w.Silent = false; !w.Pinged.At.IsZero() {
			w.Answered, w.Pinged = now, deadline.Moment{}
		}
	}
	if progress.After(w.Progress.At) {
		w.Progress = w.Now(progress)
	}
}

// Ping notes that it is pinged.
func (w *Watch) Ping(now time.Time) { w.Pinged = w.Now(now) }

// Mark notes that it is marked as silent.
func (w *Watch) Mark() { w.Silent = true }

// Need notes that somebody needs it.
func (w *Watch) Need(now time.Time) { w.Needed = now }

// LookEvery is how often the session is looked at: limits are kept to within a quarter of them.
func (s *Session) LookEvery() time.Duration {
	every := lookEvery
	for _, l := range []time.Duration{s.Limits().Progress, s.Limits().Revision} {
		if l > 0 {
			every = min(every, l/4)
		}
	}
	return max(every, 10*time.Millisecond)
}

// PingEvery is a third of the time after which a plugin counts as hung, so that it is known before.
func (s *Session) PingEvery() time.Duration {
	if l := s.Limits().Progress; l > 0 {
		return min(PingEvery, l/3)
	}
	return PingEvery
}

// Hangs says why a session counts as hung; nil: it doesn't.
func (s *Session) Hangs(now time.Time) error {
	over := func(m deadline.Moment, limit time.Duration) bool {
		return limit > 0 && !m.At.IsZero() && !now.Before(s.Watch.Due(m, limit))
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
		return carrier.Crossed("progress",
			"plugin %s did not finish revision %d: it showed no progress for limits.progress, %s", s.Name(),
			s.State.Sent, l.Progress)
	}
	return nil
}

// GaveUp says why a plugin that is to take another's place will not get ready: it leaves questions
// without an answer, and says that its work failed, or nothing for as long as it may take for a
// revision. Nobody else waits for its answers, so nobody would see.
func (s *Session) GaveUp(now time.Time) error {
	open := s.Maker.Asked.Len()
	if open == 0 {
		return nil
	}
	quiet := s.Link.LastProgress()
	if heard := s.Maker.Asked.Heard(); heard.After(quiet) {
		quiet = heard
	}
	switch l := s.Limits().Revision; {
	case s.Lines.Complaint != "" && now.Sub(quiet) >= placement.PieceLate:
		return fmt.Errorf("it left %d questions about views without an answer; it said: %s", open, s.Lines.Complaint)
	case l > 0 && !now.Before(s.Watch.Due(s.Maker.Asked.Since(), l)):
		return carrier.Crossed("revision", "it left %d questions about views without an answer for limits.revision, %s", open, l)
	}
	return nil
}
