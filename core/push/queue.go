// Package push decides whose turn it is: a queue of connections that have something to send, with at most one pending push each,
// a bounded number at once and bounded bytes on their way.
package push

import "container/list"

// Limits of what goes on at once; zero means no bound.
type Limits struct {
	// Running is the number of pushes at once.
	Running int
	// Bytes is the size of responses that are handed over and not yet taken. A push starts while there are fewer, whatever its own size.
	Bytes int64
}

// Queue is the state machine: no goroutine, no clock. A connection is idle, pending (once, however often it is enqueued) or running, and
// while it runs it may be pending again. What is urgent (a client waits for an answer) goes before what is not, but of
// urgentRow turns in a row one goes to the others, so that answers never starve pushes.
type Queue struct {
	limits        Limits
	urgent, other *list.List // of IDs
	row           int        // urgent turns in a row
	members       map[uint64]*member
	running       int
	bytes         int64
}

const urgentRow = 2

// member is one connection that is not idle.
type member struct {
	place   *list.Element // in a list, nil while not pending
	urgent  bool
	running bool
	counted bool  // running and holding a slot
	bytes   int64 // on their way, part of the queue's sum
}

// NewQueue returns an empty queue.
func NewQueue(l Limits) *Queue {
	return &Queue{limits: l, urgent: list.New(), other: list.New(), members: map[uint64]*member{}}
}

// Enqueue asks for a turn. A connection that is pending keeps its place, or takes one among the urgent if it wasn't and now is.
func (q *Queue) Enqueue(id uint64, urgent bool) {
	m := q.members[id]
	if m == nil {
		m = &member{}
		q.members[id] = m
	}
	if m.place != nil {
		if m.urgent || !urgent {
			return
		}
		q.unplace(m)
	}
	m.urgent = urgent
	m.place = q.list(urgent).PushBack(id)
}

func (q *Queue) list(urgent bool) *list.List {
	if urgent {
		return q.urgent
	}
	return q.other
}

func (q *Queue) unplace(m *member) {
	if m.place != nil {
		q.list(m.urgent).Remove(m.place)
		m.place = nil
	}
}

// Next gives the next turn, if there is room for one. The connection runs until Done.
func (q *Queue) Next() (id uint64, ok bool) {
	if q.full() {
		return 0, false
	}
	first, second := q.urgent, q.other
	if q.row >= urgentRow {
		first, second = second, first
	}
	e := q.ready(first)
	if e == nil {
		e = q.ready(second)
	}
	if e == nil {
		return 0, false
	}
	id = e.Value.(uint64)
	m := q.members[id]
	q.row++
	if !m.urgent {
		q.row = 0
	}
	q.unplace(m)
	m.running, m.counted = true, true
	q.running++
	return id, true
}

// ready returns the first of a list that isn't running.
func (q *Queue) ready(l *list.List) *list.Element {
	for e := l.Front(); e != nil; e = e.Next() {
		if !q.members[e.Value.(uint64)].running {
			return e
		}
	}
	return nil
}

func (q *Queue) full() bool {
	return q.limits.Running > 0 && q.running >= q.limits.Running || q.limits.Bytes > 0 && q.bytes >= q.limits.Bytes
}

// Sending counts bytes that a running connection hands over.
func (q *Queue) Sending(id uint64, bytes int64) {
	if m := q.members[id]; m != nil && m.counted {
		m.bytes += bytes
		q.bytes += bytes
	}
}

// Yield takes the slot and the bytes from a connection that is slow, so that it delays nobody. It still runs until Done.
func (q *Queue) Yield(id uint64) {
	m := q.members[id]
	if m == nil || !m.counted {
		return
	}
	q.running--
	q.bytes -= m.bytes
	m.counted, m.bytes = false, 0
}

// Done ends a turn. The connection may be pending again.
func (q *Queue) Done(id uint64) {
	q.Yield(id)
	if m := q.members[id]; m != nil {
		m.running = false
		if m.place == nil {
			delete(q.members, id)
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

// Load returns how many run (slow ones that yielded not counted), how many wait, and the bytes on their way.
func (q *Queue) Load() (running, pending int, bytes int64) {
	return q.running, q.urgent.Len() + q.other.Len(), q.bytes
}
