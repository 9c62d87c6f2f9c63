package kube

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRetry: pauses grow from a second to a minute, and begin anew once all is done.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Retry
		waits := func(want ...time.Duration) {
			t.Helper()
			for _, w := range want {
				began := time.Now()
				<-r.After(false)
				if got := time.Since(began); got != w {
					t.Errorf("it waits for %v, not %v", got, w)
				}
			}
		}
		waits(time.Second, 2*time.Second, 4*time.Second)
		if r.After(true) != nil {
			t.Error("it waits though all is done")
		}
		waits(time.Second, 2*time.Second, 4*time.Second, 8*time.Second, 16*time.Second, 32*time.Second, time.Minute, time.Minute)
	})
}
