package control

import (
	"context"
	"fmt"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// mostVerdicts is of how many connections an authenticator's verdicts are compared.
const mostVerdicts = 200

// judge asks both authenticators about the callers of live connections, and keeps what they say differently.
func (t *Trial) judge(ctx context.Context) {
	if t.known.Kind != pb.KindAuthenticator {
		return
	}
	c := t.c
	var verdicts, losses []string
	for _, conn := range c.callers() {
		if len(verdicts) >= examples {
			break
		}
		m := pb.Authenticate{Certificates: conn.shown.Certificates, Headers: conn.shown.Headers, RemoteAddress: conn.shown.RemoteAddress}
		ask := func(find func() *session) verdict {
			caller, silence := c.interview(ctx, t.known, find, m)
			return verdictOf(caller, silence, *conn.shown)
		}
		was, is := ask(c.servedSession(t.known.Name)), ask(func() *session { return t.session })
		if was.word == is.word && slices.Equal(was.identities, is.identities) {
			continue
		}
		line := fmt.Sprintf("%s: %s -> %s", conn.peer.Node.GetId(), was, is)
		verdicts = append(verdicts, line)
		if was.word == accepted && is.word != accepted {
			losses = append(losses, "the caller of "+line)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.verdicts, t.losses = verdicts, losses
}

// callers returns connections of which the credentials are known.
func (c *Control) callers() []*connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	var some []*connection
	for _, conn := range c.sortedConns() {
		if conn.shown != nil && len(some) < mostVerdicts {
			some = append(some, conn)
		}
	}
	return some
}

func (v verdict) String() string {
	if v.word == accepted {
		return fmt.Sprint(v.word, " as ", v.identities)
	}
	return v.word + " (" + v.reason + ")"
}
