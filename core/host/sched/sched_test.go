package sched

import (
	"testing"
	"time"
)

func TestLost(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name        string
		ran, waited time.Duration
		want        time.Duration
	}{
		{"sleeps", 0, 0, 0},
		{"spins on a machine that is free", s, 0, 0},
		{"spins, and gets a tenth", s / 10, 9 * s / 10, 9 * s / 10},
		{"sleeps, and waits a moment when it wakes", 0, s / 100, s / 100},
		{"two threads on one processor", s, s, s / 2},
		{"a thread has ended", -s, -s, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := Times{Ran: time.Minute, Waited: time.Minute}
			now := Times{Ran: before.Ran + c.ran, Waited: before.Waited + c.waited}
			if got := Lost(before, now, s); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
