package caller

import (
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/deadline"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

const (
	// MaxOwed is how many bytes of questions one plugin may have in hand.
	MaxOwed = 12 << 20
	// maxOverdue is how many questions it may leave without an answer.
	maxOverdue = 1000
	// inARow questions without an answer, and none answered for the time that as many calls may
	// take, are those of a plugin that hangs.
	inARow = 3
)

// Pending is what plugins were asked and have not answered, what nobody waits for any more too.
// S stands for their sessions.
type Pending[S comparable] struct {
	last uint64
	open map[uint64]*question[S]
	owed map[S]*debt
}

// question is one that was asked.
type question[S comparable] struct {
	session S
	size    int
	// overdue: nobody waits any more.
	overdue bool
}

// debt is what a session has not answered.
type debt struct {
	questions, bytes, overdue int
	// row counts those in a row that were not answered in time.
	row int
	// since is when it last answered, or began to owe.
	since deadline.Moment
}

// NewPending returns one without questions.
func NewPending[S comparable]() *Pending[S] {
	return &Pending[S]{open: map[uint64]*question[S]{}, owed: map[S]*debt{}}
}

// Ask takes a question of so many bytes to a session down and gives it a number. why says that it
// is not to be sent: the session has too much to do.
func (p *Pending[S]) Ask(s S, size int, now deadline.Moment) (id uint64, why string) {
	of := p.owed[s]
	if of == nil {
		of = &debt{since: now}
	}
	if of.bytes+size > MaxOwed {
		return 0, "has too many questions to answer"
	}
	p.last++
	p.open[p.last], p.owed[s] = &question[S]{session: s, size: size}, of
	of.questions++
	of.bytes += size
	return p.last, ""
}

// Answered notes that a question was answered, or could not be put to the session. It is known
// unless the session was never asked it, or has answered it already; it is late if nobody waits for
// it any more.
func (p *Pending[S]) Answered(s S, id uint64, now deadline.Moment) (known, late bool) {
	q := p.open[id]
	if q == nil || q.session != s {
		return false, false
	}
	delete(p.open, id)
	of := p.owed[s]
	of.questions--
	of.bytes -= q.size
	of.since, of.row = now, 0
	if q.overdue {
		of.overdue--
	}
	if of.questions == 0 {
		delete(p.owed, s)
	}
	return true, q.overdue
}

// Unanswered notes that nobody waits for an answer any more. progress is when the session last
// showed any. The error is why the session is to be ended: it owes too many answers, or has given
// none for too long.
func (p *Pending[S]) Unanswered(id uint64, of Asked, now deadline.Moment, progress time.Time) error {
	q := p.open[id]
	if q == nil {
		return nil // it was answered
	}
	q.overdue = true
	owed := p.owed[q.session]
	owed.overdue++
	owed.row++
	since := owed.since.At
	if progress.After(since) {
		since = progress
	}
	switch {
	case owed.overdue > maxOverdue:
		return fmt.Errorf("plugin %s left %d questions without an answer", of.Name, owed.overdue)
	case of.Progress > 0 && now.At.Sub(since) >= of.Progress:
		return session.Crossed("progress", "plugin %s answers no question: it showed no progress for limits.progress, %s", of.Name, of.Progress)
	case of.Call > 0 && owed.row >= inARow && !now.At.Before(owed.since.End(inARow*of.Call, now.Lost)):
		return session.Crossed("call", "plugin %s hangs: it answered none of %d questions in a row within limits.call, %s", of.Name, owed.row, of.Call)
	}
	return nil
}

// Left forgets a session that has ended, and returns the questions that it will not answer.
func (p *Pending[S]) Left(s S) (ids []uint64) {
	for id, q := range p.open {
		if q.session == s {
			delete(p.open, id)
			ids = append(ids, id)
		}
	}
	delete(p.owed, s)
	return ids
}

// Owes reports whether a session has answers to give.
func (p *Pending[S]) Owes(s S) bool { return p.owed[s] != nil }

// Overdue is how many answers of a session nobody waits for any more, and since when it has given
// none.
func (p *Pending[S]) Overdue(s S) (n int, since time.Time) {
	if of := p.owed[s]; of != nil {
		return of.overdue, of.since.At
	}
	return 0, time.Time{}
}

// Size is how many questions are open, and how many sessions owe something.
func (p *Pending[S]) Size() (questions, sessions int) { return len(p.open), len(p.owed) }
