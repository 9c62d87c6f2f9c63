package calls

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
)

// Calls are what plugins are asked one by one (Authenticate, Call, Explain), and who waits for
// their answers.
type Calls struct {
	lock  sync.Locker // what is below, and the state
	state *state.State
	desk  *caller.Pending[*state.Session]
	// waiting gets the answer to a question, or is closed when the session ends.
	waiting map[uint64]chan *pb.FromPlugin
	// awake is closed when a plugin that slept has a session.
	awake map[string]chan struct{}
	// turns are whose turn it is to call a plugin, by its name; leave gives back the places of a
	// call that a plugin has in hand, by its number.
	turns map[string]*turns
	leave map[uint64]func()
	// explaining are questions what resources were made from; asked is the last one's number.
	// Those who were silent are not asked again until a time.
	explaining map[uint64]explaining
	asked      uint64
	silent     map[*state.Session]time.Time
}

// New returns one in which nobody is asked. lock is that of the state.
func New(lock sync.Locker, st *state.State) *Calls {
	return &Calls{
		lock: lock, state: st, desk: caller.NewPending[*state.Session](), waiting: map[uint64]chan *pb.FromPlugin{}, awake: map[string]chan struct{}{},
		turns: map[string]*turns{}, leave: map[uint64]func(){},
		explaining: map[uint64]explaining{}, silent: map[*state.Session]time.Time{},
	}
}

// Owes reports whether a session owes an answer. It is called under the lock, as are Overdue,
// Handle, IsAwake, Undelivered and Abandon.
func (q *Calls) Owes(s *state.Session) bool { return q.desk.Owes(s) }

// Overdue is how many questions a session has not answered in time, and since when.
func (q *Calls) Overdue(s *state.Session) (n int, since time.Time) { return q.desk.Overdue(s) }

// Size is how many questions, and who waits for them, are kept.
func (q *Calls) Size() int {
	questions, sessions := q.desk.Size()
	return questions + sessions + len(q.waiting) + len(q.awake) + len(q.leave) + len(q.explaining)
}

// ask asks a plugin, by the session that find finds under the lock, what put makes of a number, and
// waits for the answer. awaken wakes it up if it sleeps: what it returns is closed once there is a
// session; nil if it need not be waited for. size is the question's in bytes. silence says why
// there is no answer.
func (q *Calls) ask(ctx context.Context, of caller.Asked, awaken func() <-chan struct{}, find func() *state.Session, size int,
	put func(id uint64) []*pb.FromCore,
) (answer *pb.FromPlugin, silence error) {
	var late <-chan time.Time
	if of.Call > 0 {
		timer := time.NewTimer(of.Call)
		defer timer.Stop()
		late = timer.C
	}
	for awake := awaken(); awake != nil; awake = awaken() {
		select {
		case <-awake:
		case <-late:
			return nil, carrier.Crossed("call", "did not start within limits.call, %s", of.Call)
		case <-ctx.Done():
			return nil, errors.New("was not waited for")
		}
	}
	s, id, got, why := q.pose(find, size, put)
	if s == nil {
		return nil, errors.New(why)
	}
	defer q.waitedFor(s, id, of)
	select {
	case answer = <-got:
		if answer == nil {
			return nil, errors.New("ended while it was asked")
		}
		return answer, nil
	case <-late:
		return nil, carrier.Crossed("call", "did not answer within limits.call, %s", of.Call)
	case <-ctx.Done():
		return nil, errors.New("was not waited for")
	}
}

// awaken returns a func that wakes a plugin up that starts on demand, if it sleeps. What that
// returns is closed once it has a session, its first one too; nil if it need not be waited for.
func (q *Calls) awaken(name string, find func() *state.Session) func() <-chan struct{} {
	return func() <-chan struct{} {
		q.lock.Lock()
		defer q.lock.Unlock()
		k := q.state.Roster.Plugins[name]
		if k == nil || !k.Expected.OnDemand {
			return nil
		}
		k.Ask(q.state.Clock.Now())
		if s := find(); !k.Sleep.Asleep && k.Ready != nil || s != nil && s.Plugin != k {
			return nil
		}
		q.state.Roster.Rouse(name)
		if q.awake[name] == nil {
			q.awake[name] = make(chan struct{})
		}
		return q.awake[name]
	}
}

// IsAwake tells those who wait for a plugin that it has a session, or is none any more.
func (q *Calls) IsAwake(name string) {
	if waiting := q.awake[name]; waiting != nil {
		delete(q.awake, name)
		close(waiting)
	}
}

