// Package push decides whose turn it is: a queue of connections that have something to send, with
// at most one pending push each, a bounded number at once and bounded bytes on their way.
package push

import "container/list"

// Limits of what goes on at once; zero means no bound.
type Limits struct {
	// Running is the number of pushes at once.
	Running int
	// Bytes is the size of responses that are on their way and not yet written. A push starts while
	// there are fewer, whatever its own size.
	Bytes int64
	// Composing is how many may have a turn and not have said yet how large their responses are:
	// until then Bytes can't bound anything.
	Composing int
}

// Queue is the state machine: no goroutine, no clock. A connection is idle, pending (once, however
// often it is enqueued) or running, and while it runs it may be pending again. Who is of a higher
// class goes first, but not for ever: after as many turns in a row as it may have one goes to those
// below, so that nobody starves.
type Queue struct {
	limits    Limits
	pending   [classes]*list.List // of IDs
	row       [classes]int        // turns in a row, since one of a lower class
	members   map[uint64]*member
	running   int
	composing int
	again     int // how many are pending while they run
	bytes     int64
}

// Class of what somebody wants a turn for.
type Class int

const (
	// Other is what can wait: pushes.
	Other Class = iota
	// Urgent is what a client waits for: answers.
	Urgent
	// Small is what is soon done: endpoints.
	Small
	classes
)

// most is how many turns in a row a class has before lower ones.
func (c Class) most() int {
	if c == Small {
		return 32
	}
	return 2
}

// member is one connection that is not idle.
type member struct {
	place   *list.Element // in a list, nil while not pending or running
	again   bool          // pending while it runs: it gets its place when its turn is done
	class   Class
	running bool
	counted bool  // running and holding a slot
	silent  bool  // counted, and its bytes aren't known
	bytes   int64 // on their way, part of the queue's sum
}

// NewQueue returns an empty queue.
func NewQueue(l Limits) *Queue {
	q := &Queue{limits: l, members: map[uint64]*member{}}
	for c := range q.pending {
		q.pending[c] = list.New()
	}
	return q
}

// Enqueue asks for a turn. A connection that is pending keeps its place, or takes one in a higher
// class.
func (q *Queue) Enqueue(id uint64, c Class) {
	m := q.members[id]
	if m == nil {
		m = &member{}
		q.members[id] = m
	}
	if m.place != nil || m.again {
		if m.class >= c {
			return
		}
		q.unplace(m)
	}
	m.class = c
	if m.again = m.running; m.again {
		q.again++
		return
	}
	m.place = q.pending[c].PushBack(id)
}

func (q *Queue) unplace(m *member) {
	if m.place != nil {
		q.pending[m.class].Remove(m.place)
		m.place = nil
	}
	if m.again {
		m.again = false
		q.again--
	}
}

// Next gives the next turn, if there is room for one. The connection runs until Done.
func (q *Queue) Next() (id uint64, ok bool) {
	if q.full() {
		return 0, false
	}
	e := q.first()
	if e == nil {
		return 0, false
	}
	id = e.Value.(uint64)
	m := q.members[id]
	q.row[m.class]++
	for higher := m.class + 1; higher < classes; higher++ {
		q.row[higher] = 0
	}
	q.unplace(m)
	m.running, m.counted, m.silent = true, true, true
	q.running++
	q.composing++
	return id, true
}

// first returns who is next: of the highest class that hasn't had its row, else of the lowest.
func (q *Queue) first() *list.Element {
	var last *list.Element
	for c := classes - 1; c >= 0; c-- {
		e := q.pending[c].Front()
		if e == nil {
			continue
		}
		if q.row[c] < c.most() || c == 0 {
			return e
		}
		last = e
	}
	return last
}

func (q *Queue) full() bool {
	l := q.limits
	return l.Running > 0 && q.running >= l.Running || l.Bytes > 0 && q.bytes >= l.Bytes || l.Composing > 0 && q.composing >= l.Composing
}

// Sending counts bytes that a running connection is about to send; less than 0 are those that have
// been written.
func (q *Queue) Sending(id uint64, bytes int64) {
	if m := q.members[id]; m != nil && m.counted {
		m.bytes += bytes
		q.bytes += bytes
		q.speak(m)
	}
}

func (q *Queue) speak(m *member) {
	if m.silent {
		m.silent = false
		q.composing--
	}
}

// Yield takes the slot and the bytes from a connection that is slow, so that it delays nobody. It
// still runs until Done.
func (q *Queue) Yield(id uint64) {
	m := q.members[id]
	if m == nil || !m.counted {
		return
	}
	q.speak(m)
	q.running--
	q.bytes -= m.bytes
	m.counted, m.bytes = false, 0
}

// Done ends a turn. The connection may be pending again.
func (q *Queue) Done(id uint64) {
	q.Yield(id)
	if m := q.members[id]; m != nil {
		again := m.again
		q.unplace(m)
		delete(q.members, id)
		if again {
			q.Enqueue(id, m.class)
		}
	}
}

// Remove forgets a connection, whatever it was doing.
func (q *Queue) Remove(id uint64) {
	q.Yield(id)
	if m := q.members[id]; m != nil {
		q.unplace(m)
		delete(q.members, id)
	}
}

// Load returns how many run (slow ones that yielded not counted), how many wait, and the bytes on
// their way.
func (q *Queue) Load() (running, pending int, bytes int64) {
	return q.running, q.pending[Other].Len() + q.pending[Urgent].Len() + q.pending[Small].Len() + q.again, q.bytes
}
