package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
	"google.golang.org/grpc/status"
)

// callers are what authenticators are asked, and who waits for their answers, by question.
type callers struct {
	desk    *caller.Desk[*session]
	waiting map[uint64]chan *pb.Caller // which gets the answer, or is closed when the session ends
	// wanted is when an authenticator was last to be asked, by its name; awake is closed when one
	// that slept has a session.
	wanted map[string]time.Time
	awake  map[string]chan struct{}
}

func newCallers() callers {
	return callers{
		desk: caller.NewDesk[*session](), waiting: map[uint64]chan *pb.Caller{},
		wanted: map[string]time.Time{}, awake: map[string]chan struct{}{},
	}
}

// Authenticate asks the authenticators, in declared order, who is calling, until one knows;
// caller.Inquiry says what it returns.
func (c *Control) Authenticate(ctx context.Context, shown caller.Credentials) ([]string, error) {
	inquiry, err := caller.Begin(shown, c.authenticators())
	if err != nil {
		return nil, err
	}
	for a, more := inquiry.Next(); more; a, more = inquiry.Next() {
		v := c.interview(ctx, a, c.servedSession(a.Name), shown)
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		c.slowCall(a.Name, v)
		c.cfg.Metrics.Authenticated(a.Name, v.Word)
		inquiry.Heard(v)
	}
	return inquiry.Result()
}

// slowCall names the limit that is why an authenticator gave no verdict, be it that the core waited
// for so long, or that the runner of its module says so.
func (c *Control) slowCall(name string, v caller.Verdict) {
	if !manifest.IsLimit(v.Limit) {
		return
	}
	c.cfg.Metrics.Crossed(name, v.Limit)
	c.clients.Lock()
	defer c.clients.Unlock()
	if k := c.known[name]; k != nil {
		k.slow.Do(func() { c.cfg.Log.Warn("an authenticator gave no verdict", "plugin", name, "reason", v.Reason) })
	}
}

// authenticators returns the declared ones in order.
func (c *Control) authenticators() []caller.Authenticator {
	c.clients.Lock()
	defer c.clients.Unlock()
	var all []caller.Authenticator
	for _, k := range c.sortedKnown() {
		if k.Kind == pb.KindAuthenticator {
			all = append(all, k.authenticator())
		}
	}
	return all
}

func (k *known) authenticator() caller.Authenticator {
	return caller.Authenticator{Name: k.Name, Headers: k.Headers, Call: k.Limits.Call, Progress: k.Limits.Progress}
}

// WantedHeaders returns the headers that any authenticator gets, sorted.
func (c *Control) WantedHeaders() []string {
	all := caller.CommonHeaders()
	for _, a := range c.authenticators() {
		all = append(all, a.Headers...)
	}
	c.clients.Lock()
	for _, t := range c.trials.all {
		all = append(all, t.known.Headers...)
	}
	c.clients.Unlock()
	slices.Sort(all)
	return slices.Compact(all)
}

// servedSession returns a func that finds the session that is served, under the lock.
func (c *Control) servedSession(name string) func() *session {
	return func() *session { return c.sessions[name] }
}

// interview asks one authenticator, by whichever session is there.
func (c *Control) interview(ctx context.Context, a caller.Authenticator, find func() *session, shown caller.Credentials) caller.Verdict {
	answer, silence := c.question(ctx, a, find, a.Question(shown))
	return caller.Judge(answer, silence, shown)
}

