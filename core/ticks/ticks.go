// Package ticks is for those who look at something again and again. All of them are woken at the
// same instants, as far as their intervals have some in common: each time that a process wakes from
// idleness costs much more than a look.
package ticks

import (
	"context"
	"iter"
	"time"
)

// Every yields at each multiple of an interval on the clock, until ctx ends: the first after less
// than the interval. Multiples that pass while a turn of the loop lasts are left out.
func Every(ctx context.Context, interval time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		timer := time.NewTimer(untilNext(interval))
		defer timer.Stop()
		for {
			select {
			case now := <-timer.C:
				if !yield(now) {
					return
				}
				timer.Reset(untilNext(interval))
			case <-ctx.Done():
				return
			}
		}
	}
}

func untilNext(interval time.Duration) time.Duration {
	return interval - time.Duration(time.Now().UnixNano()%int64(interval))
}
