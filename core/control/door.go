package control

import (
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/state"
)

// timed is a lock that sets a clock.
type timed struct {
	sync.Mutex
	clock *state.Clock
}

// Lock implements sync.Locker.
func (g *timed) Lock() {
	g.Mutex.Lock()
	g.clock.Set(time.Now())
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
