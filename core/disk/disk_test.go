package disk

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestOn: what is late is late for those who asked and those who come then, until it is done.
func TestOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caught := 0
		d := New(func() { caught++ })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		stuck := make(chan struct{})
		if _, err := On(ctx, d, func() int { <-stuck; return 1 }); !errors.Is(err, ErrLate) {
			t.Error(err)
		}
		ran := false
		if _, err := On(t.Context(), d, func() int { ran = true; return 2 }); !errors.Is(err, ErrLate) || ran {
			t.Error(err, ran)
		}
		close(stuck)
		synctest.Wait()
		if got, err := On(t.Context(), d, func() int { return 3 }); got != 3 || err != nil || caught != 1 {
			t.Error(got, err, caught)
		}
	})
}