// pose sends a question; no session, and why, if there is nobody to ask.
func (q *Calls) pose(find func() *state.Session, size int, put func(id uint64) []*pb.FromCore) (
	s *state.Session, id uint64, answer <-chan *pb.FromPlugin, silence string,
) {
	q.lock.Lock()
	defer q.lock.Unlock()
	if s = find(); s == nil {
		return nil, 0, nil, "is away"
	}
	id, why := q.desk.Ask(s, size, s.Watch.Now(q.state.Clock.Now()))
	if why != "" {
		return nil, 0, nil, why
	}
	got := make(chan *pb.FromPlugin, 1)
	q.waiting[id] = got
	for _, m := range put(id) {
		s.Out.Call(m)
	}
	return s, id, got, ""
}

// patience is how long a call that nobody waits for any more keeps its places where limits.call
// says nothing.
const patience = 10 * time.Second

// turn waits until it is a caller's turn to call a plugin. leave gives its places back.
func (q *Calls) turn(ctx context.Context, plugin, who string, size int) (leave func(), err error) {
	q.lock.Lock()
	t := q.turns[plugin]
	if t == nil {
		t = newTurns()
		q.turns[plugin] = t
	}
	q.lock.Unlock()
	return t.acquire(ctx, who, size)
}

// left gives back the places of a call that the plugin has no more in hand.
func (q *Calls) left(id uint64) {
	if leave := q.leave[id]; leave != nil {
		delete(q.leave, id)
		leave()
	}
}

// Handle takes an answer. One that comes late, twice or unasked harms nobody.
func (q *Calls) Handle(s *state.Session, id uint64, m *pb.FromPlugin) {
	known, late := q.desk.Answered(s, id, s.Watch.Now(q.state.Clock.Now()))
	if known {
		q.left(id)
	}
	switch {
	case !known:
		q.state.Metrics.Unknown(s.Name(), "answer", 1)
	case late:
		q.state.Metrics.Unknown(s.Name(), "late answer", 1)
	default:
		q.tell(id, m)
	}
}

// tell gives an answer to whoever waits for it.
func (q *Calls) tell(id uint64, m *pb.FromPlugin) {
	if got := q.waiting[id]; got != nil {
		delete(q.waiting, id)
		got <- m
	}
}

// Undelivered answers a question that was too large to be sent.
func (q *Calls) Undelivered(s *state.Session, m *pb.FromCore, why error) {
	id, answer := uint64(0), &pb.FromPlugin{}
	switch reason := fmt.Sprintf("the call's %v", why); {
	case m.Authenticate != nil:
		id, answer.Caller = m.Authenticate.Id, &pb.Caller{Id: m.Authenticate.Id, Failure: reason}
	case m.Call != nil:
		id, answer.Called = m.Call.Id, tooLarge(m.Call.Id, reason)
	}
	known, late := q.desk.Answered(s, id, s.Watch.Now(q.state.Clock.Now()))
	if known {
		q.left(id)
	}
	if known && !late {
		q.tell(id, answer)
	}
}

// waitedFor notes that nobody waits for an answer any more. A plugin that owes too many, or none
// for too long, is started again.
func (q *Calls) waitedFor(s *state.Session, id uint64, of caller.Asked) {
	q.lock.Lock()
	defer q.lock.Unlock()
	delete(q.waiting, id)
	if leave := q.leave[id]; leave != nil { // the plugin is at it still, for as long as it may take
		time.AfterFunc(cmp.Or(of.Call, patience), func() {
			q.lock.Lock()
			defer q.lock.Unlock()
			q.left(id)
		})
	}
	if why := q.desk.Unanswered(id, of, s.Watch.Now(q.state.Clock.Now()), s.Link.LastProgress()); why != nil {
		s.Cancel(why)
	}
}

// Abandon ends the questions of a session that ended.
func (q *Calls) Abandon(s *state.Session) {
	for _, id := range q.desk.Left(s) {
		q.left(id)
		if got := q.waiting[id]; got != nil {
			delete(q.waiting, id)
			close(got)
		}
	}
	delete(q.silent, s)
	if t := q.turns[s.Name()]; t != nil && t.size() == 0 {
		delete(q.turns, s.Name())
	}
	for id, e := range q.explaining {
		if e.by == s {
			delete(q.explaining, id)
			close(e.answer)
		}
	}
}
