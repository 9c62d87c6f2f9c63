package control

import (
	"context"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/grpc/status"
)

// Authenticate asks the authenticators, in declared order, who is calling, until one knows;
// caller.Inquiry says what it returns.
func (c *Control) Authenticate(ctx context.Context, shown caller.Credentials) (caller.Known, error) {
	c.clients.Lock()
	inquiry, err := caller.Begin(shown, c.state.Roster.Authenticators())
	c.clients.Unlock()
	if err != nil {
		return caller.Known{}, err
	}
	for a, more := inquiry.Next(); more; a, more = inquiry.Next() {
		v := c.interview(ctx, a, c.servedSession(a.Name), shown)
		if ctx.Err() != nil {
			return caller.Known{}, status.FromContextError(ctx.Err()).Err()
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
	if k := c.state.Roster.Plugins[name]; k != nil {
		if k.Slow.AllowN(c.state.Clock.Now(), 1) {
			c.cfg.Log.Warn("an authenticator gave no verdict", "plugin", name, "reason", v.Reason)
		}
	}
}

// WantedHeaders returns the headers that any authenticator gets, sorted.
func (c *Control) WantedHeaders() []string {
	all := caller.CommonHeaders()
	c.clients.Lock()
	for _, a := range c.state.Roster.Authenticators() {
		all = append(all, a.Headers...)
	}
	for k := range c.state.Roster.Rivals {
		all = append(all, k.Expected.Headers...)
	}
	c.clients.Unlock()
	slices.Sort(all)
	return slices.Compact(all)
}

// servedSession returns a func that finds the session that is served, under the lock.
func (c *Control) servedSession(name string) func() *state.Session {
	return func() *state.Session { return c.state.Roster.Session(name) }
}

// interview asks one authenticator, by whichever session is there.
func (c *Control) interview(ctx context.Context, a caller.Authenticator, find func() *state.Session, shown caller.Credentials) caller.Verdict {
	q := a.Question(shown)
	answer, silence := c.questions.ask(ctx, a.Asked, c.questions.awaken(c, a.Name, find), find, q.Size(), func(id uint64) *pb.FromCore {
		q.Id = id
		return &pb.FromCore{Authenticate: q}
	})
	if answer == nil {
		return caller.Judge(nil, silence, shown)
	}
	return caller.Judge(answer.Caller, nil, shown)
}
