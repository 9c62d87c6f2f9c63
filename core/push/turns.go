package push

import "sync"

// Turns runs a Queue for goroutines: each connection takes part as a Member and waits on its
// channel.
type Turns struct {
	mu      sync.Mutex
	queue   *Queue
	members map[uint64]*Member
	last    uint64
}

// Member is one connection's part in it. Its methods may be called from any goroutine and don't
// block.
type Member struct {
	turns *Turns
	id    uint64
	turn  chan struct{}
}

// NewTurns returns a queue for goroutines.
func NewTurns(l Limits) *Turns {
	return &Turns{queue: NewQueue(l), members: map[uint64]*Member{}}
}

// Join adds a connection.
func (t *Turns) Join() *Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	m := &Member{turns: t, id: t.last, turn: make(chan struct{}, 1)}
	t.members[m.id] = m
	return m
}

// Load returns how many run, how many wait and the bytes on their way.
func (t *Turns) Load() (running, pending int, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queue.Load()
}

// with changes the queue and hands out the turns that have become free.
func (m *Member) with(change func(*Queue)) {
	t := m.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.members[m.id] == m {
		change(t.queue)
	}
	for {
		id, ok := t.queue.Next()
		if !ok {
			return
		}
		t.members[id].turn <- struct{}{} // has room: one turn at a time until Done
	}
}

// Turn receives when it is this connection's turn, which ends with Done.
func (m *Member) Turn() <-chan struct{} { return m.turn }

// Want asks for a turn; several wants before it become one.
func (m *Member) Want(c Class) { m.with(func(q *Queue) { q.Enqueue(m.id, c) }) }

// Sending counts bytes of this turn; less than 0 have been written.
func (m *Member) Sending(bytes int64) { m.with(func(q *Queue) { q.Sending(m.id, bytes) }) }

// Yield gives the place of a slow connection to others while its turn lasts.
func (m *Member) Yield() { m.with(func(q *Queue) { q.Yield(m.id) }) }

// Done ends the turn.
func (m *Member) Done() { m.with(func(q *Queue) { q.Done(m.id) }) }

// Leave takes the connection out, also in the middle of a turn.
func (m *Member) Leave() {
	m.with(func(q *Queue) {
		q.Remove(m.id)
		delete(m.turns.members, m.id)
	})
}
