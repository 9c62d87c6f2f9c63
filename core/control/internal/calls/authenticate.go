package calls

import (
	"context"
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/grpc/status"
)

// Authenticate asks the authenticators, in declared order, who is calling, until one knows;
// caller.Chain says what it returns.
func (q *Calls) Authenticate(ctx context.Context, shown caller.Credentials) (caller.Known, error) {
	q.lock.Lock()
	chain, err := caller.Begin(shown, q.state.Roster.Authenticators())
	q.lock.Unlock()
	if err != nil {
		return caller.Known{}, err
	}
	for a, more := chain.Next(); more; a, more = chain.Next() {
		v := q.askOne(ctx, a, q.served(a.Name), shown)
		if ctx.Err() != nil {
			return caller.Known{}, status.FromContextError(ctx.Err()).Err()
		}
		q.slowCall(a.Name, v)
		q.state.Metrics.Authenticated(a.Name, v.Word)
		chain.Heard(v)
	}
	return chain.Result()
}

// slowCall names the limit that is why an authenticator gave no verdict, be it that the core waited
// for so long, or that the runner of its module says so.
func (q *Calls) slowCall(name string, v caller.Verdict) {
	if !manifest.IsLimit(v.Limit) {
		return
	}
	q.state.Metrics.Crossed(name, v.Limit)
	q.lock.Lock()
	defer q.lock.Unlock()
	if k := q.state.Roster.Plugins[name]; k != nil {
		if k.Slow.AllowN(q.state.Clock.Now(), 1) {
			q.state.Log.Warn("an authenticator gave no verdict", "plugin", name, "reason", v.Reason)
		}
	}
}

// WantedHeaders returns the headers that any authenticator gets, sorted.
func (q *Calls) WantedHeaders() []string {
	all := caller.CommonHeaders()
	q.lock.Lock()
	for _, a := range q.state.Roster.Authenticators() {
		all = append(all, a.Headers...)
	}
	for k := range q.state.Roster.Rivals {
		all = append(all, k.Expected.Headers...)
	}
	q.lock.Unlock()
	slices.Sort(all)
	return slices.Compact(all)
}

// served returns a func that finds the session that is served, under the lock.
func (q *Calls) served(name string) func() *state.Session {
	return func() *state.Session { return q.state.Roster.Session(name) }
}

// askOne asks one authenticator, by whichever session is there.
func (q *Calls) askOne(ctx context.Context, a caller.Authenticator, find func() *state.Session, shown caller.Credentials) caller.Verdict {
	m := a.Question(shown)
	answer, silence := q.ask(ctx, a.Asked, q.awaken(a.Name, find), find, m.Size(), func(id uint64) []*pb.FromCore {
		m.Id = id
		return []*pb.FromCore{{Authenticate: m}}
	})
	if answer == nil {
		return caller.Judge(nil, silence, shown)
	}
	return caller.Judge(answer.Caller, nil, shown)
}

// mostVerdicts is of how many connections an authenticator's verdicts are compared.
const mostVerdicts = 200

// withCredentials returns connections of which the credentials are known.
func (q *Calls) withCredentials() []*state.Connection {
	q.lock.Lock()
	defer q.lock.Unlock()
	var some []*state.Connection
	for _, conn := range q.state.Connections.Sorted() {
		if conn.Caller.Credentials != nil && len(some) < mostVerdicts {
			some = append(some, conn)
		}
	}
	return some
}

// UnknownWithout says which callers of live connections no other authenticator would know.
func (q *Calls) UnknownWithout(ctx context.Context, k *state.Plugin) (why []string) {
	q.lock.Lock()
	others := q.state.Roster.Authenticators()
	q.lock.Unlock()
	others = slices.DeleteFunc(others, func(o caller.Authenticator) bool { return o.Name == k.Name() })
	for _, conn := range q.withCredentials() {
		knows := func(a caller.Authenticator) bool {
			return q.askOne(ctx, a, q.served(a.Name), *conn.Caller.Credentials).Word == caller.Accepted
		}
		if len(why) < guard.Examples && knows(k.Authenticator()) && !slices.ContainsFunc(others, knows) {
			why = append(why, fmt.Sprintf("the caller of %s would be unknown", conn.Peer.Node.GetId()))
		}
	}
	return why
}

// Differ asks two authenticators about the callers of live connections, by the session that is
// served and by another, and returns what they say differently, and which callers only the first
// one knows.
func (q *Calls) Differ(ctx context.Context, of caller.Authenticator, another func() *state.Session) (verdicts, losses []string) {
	for _, conn := range q.withCredentials() {
		if len(verdicts) >= guard.Examples {
			break
		}
		was := q.askOne(ctx, of, q.served(of.Name), *conn.Caller.Credentials)
		is := q.askOne(ctx, of, another, *conn.Caller.Credentials)
		if was.Is(is) {
			continue
		}
		line := fmt.Sprintf("%s: %s -> %s", conn.Peer.Node.GetId(), was, is)
		verdicts = append(verdicts, line)
		if was.Word == caller.Accepted && is.Word != caller.Accepted {
			losses = append(losses, "the caller of "+line)
		}
	}
	return verdicts, losses
}
