package control

import (
	"context"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// client is a stream's side of its connection: what it does takes the lock of clients.
type client struct {
	c    *Control
	conn *state.Connection
}

// ID implements xds.Connection.
func (s client) ID() uint64 { return s.conn.ID }

// Offers implements xds.Connection.
func (s client) Offers(typeURL string) (*pb.Traits, bool) {
	s.c.clients.Lock()
	defer s.c.clients.Unlock()
	if s.conn.Generators[typeURL] == "" {
		return nil, false
	}
	return s.c.mid.State.Roster.Traits(s.conn.Generators[typeURL], typeURL), true
}

// Subscribe implements xds.Connection.
func (s client) Subscribe(typeURL string, wildcard bool, names []string) {
	s.c.clients.Lock()
	defer s.c.clients.Unlock()
	s.c.mid.Serving.Streams.Subscribe(s.conn, typeURL, placement.Wish{Wildcard: wildcard, Names: names})
}

// Pull implements xds.Connection.
func (s client) Pull() xds.Served {
	s.c.clients.Lock()
	defer s.c.clients.Unlock()
	return s.c.mid.Serving.Streams.Pull(s.conn)
}

// Report implements xds.Connection.
func (s client) Report(o xds.Outcome) {
	s.c.clients.Lock()
	defer s.c.clients.Unlock()
	if o.Answered > 0 {
		defer s.c.mid.Rollout.Heard(s.conn)
		defer s.c.mid.State.Journal.HasAll(s.conn, o.Answered, s.c.mid.State.Clock.Now())
	}
	if o.Type == "" {
		return
	}
	if o.Health {
		s.c.mid.Serving.Clients.Said(s.conn, o)
	} else {
		s.c.mid.State.Journal.Answered(s.conn, o)
		s.c.mid.Plugins.Trials.CountRefusal(s.conn, o)
		s.c.mid.Serving.Streams.Note(s.conn, o)
		s.c.mid.Rollout.Note(s.conn, o)
	}
	s.c.mid.Serving.Streams.Report(s.conn, o)
}

// Close implements xds.Connection.
func (s client) Close() {
	s.c.clients.Lock()
	defer s.c.clients.Unlock()
	s.c.mid.Serving.Streams.Disconnect(s.conn)
	s.c.mid.Serving.Clients.Left(s.conn)
	s.c.mid.Plugins.Trials.Left(s.conn)
	s.c.mid.State.Course.Ring()
}

// Connect implements xds.Source.
func (c *Control) Connect(ctx context.Context, p xds.Peer, wake func(xds.Wake)) (xds.Connection, error) {
	node, extensions, err := state.EncodeNode(p.Node)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "node cannot be encoded: %v", err)
	}
	var shown *caller.Credentials
	if c.cfg.Shown != nil { // which may ask what authenticators want
		shown, _ = c.cfg.Shown(ctx) // what is wrong with them has been said to whoever asked
	}
	c.clients.Lock()
	defer c.clients.Unlock()
	if reasons := c.mid.Stages.Pipeline.NotReady(); len(reasons) > 0 {
		return nil, status.Errorf(codes.Unavailable, "the control plane is not ready: %s", strings.Join(reasons, "; "))
	}
	conn := c.mid.State.NewConnection(p, node, extensions, wake)
	c.mid.Serving.Clients.Connected(conn)
	conn.Speaks(state.Caller{Credentials: shown, Voice: voiceOf(c.cfg.Naming, p)})
	return client{c, conn}, nil
}

// voiceOf is who speaks for a caller where what it says counts for others: its identity, for
// proxies of the namespace that this is of.
func voiceOf(naming caller.Naming, p xds.Peer) state.Voice {
	if naming.Namespaces == nil || naming.NamespaceOf == nil {
		return state.Voice{}
	}
	var v state.Voice
	says := naming.NamespaceOf(p.Node)
	for _, identity := range p.Identities {
		for _, ns := range naming.Namespaces([]string{identity}) {
			if !v.Votes() || ns == says && v.Namespace != says {
				v = state.Voice{Identity: identity, Namespace: ns, Operator: ns == naming.Operators}
			}
		}
	}
	return v
}
