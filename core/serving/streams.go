package serving

import (
	"log/slog"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/state"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Subscribe notes what a connection wants of a type.
func (st *Streams) Subscribe(conn *state.Connection, typeURL string, sub placement.Wish) {
	old := conn.Subs[typeURL]
	conn.Subs[typeURL] = sub
	if !sub.Wildcard && len(sub.Names) == 0 {
		delete(conn.Subs, typeURL)
	}
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
		st.roster.Rouse(conn.Generators[typeURL])
	}
}

// Pull is what a connection is served.
func (st *Streams) Pull(conn *state.Connection) xds.Served {
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

// Report tells the generator of a type what became of a response, if it asks for that.
func (st *Streams) Report(conn *state.Connection, o xds.Outcome) {
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

// Note keeps what became of a type's last responses.
func (st *Streams) Note(conn *state.Connection, o xds.Outcome) {
	last := conn.Outcomes[o.Type]
	last.Refused = o.Refused
	if o.Refused == "" {
		last.Acked, last.Revision, last.Refused = o.Version, o.Number, o.Left
	} else if st.refusals.AllowN(st.clock.Now(), 1) {
		st.log.Warn("proxy refused a response", "node", conn.Peer.Node.GetId(), "type", o.Type, "revision", o.Number, "reason", o.Refused)
	}
	conn.Outcomes[o.Type] = last
}

// Disconnect takes a connection out.
func (st *Streams) Disconnect(conn *state.Connection) {
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

// Streams are what connections do, and which generators serve them.
type Streams struct {
	log     *slog.Logger
	clock   *state.Clock
	roster  *state.Roster
	course  *state.Course
	conns   *state.Connections
	patches *Patches
	losses  *Losses
	screen  *Screen
	placer  *Placer
	// refusals bounds how many lines proxies that refuse may make.
	refusals *rate.Limiter
}

// LeaveGenerator gives the types that a generator served to others; those that nobody serves go.
func (st *Streams) LeaveGenerator(conn *state.Connection, name string) {
	had := conn.Generators
	lost := conn.ServedBy(name)
	st.roster.Assign(conn)
	for _, url := range lost {
		if at := conn.Places.At(url); conn.Generators[url] == "" && at.View != nil {
			st.placer.move(at.Session, conn, url, nil)
		}
	}
	st.Reattach(conn, had, name)
}

// AnySees reports whether any connection has anything.
func (st *Streams) AnySees() bool {
	for _, conn := range st.conns.All {
		if len(conn.Seen) > 0 {
			return true
		}
	}
	return false
}

// Orphaned is what proxies would be shown of the types that nobody would make for them without a generator: nothing.
func (st *Streams) Orphaned(k *state.Plugin) state.Shown {
	next := state.Shown{}
	gone := &state.Plugin{Expected: state.Expected{Name: k.Name()}} // which offers nothing
	for _, conn := range st.conns.Sorted() {
		without := st.roster.Assignment(conn, st.roster.Rules, gone)
		for _, url := range conn.ServedBy(k.Name()) {
			if without[url] == "" {
				next.Put(conn, url, nil)
			}
		}
	}
	return next
}

// Unpatched is what proxies would be shown without a patch, as far as the others have said already what they make of it.
func (st *Streams) Unpatched(k *state.Plugin, rules state.Rules) state.Shown {
	next := state.Shown{}
	made := map[patch.Key]*view.Snapshot{}
	for _, conn := range st.conns.Sorted() {
		for url, at := range conn.Places.All() {
			v := at.View
			served := st.patches.Chain(conn, url)
			if v.Snapshot() == nil || !slices.ContainsFunc(served, func(p *patch.Patcher) bool { return p.Name == k.Name() }) {
				continue
			}
			chain := st.patches.ChainBy(conn, url, rules, nil)
			key := patch.KeyOf(v, chain)
			if made[key] == nil {
				made[key] = st.patches.made.SoFar(v, chain, served)
			}
			next.Put(conn, url, made[key])
		}
	}
	return next
}

// Exchange gives each connection the new generator's views; the old one keeps its own.
func (st *Streams) Exchange(name string, last *state.Session, shadow *state.Shadow) {
	next := st.roster.Session(name)
	for _, conn := range st.conns.Sorted() {
		had := conn.Generators
		st.roster.Assign(conn)
		before, after := state.TypesOf(had, name), conn.ServedBy(name)
		if last != nil && conn.Attached[name] {
			last.Shadow.Attach(conn, before)
		}
		if why := shadow.Refused(conn); why != "" {
			conn.Refuse(name, why)
		}
		for _, url := range slices.Compact(slices.Sorted(slices.Values(append(before, after...)))) {
			if n, ok := conn.Places.Drop(url, next); ok && n.View != nil {
				st.placer.unwant(n.Session, n.View, conn.Subs[url], true)
			}
			switch to := shadow.View(conn, url); {
			case slices.Contains(after, url) && to != nil:
				st.takeOver(next, conn, url, to)
			case !slices.Contains(after, url) && conn.Generators[url] == "":
				st.placer.move(next, conn, url, nil)
			}
		}
		if conn.Attached[name] = shadow.Attached(conn); !conn.Attached[name] {
			st.placer.Introduce(conn, name, false)
		}
		st.Reattach(conn, had, name)
	}
}

// takeOver makes a placement of the new generator the served one. Its wishes are counted already.
func (st *Streams) takeOver(next *state.Session, conn *state.Connection, url string, to *view.View) {
	if conn.Places.View(url) == to {
		return
	}
	st.placer.move(next, conn, url, to)
}

// Reattach tells other generators which types of a connection are theirs now.
func (st *Streams) Reattach(conn *state.Connection, had map[string]string, except string) {
	for _, k := range st.roster.Sorted() {
		s := st.roster.Session(k.Name())
		before, after := state.TypesOf(had, k.Name()), conn.ServedBy(k.Name())
		if k.Name() == except || s == nil || !s.Generates() || slices.Equal(before, after) {
			continue
		}
		switch {
		case len(after) == 0 && conn.Attached[k.Name()]:
			delete(conn.Attached, k.Name())
			s.Detach(conn)
		case conn.Attached[k.Name()]:
			s.Attach(conn, after)
		default:
			st.placer.Introduce(conn, k.Name(), false)
		}
	}
}
