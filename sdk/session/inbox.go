package session

import "github.com/coxswain-mesh/coxswain/sdk/internal/text"

// maxFree bounds messages that cost no credit and were not taken yet: Hello, Ready, Drain and the
// like come once.
const maxFree = 64

// inbox is the receiving half: what has arrived and was not taken yet. It is guarded by Link.mu.
type inbox[In Message] struct {
	// left is what the other side may still send.
	left uint64
	// owed is credit that was released and not given back yet.
	owed   uint64
	queue  []received[In]
	free   int
	queued int
	most   int
}

type received[In Message] struct {
	m    In
	cost int
	free bool
}

// charge books a message of some cost.
func (i *inbox[In]) charge(cost int) error {
	if uint64(cost) > i.left {
		return text.Error("the other side sent a message that costs ", cost, " bytes with ", i.left, " bytes of credit left")
	}
	i.left -= uint64(cost)
	return nil
}

func (i *inbox[In]) push(r received[In]) error {
	if r.free {
		if i.free++; i.free > maxFree {
			return text.Error("the other side sent more than ", maxFree, " messages that cost no credit and come once")
		}
	}
	i.queue = append(i.queue, r)
	i.queued += r.cost
	i.most = max(i.most, i.queued)
	return nil
}

func (i *inbox[In]) pop() (received[In], bool) {
	if len(i.queue) == 0 {
		return received[In]{}, false
	}
	r := i.queue[0]
	i.queue[0] = received[In]{}
	i.queue = i.queue[1:]
	i.queued -= r.cost
	if r.free {
		i.free--
	}
	if len(i.queue) == 0 {
		i.queue = nil
	}
	return r, true
}

// grant returns credit to give back now, 0 if it isn't worth a message yet.
func (i *inbox[In]) grant() uint64 {
	const batch = InitialCredit / 16
	if i.owed < batch {
		return 0
	}
	n := i.owed
	i.owed, i.left = 0, i.left+n
	return n
}
