package calls

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// crowd calls, and counts what has places.
type crowd struct {
	*turns
	t *testing.T
	// started are how many calls of each caller got places, done what gives them back.
	started map[string]int
	done    map[string][]func()
	failed  int
	results chan result
}

type result struct {
	who   string
	leave func()
	err   error
}

func newCrowd(t *testing.T) *crowd {
	return &crowd{turns: newTurns(), t: t, started: map[string]int{}, done: map[string][]func(){}, results: make(chan result, 10_000)}
}

// call calls so many times at once.
func (c *crowd) call(ctx context.Context, who string, times, size int) {
	for range times {
		go func() {
			leave, err := c.acquire(ctx, who, size)
			c.results <- result{who, leave, err}
		}()
		synctest.Wait()
	}
	c.settle()
}

// settle waits until nobody gets on by itself.
func (c *crowd) settle() {
	synctest.Wait()
	for {
		select {
		case r := <-c.results:
			if r.err != nil {
				c.failed++
				continue
			}
			c.started[r.who]++
			c.done[r.who] = append(c.done[r.who], r.leave)
		default:
			return
		}
	}
}

// end ends a call of a caller.
func (c *crowd) end(who string) {
	c.t.Helper()
	if len(c.done[who]) == 0 {
		c.t.Fatalf("%s has no call in hand", who)
	}
	c.done[who][0]()
	c.done[who] = c.done[who][1:]
	c.settle()
}

// One who calls two hundred times at once holds half of the places, and whoever else calls goes
// before the rest of the two hundred. All are served in the end.
func TestAFloodWaitsForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.call(t.Context(), "evil", 200, 100)
		if n := c.started["evil"]; n != mostAtOnce/2 {
			t.Errorf("%d of the flood were started, want half of %d", n, mostAtOnce)
		}
		c.call(t.Context(), "demo", 1, 100)
		if c.started["demo"] != 1 || c.started["evil"] != mostAtOnce/2 {
			t.Errorf("started: %v, want demo's call next", c.started)
		}
		for len(c.done["evil"]) > 0 {
			c.end("evil")
		}
		c.end("demo")
		if c.started["evil"] != 200 || c.free != mostAtOnce || c.size() != 0 {
			t.Errorf("started %v, %d places are free and %d callers known, want all served and nobody known", c.started, c.free, c.size())
		}
	})
}

// Where places are short those who have none go first, in turn.
func TestCallersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.call(t.Context(), "evil", 200, 100)
		for i := range mostAtOnce / 2 {
			c.call(t.Context(), string(rune('A'+i)), 1, 100)
		}
		if c.free != 0 {
			t.Fatalf("%d places are free", c.free)
		}
		c.call(t.Context(), "x", 3, 100)
		c.call(t.Context(), "y", 3, 100)
		was := c.started["evil"]
		c.end("A")
		c.end("B")
		if c.started["x"] != 1 || c.started["y"] != 1 || c.started["evil"] != was {
			t.Errorf("started: %v, want one of x and one of y, and no further one of the flood", c.started)
		}
	})
}

// A call whose deadline passes leaves the queue: nothing of it is left, and it is never started.
func TestWhoseDeadlinePassesLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.call(t.Context(), "evil", mostAtOnce/2, 100)
		c.call(short, "evil", 50, 100)
		time.Sleep(2 * time.Second)
		c.settle()
		if c.failed != 50 || c.ring.Len() != 0 {
			t.Errorf("%d gave up, and %d callers wait, want 50 and none", c.failed, c.ring.Len())
		}
		for len(c.done["evil"]) > 0 {
			c.end("evil")
		}
		if c.started["evil"] != mostAtOnce/2 || c.size() != 0 || c.free != mostAtOnce {
			t.Errorf("started %v, %d callers known, %d places free", c.started, c.size(), c.free)
		}
		if _, err := c.acquire(short, "late", 1); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// Large calls take several places, so that those in hand are never more bytes than a plugin may
// owe; they get them in their turn.
func TestLargeCallsTakeMorePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.call(t.Context(), "evil", 10, 1<<20)
		if c.started["evil"] != 2 || c.free != mostAtOnce-2*17 {
			t.Errorf("%d of a megabyte are started, %d places are left", c.started["evil"], c.free)
		}
		c.call(t.Context(), "demo", 1, 8<<20)
		c.call(t.Context(), "other", 1, 100)
		if c.started["demo"] != 0 || c.started["other"] != 0 {
			t.Errorf("started %v, want demo's to wait for room, and nobody to pass it", c.started)
		}
		c.end("evil")
		if c.started["demo"] != 1 || c.started["other"] != 1 {
			t.Errorf("started %v", c.started)
		}
	})
}
