package control

import (
	"cmp"

	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A client says how large its node, its names and its errors are; a plugin takes messages up to a size. What is larger is refused to that client,
// or cut: it is never a reason to end the plugin's session.

// room is how many bytes a message to the plugin may have. It keeps to the size of what the plugin may say, for much of that repeats what it was
// told.
func (s *session) room() int {
	most := cmp.Or(max(s.Limits().Message, 0), carrier.MaxMessage)
	return min(most, carrier.MaxMessage) * 7 / 8
}

// mostName is the longest name of a resource that a plugin is asked for: several of them go into a message.
func (s *session) mostName() int { return s.room() / 8 }

// mostDetail is how much of a client's words goes to a plugin.
const mostDetail = 64 << 10

// fits returns why a connection can't be told to a plugin.
func (s *session) fits(attach *pb.Attach, extensions *pb.Extensions) error {
	size := attach.Size()
	if extensions != nil {
		size = max(size, extensions.Size())
	}
	if size <= s.room() {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "the node (with its extensions) has %d bytes; generator %s takes %d: send less metadata", size, s.Name(), s.room())
}

// deny ends a connection that can't be told to a plugin; one that only a shadow would serve is as good as refused by it.
func (s *session) deny(conn *connection, err error) {
	if s.shadow != nil {
		s.shadow.Refuse(conn, err.Error())
		return
	}
	conn.end(err)
}

// short takes out the names that are too long to be asked for: nobody has such resources.
func (s *session) short(v *view.View, names []string) []string {
	most := s.mostName()
	var long []*pb.Entry
	kept := names[:0:0]
	for _, n := range names {
		if len(n) > most {
			long = append(long, &pb.Entry{Name: n})
		} else {
			kept = append(kept, n)
		}
	}
	if len(long) == 0 {
		return names
	}
	_ = s.Maker.Views.Change(&pb.Change{Type: v.Type, View: v.ID, Upserts: long}) // entries without bodies: nothing can be missing
	return kept
}

// batch returns how many names fit into a message; at least one, which is short enough.
func (s *session) batch(names []string) int {
	size, room := 0, s.room()
	for i, n := range names {
		if size += len(n) + 8; size > room && i > 0 {
			return i
		}
	}
	return len(names)
}

// undelivered takes back a call that was too large to be sent.
func (c *Control) undelivered(s *session, m *pb.FromCore, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.Log.Warn("a message to a plugin is too large; what it asked for fails, and nothing else", "plugin", s.Name(), "error", why)
	c.cfg.Metrics.Unknown(s.Name(), "too large", 1)
	switch {
	case m.Attach != nil:
		if conn := c.conns.all[m.Attach.Connection]; conn != nil {
			s.deny(conn, status.Errorf(codes.InvalidArgument, "the node is too large: %v", why))
		}
	case m.Want != nil:
		s.Maker.Asked.Undelivered(m.Want.Id)
	case m.Store != nil:
		c.writes.stores.Undelivered(m.Store, why)
		c.writes.tellStores()
	case m.Stored != nil:
		c.writes.stores.AnswerUndelivered(s, m.Stored, why)
		c.writes.tellStores()
	case m.Patch != nil:
		if p := s.plugin.patcher; p != nil {
			if r := p.Undelivered(m.Patch.Id, why, c.clock.Now()); r != nil {
				c.results.answered(p, r)
			}
		}
	case m.Authenticate != nil, m.Call != nil:
		c.questions.undelivered(s, m, why)
	}
	c.schedule(c.clock.Now())
}
