package control

import "sync"

// door is the lock for what clients do: one of them at a time waits for the lock itself. So what plugins say, edits above all, waits for one client,
// though thousands come at once.
type door struct {
	queue sync.Mutex
	inner *sync.Mutex
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
