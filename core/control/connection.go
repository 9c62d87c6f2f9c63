package control

import (
	"context"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
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
	if reasons := c.stages.Pipeline.notReady(); len(reasons) > 0 {
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

// introduce tells a generator of a connection that asks for one of its types for the first time, at once or in its turn. One whose types nobody asks
// for has no say in which nodes are good.
func (pl *placer) introduce(conn *state.Connection, name string, inTurn bool) {
	s := pl.roster.Session(name)
	if s == nil || !s.Generates() || conn.Attached[name] || !conn.Asks(name) {
		return
	}
	conn.Attached[name] = true
	if !inTurn {
		s.Attach(conn, conn.ServedBy(name))
		return
	}
	s.Maker.Turns.Attach(conn, state.PeerKey(conn))
	s.Give(pl.clock.Now(), func(time.Time) {})
}

// subscribe notes what a connection wants of a type.
func (st *streams) subscribe(conn *state.Connection, typeURL string, sub placement.Wish) {
	old := conn.Subs[typeURL]
	conn.Subs[typeURL] = sub
	if !sub.Wildcard && len(sub.Names) == 0 {
		delete(conn.Subs, typeURL)
	}
	if at := conn.Places.At(typeURL); at.View != nil {
		st.placer.want(at.Session, at.View, conn, sub, false)
		st.placer.unwant(at.Session, at.View, old, false)
		st.screen.publish(at.Session)
	}
	if n, _ := conn.Places.Next(typeURL); n.View != nil {
		st.placer.want(n.Session, n.View, conn, sub, true)
		st.placer.unwant(n.Session, n.View, old, false)
	}
	st.placer.subscribeShadows(conn, typeURL, sub, old)
	if len(conn.Subs) > 0 {
		st.placer.attachShadows(conn)
		st.placer.introduce(conn, conn.Generators[typeURL], true)
		st.roster.Rouse(conn.Generators[typeURL])
	}
}

// pull is what a connection is served.
func (st *streams) pull(conn *state.Connection) xds.Served {
	s := xds.Served{Epoch: st.course.Epoch, Number: st.course.Served.Number, Types: make(map[string]*view.Snapshot, len(conn.Subs)), Err: conn.Err}
	if st.course.Closed {
		s.Err = status.Error(codes.Unavailable, "the control plane is stopping")
	}
	for url := range conn.Subs {
		if v := conn.Seen[url]; v != nil {
			s.Types[url] = v
		}
	}
	return s
}

// report tells the generator of a type what became of a response, if it asks for that.
func (st *streams) report(conn *state.Connection, o xds.Outcome) {
	s := st.roster.Session(conn.Generators[o.Type])
	if s == nil || !s.Plugin.Ready.Reports {
		return
	}
	event := pb.ReportEventAck
	switch {
	case o.Health:
		event = pb.ReportEventHealth
	case o.Refused != "":
		event = pb.ReportEventNack
	}
	s.Out.Tell(&pb.FromCore{Report: &pb.Report{
		Connection: conn.ID, Type: o.Type, Event: event, Detail: budget.Clip(o.Refused, min(state.MostDetail, s.MostName())), Revision: &pb.Revision{Epoch: st.course.Epoch, Number: o.Number},
	}})
}

// note keeps what became of a type's last responses.
func (st *streams) note(conn *state.Connection, o xds.Outcome) {
	last := conn.Outcomes[o.Type]
	last.Refused = o.Refused
	if o.Refused == "" {
		last.Acked, last.Revision, last.Refused = o.Version, o.Number, o.Left
	} else if st.refusals.AllowN(st.clock.Now(), 1) {
		st.log.Warn("proxy refused a response", "node", conn.Peer.Node.GetId(), "type", o.Type, "revision", o.Number, "reason", o.Refused)
	}
	conn.Outcomes[o.Type] = last
}

// disconnect takes a connection out.
func (st *streams) disconnect(conn *state.Connection) {
	if st.conns.All[conn.ID] != conn {
		return
	}
	delete(st.conns.All, conn.ID)
	st.screen.stale.Fresh(conn)
	for s := range st.roster.AllSessions() {
		s.Maker.Turns.Leave(conn)
	}
	for s := range st.roster.Sessions() {
		if s.Generates() && conn.Attached[s.Name()] {
			s.Detach(conn)
		}
	}
	for url, at := range conn.Places.All() {
		st.placer.depart(conn, url, at)
	}
	for url, n := range conn.Places.Planned() {
		if n.View != nil {
			st.placer.unwant(n.Session, n.View, conn.Subs[url], true)
		}
	}
	st.placer.detachShadows(conn)
}

// notReady says why new streams are not taken.
func (p *pipeline) notReady() []string {
	if p.course.Closed {
		return []string{"it is stopping"}
	}
	if !p.course.Started {
		reasons := p.unready()
		if len(reasons) == 0 {
			reasons = []string{"the first revision is being made" + p.waitingFor()}
		}
		return reasons
	}
	var reasons []string
	for _, k := range p.roster.Sorted() {
		if k.Expected.Blocks && k.Ready != nil && k.Session == nil && !k.Sleep.Asleep {
			reasons = append(reasons, "plugin "+k.Name()+" is away (onFailure: block)")
		}
	}
	return reasons
}

func (p *pipeline) waitingFor() string {
	if p.course.Flight == nil || len(p.course.Flight.Waiting()) == 0 {
		return ""
	}
	return " by " + strings.Join(p.course.Flight.Waiting(), ", ")
}
