package control

import (
	"sync"
	"time"
)

// clock is the time of what happens: when the lock was taken for it.
type clock struct{ at time.Time }

func (k *clock) set(now time.Time) { k.at = now }

// Now is that time.
func (k *clock) Now() time.Time { return k.at }

// timed is a lock that sets a clock.
type timed struct {
	sync.Mutex
	clock *clock
}

// Lock implements sync.Locker.
func (g *timed) Lock() {
	g.Mutex.Lock()
	g.clock.set(time.Now())
}

// door is the lock for what clients do: one of them at a time waits for the lock itself. So what plugins say, edits above all, waits for one client,
// though thousands come at once.
type door struct {
	queue sync.Mutex
	inner *timed
}

// Lock implements sync.Locker.
func (d *door) Lock() {
	d.queue.Lock()
	d.inner.Lock()
}

// Unlock implements sync.Locker.
func (d *door) Unlock() {
	d.inner.Unlock()
	d.queue.Unlock()
}
