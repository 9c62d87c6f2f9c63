package calls

import (
	"container/list"
	"context"
	"sync"
)

const (
	// mostAtOnce is how many places a plugin has for calls.
	mostAtOnce = 64
	// placeBytes is how many bytes of a call a place is for; a larger one takes several, up to half
	// of all. So calls never owe more than caller.MaxOwed together, beyond which they are refused.
	placeBytes = 64 << 10
)

// turns are the places that a plugin has for calls, and who waits for one. Who calls has the first
// place while there is any, and further ones while more than half of all are free; callers take
// turns. So a caller who calls a thousand times at once waits for itself, and nobody is refused for
// being many: what waits costs its stream, which other limits bound, and leaves with its deadline.
type turns struct {
	mu   sync.Mutex
	free int
	// by are callers that have places or wait, by who they are. ring has those that wait, in the
	// order of their turns.
	by   map[string]*turn
	ring *list.List
}

// turn is a caller.
type turn struct {
	who  string
	held int
	// waiting are calls, the oldest first; at is its place in the ring, nil where nothing waits.
	waiting *list.List
	at      *list.Element
}

// waiter is a call that waits: go is closed when it has its places.
type waiter struct {
	weight int
	ready  chan struct{}
}

func newTurns() *turns { return &turns{free: mostAtOnce, by: map[string]*turn{}, ring: list.New()} }

// acquire waits for places for a call of so many bytes. The error is ctx's; leave gives the places
// back, once.
func (t *turns) acquire(ctx context.Context, who string, size int) (leave func(), err error) {
	w := &waiter{weight: min(1+size/placeBytes, mostAtOnce/2), ready: make(chan struct{})}
	t.mu.Lock()
	c := t.by[who]
	if c == nil {
		c = &turn{who: who, waiting: list.New()}
		t.by[who] = c
	}
	if c.at == nil {
		c.at = t.ring.PushBack(c)
	}
	e := c.waiting.PushBack(w)
	t.give()
	t.mu.Unlock()
	leave = func() { t.leave(c, w.weight) }
	select {
	case <-w.ready:
		return leave, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	select {
	case <-w.ready: // at the same time
		t.mu.Unlock()
		leave()
	default:
		t.drop(c, e)
		t.give() // it may have kept others waiting
		t.mu.Unlock()
	}
	return nil, ctx.Err()
}

func (t *turns) leave(c *turn, weight int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free += weight
	c.held -= weight
	t.forget(c)
	t.give()
}

// drop takes a call from those that wait.
func (t *turns) drop(c *turn, e *list.Element) {
	c.waiting.Remove(e)
	if c.waiting.Len() == 0 {
		t.ring.Remove(c.at)
		c.at = nil
	}
	t.forget(c)
}

func (t *turns) forget(c *turn) {
	if c.held == 0 && c.at == nil {
		delete(t.by, c.who)
	}
}

// give gives free places to those whose turn it is.
func (t *turns) give() {
	for c := t.next(); c != nil; c = t.next() {
		first := c.waiting.Front()
		w := first.Value.(*waiter)
		if w.weight > t.free {
			return // it is next, and goes as soon as there is room
		}
		t.free -= w.weight
		c.held += w.weight
		close(w.ready)
		t.ring.MoveToBack(c.at)
		t.drop(c, first)
	}
}

// next is whose turn it is: the first one that has no place, or, while more than half are free, the
// first of all. nil: nobody's. It looks at as many as there are places, at most.
func (t *turns) next() (c *turn) {
	for e := t.ring.Front(); e != nil; e = e.Next() {
		if e.Value.(*turn).held == 0 {
			return e.Value.(*turn)
		}
	}
	if e := t.ring.Front(); e != nil && t.free > mostAtOnce/2 {
		return e.Value.(*turn)
	}
	return nil
}

// size is how many callers are known.
func (t *turns) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.by)
}
