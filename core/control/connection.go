package control

import (
	"context"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/state"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

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
	if reasons := c.stages.Pipeline.NotReady(); len(reasons) > 0 {
		return nil, status.Errorf(codes.Unavailable, "the control plane is not ready: %s", strings.Join(reasons, "; "))
	}
	c.state.Connections.Last++
	conn := &state.Connection{
		Roster: c.state.Roster, ID: c.state.Connections.Last, Peer: p, Node: node, Extensions: extensions, Since: c.state.Clock.Now(), Wake: wake,
		Generators: map[string]string{}, Attached: map[string]bool{}, Subs: map[string]placement.Wish{},
		Outcomes: map[string]state.Outcome{}, Seen: map[string]*view.Snapshot{},
	}
	conn.Credentials = shown
	c.state.Connections.All[conn.ID] = conn
	c.state.Roster.Assign(conn)
	return client{c, conn}, nil
}
