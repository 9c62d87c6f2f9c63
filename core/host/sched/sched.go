// Package sched says how long a process has run, and for how long it wanted to and the machine was
// busy with others.
package sched

import "time"

// Times of a process, of all its threads together, since they began.
type Times struct {
	// Ran is processor time. Waited is the time in which a thread could have run and no processor
	// was free.
	Ran, Waited time.Duration
}

// Lost returns how much of an interval a process lost because the machine was busy: nothing while
// it slept or ran, whatever it wanted.
func Lost(before, now Times, interval time.Duration) time.Duration {
	ran, waited := now.Ran-before.Ran, now.Waited-before.Waited
	if ran < 0 || waited <= 0 || interval <= 0 {
		return 0 // threads ended
	}
	if wanted := ran + waited; wanted > interval { // by several threads: their share
		waited = time.Duration(float64(waited) * float64(interval) / float64(wanted))
	}
	return waited
}
