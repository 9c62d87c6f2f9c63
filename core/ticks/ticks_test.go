package ticks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Loops that began at different times are woken together, at multiples of their intervals.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		seen := func(interval, after time.Duration) []time.Time {
			time.Sleep(after)
			var at []time.Time
			for now := range Every(ctx, interval) {
				at = append(at, now)
				if len(at) == 3 {
					time.Sleep(interval * 5 / 2)
				}
				if len(at) == 5 {
					break
				}
			}
			return at
		}
		slow := make(chan []time.Time)
		go func() { slow <- seen(200*time.Millisecond, 30*time.Millisecond) }()
		began := time.Now()
		check(t, began, seen(100*time.Millisecond, 70*time.Millisecond), 100, 200, 300, 600, 700)
		check(t, began, <-slow, 200, 400, 600, 1200, 1400)
		stop()
		for range Every(ctx, time.Hour) {
			t.Error("it goes on though its context has ended")
			break
		}
	})
}

func check(t *testing.T, began time.Time, at []time.Time, want ...int) {
	t.Helper()
	for i, w := range want {
		if got := at[i].Sub(began); got != time.Duration(w)*time.Millisecond {
			t.Errorf("turn %d came after %v, want %d ms", i+1, got, w)
		}
	}
}
