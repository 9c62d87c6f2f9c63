package session

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
)

// outbox is the sending half: frames in order, and the credit that they need. It is guarded by
// Link.mu.
type outbox struct {
	credit  uint64
	queue   [][]byte
	waiting []*waiter
	queued  int
	most    int
}

// waiter is a sender that waits for credit.
type waiter struct {
	frame []byte
	ready chan struct{}
}

// push queues a frame if there is credit for it and nobody waits before it; otherwise it returns a
// waiter.
func (o *outbox) push(frame []byte, free bool) *waiter {
	if free {
		o.enqueue(frame)
		return nil
	}
	if len(o.waiting) == 0 && o.admitNow(frame) {
		return nil
	}
	w := &waiter{frame: frame, ready: make(chan struct{})}
	o.waiting = append(o.waiting, w)
	return w
}

// give adds credit and lets those pass for whom it is enough, in order.
func (o *outbox) give(n uint64) error {
	if o.credit+n > 1<<40 {
		return text.Error("the other side gave ", n, " bytes of credit, more than it can mean")
	}
	o.credit += n
	o.admit()
	return nil
}

func (o *outbox) admit() {
	for len(o.waiting) > 0 && o.admitNow(o.waiting[0].frame) {
		close(o.waiting[0].ready)
		o.waiting[0] = nil
		o.waiting = o.waiting[1:]
	}
}

// leave takes back a waiter; false if its frame was queued meanwhile.
func (o *outbox) leave(w *waiter) bool {
	i := slices.Index(o.waiting, w)
	if i < 0 {
		return false
	}
	o.waiting = slices.Delete(o.waiting, i, i+1)
	o.admit()
	return true
}

func (o *outbox) admitNow(frame []byte) bool {
	cost := uint64(Cost(len(frame)))
	if cost > o.credit {
		return false
	}
	o.credit -= cost
	o.enqueue(frame)
	return true
}

func (o *outbox) enqueue(frame []byte) {
	o.queue = append(o.queue, frame)
	o.queued += len(frame)
	o.most = max(o.most, o.queued)
}

// pop returns the next frame, nil if there is none.
func (o *outbox) pop() []byte {
	if len(o.queue) == 0 {
		return nil
	}
	frame := o.queue[0]
	o.queue[0] = nil
	o.queue = o.queue[1:]
	o.queued -= len(frame)
	if len(o.queue) == 0 {
		o.queue = nil
	}
	return frame
}
