package control

import (
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A client says how large its node, its names and its errors are; a plugin takes messages up to a size. What is larger is refused to that client,
// or cut: it is never a reason to end the plugin's session.

// undelivered takes back a call that was too large to be sent.
func (c *Control) undelivered(s *state.Session, m *pb.FromCore, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.Log.Warn("a message to a plugin is too large; what it asked for fails, and nothing else", "plugin", s.Name(), "error", why)
	c.cfg.Metrics.Unknown(s.Name(), "too large", 1)
	switch {
	case m.Attach != nil:
		if conn := c.state.Connections.All[m.Attach.Connection]; conn != nil {
			s.Deny(conn, status.Errorf(codes.InvalidArgument, "the node is too large: %v", why))
		}
	case m.Want != nil:
		s.Maker.Asked.Undelivered(m.Want.Id)
	case m.Store != nil:
		c.stages.Writes.Stores.Undelivered(m.Store, why)
		c.stages.Writes.TellStores()
	case m.Stored != nil:
		c.stages.Writes.Stores.AnswerUndelivered(s, m.Stored, why)
		c.stages.Writes.TellStores()
	case m.Patch != nil:
		if p := s.Plugin.Patcher; p != nil {
			if r := p.Undelivered(m.Patch.Id, why, c.state.Clock.Now()); r != nil {
				c.stages.Results.Answered(p, r)
			}
		}
	case m.Authenticate != nil, m.Call != nil:
		c.Undelivered(s, m, why)
	}
	c.schedule(c.state.Clock.Now())
}
