package serving

import (
	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Streams are what connections do, and which generators serve them.
type Streams struct {
	state      *state.State
	patches    *Patches
	losses     *Losses
	screen     *Screen
	placer     *Placer
	quarantine *Quarantine
	// refusals bounds how many lines proxies that refuse may make.
	refusals *rate.Limiter
}

// Subscribe notes what a connection wants of a type.
func (st *Streams) Subscribe(conn *state.Connection, typeURL string, sub placement.Wish) {
	old := conn.Ask(typeURL, sub)
	if at := conn.Places.At(typeURL); at.View != nil {
		st.placer.want(at.Session, at.View, conn, sub, false)
		st.placer.unwant(at.Session, at.View, old, false)
		st.screen.Publish(at.Session)
	}
	if n, _ := conn.Places.Next(typeURL); n.View != nil {
		st.placer.want(n.Session, n.View, conn, sub, true)
		st.placer.unwant(n.Session, n.View, old, false)
	}
	st.placer.subscribeShadows(conn, typeURL, sub, old)
	if len(conn.Subs) > 0 {
		st.placer.attachShadows(conn)
		st.placer.Introduce(conn, conn.Generators[typeURL], true)
		st.state.Roster.Rouse(conn.Generators[typeURL])
	}
}

// Pull is what a connection is served.
func (st *Streams) Pull(conn *state.Connection) xds.Served {
	s := xds.Served{Epoch: st.state.Course.Epoch, Number: st.state.Course.Served.Number, Types: make(map[string]*view.Snapshot, len(conn.Subs)), Err: conn.Err}
	if st.state.Course.Closed {
		s.Err = status.Error(codes.Unavailable, "the control plane is stopping")
	}
	for url := range conn.Subs {
		if v := conn.Seen[url]; v != nil {
			s.Types[url] = v
		}
	}
	return s
}

// Report tells the generator of a type what became of a response, if it asks for that.
func (st *Streams) Report(conn *state.Connection, o xds.Outcome) {
	s := st.state.Roster.Session(conn.Generators[o.Type])
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
		Connection: conn.ID, Type: o.Type, Event: event,
		Detail:   budget.Clip(o.Refused, min(state.MostDetail, s.MostName())),
		Revision: &pb.Revision{Epoch: st.state.Course.Epoch, Number: o.Number},
	}})
}

// Note keeps what became of a type's last responses.
func (st *Streams) Note(conn *state.Connection, o xds.Outcome) {
	last := conn.Outcomes[o.Type]
	had := last.Revision
	if st.state.Roster.Sensitive(o.Type) { // of secrets nothing is kept
		o.Has = nil
		for i := range o.Culprits {
			o.Culprits[i].Instead = nil
		}
	}
	if last = last.After(o); o.Refused != "" && st.refusals.AllowN(st.state.Clock.Now(), 1) {
		st.state.Log.Warn("proxy refused a response", "node", conn.Peer.Node.GetId(), "type", o.Type, "revision", o.Number, "reason", o.Refused)
	}
	conn.Came(o.Type, last)
	st.quarantine.Note(conn, o, had)
	conn.Came(o.Type, last.Without(st.quarantine.Of(conn, o.Type)))
	if st.screen.stale.Any() {
		st.screen.Show()
	}
}

// Disconnect takes a connection out.
func (st *Streams) Disconnect(conn *state.Connection) {
	if st.state.Connections.All[conn.ID] != conn {
		return
	}
	st.quarantine.Left(conn)
	st.state.Connections.Remove(conn)
	st.state.Journal.Left(conn, st.state.Clock.Now())
	st.screen.forget(conn)
	st.screen.stale.Fresh(conn)
	for s := range st.state.Roster.AllSessions() {
		s.Maker.Turns.Leave(conn)
	}
	for s := range st.state.Roster.Sessions() {
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
