// Package deadline counts time that a plugin had. A limit does not count time in which a plugin
// could have run and the machine was busy with others, nor time in which the core itself did not
// run; but it is not put off beyond Patience times itself.
package deadline

import "time"

// Patience is how many times a limit may pass before it counts, whatever was lost.
const Patience = 10

// Moment is a time, and how much time the plugin had lost by then.
type Moment struct {
	At   time.Time
	Lost time.Duration
}

// End is when a limit that began at the moment ends, as far as is known when the plugin has lost so
// much in all.
func (m Moment) End(limit, lost time.Duration) time.Time {
	return m.At.Add(limit + min(lost-m.Lost, (Patience-1)*limit))
}
