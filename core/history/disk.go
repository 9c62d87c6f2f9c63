package history

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// patience is how long a disk may take while somebody waits for what he asked: less than the 5 s in
// which commands are to have an answer. Nobody waits any more for a disk that has taken longer,
// until it has done what it was at.
const patience = 3 * time.Second

// errLate is that the disk has not done in time what it was asked.
var errLate = errors.New("the disk does not answer")

// disk does what touches files: one thing at a time, each on a goroutine of its own, for nothing
// can end a call of the system that hangs. Who asks must hold no lock.
type disk struct {
	turn chan struct{} // holds one value while something is done
	late atomic.Bool   // what is done has been given up by who asked for it
	// caughtUp is called when what was late is done.
	caughtUp func()
}

func newDisk(caughtUp func()) *disk {
	return &disk{turn: make(chan struct{}, 1), caughtUp: caughtUp}
}

// on returns what do returns, or errLate when ctx ends before. Do may go on then, and end some day.
func on[T any](ctx context.Context, d *disk, do func() T) (out T, err error) {
	if d.late.Load() {
		return out, errLate
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
		return out, errLate
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
		return out, errLate
	}
}