// question asks, and waits for the answer. silence says why there is none.
func (c *Control) question(ctx context.Context, a caller.Authenticator, find func() *session, m *pb.Authenticate) (answer *pb.Caller, silence error) {
	var late <-chan time.Time
	if a.Call > 0 {
		timer := time.NewTimer(a.Call)
		defer timer.Stop()
		late = timer.C
	}
	for awake := c.callers.awaken(c, a.Name, find); awake != nil; awake = c.callers.awaken(c, a.Name, find) {
		select {
		case <-awake:
		case <-late:
			return nil, carrier.Crossed("call", "did not start within limits.call, %s", a.Call)
		case <-ctx.Done():
			return nil, errors.New("was not waited for")
		}
	}
	s, got, why := c.pose(find, m)
	if s == nil {
		return nil, errors.New(why)
	}
	defer c.waitedFor(s, m.Id, a)
	select {
	case answer = <-got:
		if answer == nil {
			return nil, errors.New("ended while it was asked")
		}
		return answer, nil
	case <-late:
		return nil, carrier.Crossed("call", "did not answer within limits.call, %s", a.Call)
	case <-ctx.Done():
		return nil, errors.New("was not waited for")
	}
}

// awaken wakes an authenticator up that starts on demand, if it sleeps. What it returns is closed
// once it has a session, its first one too; nil if it need not be waited for.
func (a *callers) awaken(c *Control, name string, find func() *session) <-chan struct{} {
	c.clients.Lock()
	defer c.clients.Unlock()
	k := c.known[name]
	if k == nil || !k.OnDemand {
		return nil
	}
	a.wanted[name] = time.Now()
	if s := find(); !k.asleep && k.ready != nil || s != nil && s.known != k {
		return nil
	}
	c.rouse(name)
	if a.awake[name] == nil {
		a.awake[name] = make(chan struct{})
	}
	return a.awake[name]
}

// isAwake tells those who wait for an authenticator that it has a session, or is none any more.
func (a *callers) isAwake(name string) {
	if waiting := a.awake[name]; waiting != nil {
		delete(a.awake, name)
		close(waiting)
	}
}

// pose sends a question; no session, and why, if there is nobody to ask.
func (c *Control) pose(find func() *session, m *pb.Authenticate) (s *session, answer <-chan *pb.Caller, silence string) {
	c.clients.Lock()
	defer c.clients.Unlock()
	if s = find(); s == nil {
		return nil, nil, "is away"
	}
	if why := c.callers.desk.Ask(s, m, s.now(time.Now())); why != "" {
		return nil, nil, why
	}
	got := make(chan *pb.Caller, 1)
	c.callers.waiting[m.Id] = got
	s.out.call(&pb.FromCore{Authenticate: m})
	return s, got, ""
}

// takeCaller takes an answer. One that comes late, twice or unasked harms nobody.
func (c *Control) takeCaller(s *session, m *pb.Caller) {
	switch known, late := c.callers.desk.Answered(s, m.Id, s.now(time.Now())); {
	case !known:
		c.cfg.Metrics.Unknown(s.Name, "answer", 1)
	case late:
		c.cfg.Metrics.Unknown(s.Name, "late answer", 1)
	default:
		c.callers.tell(m.Id, m)
	}
}

// tell gives an answer to whoever waits for it.
func (a *callers) tell(id uint64, m *pb.Caller) {
	if got := a.waiting[id]; got != nil {
		delete(a.waiting, id)
		got <- m
	}
}

// undeliveredQuestion answers a question that was too large to be sent.
func (c *Control) undeliveredQuestion(s *session, m *pb.Authenticate, why error) {
	if known, late := c.callers.desk.Answered(s, m.Id, s.now(time.Now())); known && !late {
		c.callers.tell(m.Id, &pb.Caller{Id: m.Id, Failure: fmt.Sprintf("the call's %v", why)})
	}
}

// waitedFor notes that nobody waits for an answer any more. A plugin that owes too many, or none
// for too long, is started again.
func (c *Control) waitedFor(s *session, id uint64, a caller.Authenticator) {
	c.clients.Lock()
	defer c.clients.Unlock()
	delete(c.callers.waiting, id)
	if why := c.callers.desk.Unanswered(id, a, s.now(time.Now()), s.inst.Link.LastProgress()); why != nil {
		s.cancel(why)
	}
}

// abandon ends the questions of a session that ended.
func (c *Control) abandon(s *session) {
	for _, id := range c.callers.desk.Left(s) {
		if got := c.callers.waiting[id]; got != nil {
			delete(c.callers.waiting, id)
			close(got)
		}
	}
}
