package control

import (
	"context"
	"fmt"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// judge asks both authenticators about the callers of live connections, and keeps what they say differently.
func (t *Trial) judge(ctx context.Context) {
	if t.of.Known.Kind() != pb.KindAuthenticator {
		return
	}
	c, of := t.c, t.of.Known.Authenticator()
	var verdicts, losses []string
	for _, conn := range c.WithCredentials() {
		if len(verdicts) >= guard.Examples {
			break
		}
		was := c.Interview(ctx, of, c.Served(of.Name), *conn.Credentials)
		is := c.Interview(ctx, of, func() *state.Session { return t.of.Known.Session }, *conn.Credentials)
		if was.Is(is) {
			continue
		}
		line := fmt.Sprintf("%s: %s -> %s", conn.Peer.Node.GetId(), was, is)
		verdicts = append(verdicts, line)
		if was.Word == caller.Accepted && is.Word != caller.Accepted {
			losses = append(losses, "the caller of "+line)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.of.Verdicts, t.of.Losses = verdicts, losses
}
