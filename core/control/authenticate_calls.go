package control

import (
	"fmt"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// questions are what authenticators were asked and have not answered, those that nobody waits for any more too. Its zero value is ready.
type questions struct {
	last uint64
	open map[uint64]*question
	owed map[*session]*debt
}

// question is one Authenticate that was sent.
type question struct {
	id      uint64
	session *session
	size    int
	// answer gets the answer, or nil when the session ends.
	answer chan *pb.Caller
	// overdue: nobody waits any more.
	overdue bool
}

// debt is what a session has not answered.
type debt struct {
	bytes, overdue int
	// row counts those in a row that were not answered in time.
	row int
	// since is when it last answered, or began to owe, and lost what the plugin had lost of its time by then.
	since time.Time
	lost  time.Duration
}

const (
	// maxOwed is how many bytes of questions one plugin may have in hand.
	maxOwed = 8 << 20
	// maxOverdue is how many questions it may leave without an answer.
	maxOverdue = 1000
)

// pose sends a question; nil, and why, if there is nobody to ask.
func (c *Control) pose(find func() *session, m *pb.Authenticate) (*question, string) {
	c.clients.Lock()
	defer c.clients.Unlock()
	s := find()
	if s == nil {
		return nil, "is away"
	}
	a := &c.asked
	d := a.owed[s]
	if d == nil {
		d = &debt{since: time.Now(), lost: s.lost}
	}
	size := m.Size()
	if d.bytes+size > maxOwed {
		return nil, "has too many questions to answer"
	}
	if a.open == nil {
		a.open, a.owed = map[uint64]*question{}, map[*session]*debt{}
	}
	a.last++
	m.Id = a.last
	q := &question{id: a.last, session: s, size: size, answer: make(chan *pb.Caller, 1)}
	a.open[q.id], a.owed[s] = q, d
	d.bytes += size
	s.out.call(&pb.FromCore{Authenticate: m})
	return q, ""
}

// takeCaller takes an answer. One that comes late, twice or unasked harms nobody.
func (c *Control) takeCaller(s *session, m *pb.Caller) {
	q := c.asked.open[m.Id]
	if q == nil || q.session != s {
		c.cfg.Metrics.Unknown(s.Name, "answer", 1)
		return
	}
	if q.overdue {
		c.cfg.Metrics.Unknown(s.Name, "late answer", 1)
	}
	q.answer <- m
	c.asked.close(q)
}

// close forgets a question that was answered.
func (a *questions) close(q *question) {
	delete(a.open, q.id)
	d := a.owed[q.session]
	d.bytes -= q.size
	d.since, d.lost, d.row = time.Now(), q.session.lost, 0
	if q.overdue {
		d.overdue--
	}
	if d.bytes == 0 {
		delete(a.owed, q.session)
	}
}

// servedSession returns a func that finds the session that is served, under the lock.
func (c *Control) servedSession(name string) func() *session {
	return func() *session { return c.sessions[name] }
}

// waitedFor notes that nobody waits for an answer any more. A plugin that owes too many, or none for too long, is started again.
func (c *Control) waitedFor(q *question) {
	c.clients.Lock()
	defer c.clients.Unlock()
	if c.asked.open[q.id] == nil {
		return // it was answered
	}
	q.overdue = true
	s, d := q.session, c.asked.owed[q.session]
	d.overdue++
	d.row++
	since := d.since
	if last := s.inst.Link.LastProgress(); last.After(since) {
		since = last
	}
	const inARow, calls = 3, 3 // so many questions without an answer, and none answered for the time of so many
	switch l, call := s.Limits.Progress, s.Limits.Call; {
	case d.overdue > maxOverdue:
		s.cancel(fmt.Errorf("plugin %s left %d questions without an answer", s.Name, d.overdue))
	case l > 0 && time.Since(since) >= l:
		s.cancel(fmt.Errorf("plugin %s answers no question: it showed no progress for limits.progress, %s", s.Name, l))
	case call > 0 && d.row >= inARow && !time.Now().Before(s.due(moment{d.since, d.lost}, calls*call)):
		s.cancel(fmt.Errorf("plugin %s hangs: it answered none of %d questions in a row within limits.call, %s", s.Name, d.row, call))
	}
}

// abandon ends the questions of a session that ended.
func (c *Control) abandon(s *session) {
	for id, q := range c.asked.open {
		if q.session == s {
			delete(c.asked.open, id)
			close(q.answer)
		}
	}
	delete(c.asked.owed, s)
}
