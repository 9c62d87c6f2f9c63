// Package disk bounds how long anybody waits for a disk. A call of the system that hangs, on a disk
// that fails or a server of files that is away, can't be ended; who asked for it can go on.
package disk

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Patience is how long a disk may take while somebody waits for what he asked: less than the 5 s in
// which commands are to have an answer. Nobody waits any more for a disk that has taken longer,
// until it has done what it was at.
const Patience = 3 * time.Second

// ErrLate is that the disk has not done in time what it was asked.
var ErrLate = errors.New("the disk does not answer")

// Disk does what touches files: one thing at a time, each on a goroutine of its own. Who asks
// should hold no lock.
type Disk struct {
	turn     chan struct{} // holds one value while something is done
	late     atomic.Bool   // what is done has been given up by who asked for it
	caughtUp func()
}

// New returns one. caughtUp, which may be nil, is called when something is done that was late.
func New(caughtUp func()) *Disk {
	if caughtUp == nil {
		caughtUp = func() {}
	}
	return &Disk{turn: make(chan struct{}, 1), caughtUp: caughtUp}
}

// On returns what do returns, or ErrLate when ctx ends before. Do may go on then, and end some day.
func On[T any](ctx context.Context, d *Disk, do func() T) (out T, err error) {
	if d.late.Load() {
		return out, ErrLate
	}
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		d.late.Store(true)
		select {
		case d.turn <- struct{}{}: // just now
			<-d.turn
			d.late.Store(false)
		default:
		}
		return out, ErrLate
	}
	done := make(chan T, 1)
	go func() {
		done <- do()
		<-d.turn
		if d.late.CompareAndSwap(true, false) {
			d.caughtUp()
		}
	}()
	select {
	case out = <-done:
		return out, nil
	case <-ctx.Done():
	}
	d.late.Store(true)
	select {
	case out = <-done: // just now, and perhaps before it was called late
		d.late.Store(false)
		return out, nil
	default:
		return out, ErrLate
	}
}
