package xds

import (
	"sync/atomic"
	"time"
)

// slow counts the streams whose clients take nothing of what is being sent, and have yielded to
// others. Where there are many the next are not waited for as long: one after the other, thousands
// that never read would keep all others from their turns.
type slow struct{ streams atomic.Int32 }

const (
	// manySlow is from how many on patience is short, by shorter times.
	manySlow = 16
	shorter  = 20
)

// patience is how long a client may take nothing before others go on.
func (s *slow) patience(after time.Duration) time.Duration {
	if s.streams.Load() < manySlow {
		return after
	}
	return after / shorter
}

// note notes whether a stream has yielded, which it may do again.
func (s *slow) note(st *stream, yielded bool) {
	switch {
	case yielded && !st.yielded:
		s.streams.Add(1)
	case !yielded && st.yielded:
		s.streams.Add(-1)
	}
	st.yielded = yielded
}
