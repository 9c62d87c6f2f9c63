package store

import (
	"cmp"
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const (
	// MaxUnsent is how many answers a plugin may leave unread, MaxLate how many requests a writer
	// may leave without an answer.
	MaxUnsent, MaxLate = 1000, 100
	// MaxError is how many bytes of an error's text are passed on.
	MaxError = 4 << 10
)

// Requests are those that writers have not answered. S stands for sessions of plugins.
type Requests[S comparable] struct {
	last     uint64
	open     map[uint64]*request[S]
	sessions map[S]*account
	// patience is how long writers without a limit may take for an answer.
	patience time.Duration
	answers  []Answer[S]
}

// request is one that was sent on.
type request[S comparable] struct {
	// id is the writer's number of it, asked the asker's.
	id, asked uint64
	asker     S
	// left: the asker's session has ended. overdue: it was told that there was no answer in time.
	left, overdue bool
	writer        Writer[S]
	size          int
	until         time.Time
}

// account is what a session has to do with requests.
type account struct {
	// open are its requests whose answers it was not sent yet.
	open int
	// unsent are answers that wait to be sent to it, true for those to requests that were sent on.
	unsent map[*pb.Stored]bool
	// owed are requests that it has not answered, of so many bytes, and overdue those of them for
	// which nobody waits any more.
	owed, bytes, overdue int
}

// Answer is what an asker is to be sent.
type Answer[S comparable] struct {
	To     S
	Stored *pb.Stored
}

// Missed is a request that was not answered in time.
type Missed[S comparable] struct {
	Writer Writer[S]
	// Hangs is why its session is to be ended: it has left too many; nil: it is not.
	Hangs error
}

// New returns it without requests. Writers without a limit may take so long for an answer.
func New[S comparable](patience time.Duration) *Requests[S] {
	return &Requests[S]{open: map[uint64]*request[S]{}, sessions: map[S]*account{}, patience: patience}
}

func (r *Requests[S]) of(s S) *account {
	a := r.sessions[s]
	if a == nil {
		a = &account{unsent: map[*pb.Stored]bool{}}
		r.sessions[s] = a
	}
	return a
}

// Ask takes a request, and returns what the writer is to be sent; nil: it can't be sent on, and is
// answered; wake: as the writer sleeps, and is to be started. The error blames the asker, who
// leaves answers unread.
func (r *Requests[S]) Ask(asker S, m *pb.Store, to Route[S], now time.Time) (on *pb.Store, wake bool, err error) {
	a := r.of(asker)
	if len(a.unsent) >= MaxUnsent {
		return nil, false, fmt.Errorf("it leaves %d answers to its Stores unread", MaxUnsent)
	}
	code, why, wake := to.refuse(m, a.open)
	var w Writer[S]
	if code == pb.CodeOk {
		if w = to.Writers[0]; r.of(w.Session).owed >= maxOwed || r.of(w.Session).bytes+len(m.Object) > maxOwedBytes {
			code, why = pb.CodeUnavailable,
				fmt.Sprintf("plugin %s, which takes writes of %s, has too many requests to answer", w.Name, budget.Clip(m.Table, 300))
		}
	}
	if code != pb.CodeOk {
		r.tell(asker, &pb.Stored{Id: m.Id, Code: code, Error: why}, false)
		return nil, wake, nil
	}
	r.last++
	q := &request[S]{id: r.last, asked: m.Id, asker: asker, writer: w, size: m.Size(), until: now.Add(cmp.Or(max(w.Call, 0), r.patience))}
	r.open[q.id] = q
	a.open++
	owes := r.of(w.Session)
	owes.owed++
	owes.bytes += q.size
	copied := *m
	copied.Id = q.id
	return &copied, false, nil
}

// Answered takes an answer. known: the session was asked that, and has not answered yet; late:
// nobody waits for it any more. One that comes late, twice or unasked harms nobody.
func (r *Requests[S]) Answered(writer S, m *pb.Stored) (known, late bool) {
	q := r.open[m.Id]
	if q == nil || q.writer.Session != writer {
		return false, false
	}
	r.close(q)
	if m.Code < pb.CodeOk || m.Code > pb.CodeDeadline {
		m = &pb.Stored{Code: pb.CodeUnavailable, Error: fmt.Sprintf("plugin %s answered with a code that this core does not know, %d", q.writer.Name, m.Code)}
	}
	if m.Code != pb.CodeOk {
		m = &pb.Stored{Code: m.Code, Field: budget.Clip(m.Field, MaxError), Error: budget.Clip(m.Error, MaxError)}
	}
	r.answer(q, m)
	return true, q.overdue
}

// answer answers the asker, if it waits.
func (r *Requests[S]) answer(q *request[S], m *pb.Stored) {
	if !q.left && !q.overdue {
		m.Id = q.asked
		r.tell(q.asker, m, true)
	}
}

// close forgets a request that its writer does not owe any more.
func (r *Requests[S]) close(q *request[S]) {
	delete(r.open, q.id)
	w := r.of(q.writer.Session)
	w.owed--
	w.bytes -= q.size
	if q.overdue {
		w.overdue--
	}
}

// tell has an answer sent; counted: to a request that was sent on.
func (r *Requests[S]) tell(to S, m *pb.Stored, counted bool) {
	r.of(to).unsent[m] = counted
	r.answers = append(r.answers, Answer[S]{to, m})
}

// Answers returns what askers are to be sent, once, in order.
func (r *Requests[S]) Answers() []Answer[S] {
	all := r.answers
	r.answers = nil
	return all
}

// Sent notes that an answer was handed on.
func (r *Requests[S]) Sent(to S, m *pb.Stored) {
	a := r.sessions[to]
	if a == nil {
		return // its session has ended
	}
	if a.unsent[m] {
		a.open--
	}
	delete(a.unsent, m)
}

// Late answers requests that were not answered in time, and returns them. at is told when to look
// again.
func (r *Requests[S]) Late(now time.Time, at func(time.Time)) (missed []Missed[S]) {
	for _, q := range r.open {
		switch {
		case q.overdue:
			continue
		case q.until.After(now):
			at(q.until)
			continue
		}
		w := q.writer
		r.answer(q, &pb.Stored{
			Code:  pb.CodeDeadline,
			Error: fmt.Sprintf("plugin %s did not answer within limits.call, %s; it may have made the change", w.Name, w.Call),
		})
		q.overdue = true
		x := Missed[S]{Writer: w}
		if owes := r.of(w.Session); owes.overdue+1 == MaxLate {
			x.Hangs = fmt.Errorf("plugin %s left %d requests to its store without an answer", w.Name, MaxLate)
		}
		r.of(w.Session).overdue++
		missed = append(missed, x)
	}
	return missed
}

// Left ends what a session that ended was asked, and forgets that it asked.
func (r *Requests[S]) Left(s S) {
	for _, q := range r.open {
		if q.asker == s {
			q.left = true
		}
		if q.writer.Session == s {
			r.close(q)
			r.answer(q,
				&pb.Stored{Code: pb.CodeUnavailable, Error: fmt.Sprintf("plugin %s ended while it was asked; it may have made the change", q.writer.Name)})
		}
	}
	delete(r.sessions, s)
}

// Undelivered answers a request that was too large to be sent on.
func (r *Requests[S]) Undelivered(m *pb.Store, why error) {
	if q := r.open[m.Id]; q != nil {
		r.close(q)
		r.answer(q, &pb.Stored{Code: pb.CodeInvalid, Error: fmt.Sprintf("the request's %v", why)})
	}
}

// AnswerUndelivered answers a request whose answer was too large.
func (r *Requests[S]) AnswerUndelivered(to S, m *pb.Stored, why error) {
	a := r.sessions[to]
	if a == nil {
		return // its session has ended
	}
	counted := a.unsent[m]
	delete(a.unsent, m)
	r.tell(to, &pb.Stored{Id: m.Id, Code: pb.CodeUnsupported, Error: fmt.Sprintf("the answer's %v", why)}, counted)
}
