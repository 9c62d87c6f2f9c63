package sched

import "time"

// Meter measures how much time a process loses to a busy machine.
type Meter struct {
	pid   int
	every time.Duration
	last  time.Time
	times Times
}

// NewMeter returns one for a process that is looked at so often, from now on.
func NewMeter(pid int, every time.Duration, now time.Time) *Meter {
	return &Meter{pid: pid, every: every, last: now}
}

// Lost returns how much time was lost since the last call, of a process that owed something then
// and does so now: what the others wait for matters to nobody, and costs something to know.
func (m *Meter) Lost(now time.Time, owes bool) time.Duration {
	interval, before := now.Sub(m.last), m.times
	m.last, m.times = now, Times{}
	if !owes {
		return 0
	}
	times, ok := Read(m.pid)
	m.times = times
	if interval > 2*m.every { // this process did not run either: nobody can say what the other might have done
		return interval - m.every
	}
	if !ok || before == (Times{}) {
		return 0
	}
	return Lost(before, times, interval)
}
