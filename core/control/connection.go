package control

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// connection is one xDS stream.
type connection struct {
	roster *roster
	id     uint64
	peer   xds.Peer
	node   []byte // encoded, without extensions
	// extensions is the list's hash, so that equal lists are sent once; 0 where the node has none.
	extensions uint64
	// shown are the caller's credentials; nil where nobody asks for them.
	shown *caller.Credentials
	since time.Time
	wake  func(xds.Wake)
	err   error

	generator map[string]string // type -> entry
	// attached are the generators that know of it: those of types that it has asked for.
	attached map[string]bool
	subs     map[string]placement.Wish
	// places are the views that it is in.
	places   placement.Places[*session]
	outcomes map[string]outcome
	// visible is what the stream gets: its views' snapshots, patched.
	visible map[string]*view.Snapshot
}

// Connect implements xds.Source.
func (c *Control) Connect(ctx context.Context, p xds.Peer, wake func(xds.Wake)) (xds.Connection, error) {
	node, extensions, err := encodeNode(p.Node)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "node cannot be encoded: %v", err)
	}
	var shown *caller.Credentials
	if c.cfg.Shown != nil { // which may ask what authenticators want
		shown, _ = c.cfg.Shown(ctx) // what is wrong with them has been said to whoever asked
	}
	c.clients.Lock()
	defer c.clients.Unlock()
	if reasons := c.pipeline.notReady(); len(reasons) > 0 {
		return nil, status.Errorf(codes.Unavailable, "the control plane is not ready: %s", strings.Join(reasons, "; "))
	}
	c.conns.last++
	conn := &connection{
		roster: c.roster, id: c.conns.last, peer: p, node: node, extensions: extensions, since: c.clock.Now(), wake: wake,
		generator: map[string]string{}, attached: map[string]bool{}, subs: map[string]placement.Wish{},
		outcomes: map[string]outcome{}, visible: map[string]*view.Snapshot{},
	}
	conn.shown = shown
	c.conns.all[conn.id] = conn
	c.roster.assign(conn)
	return client{c, conn}, nil
}

// encodeNode returns the node without its extensions, and the hash of their list.
func encodeNode(n *corev3.Node) ([]byte, uint64, error) {
	if len(n.GetExtensions()) == 0 {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(n)
		return b, 0, err
	}
	h := sha256.New()
	for _, e := range n.Extensions {
		h.Write(append([]byte(e.Name), 0))
	}
	id := binary.LittleEndian.Uint64(h.Sum(nil)) | 1
	short := proto.CloneOf(n)
	short.Extensions = nil
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(short)
	return b, id, err
}

// assign chooses a generator for each type that is offered, among declared plugins that have once been ready.
func (r *roster) assign(conn *connection) { conn.generator = r.assignment(conn, r.rules, nil) }

// assignment chooses a generator for each type; instead stands for the plugin of its name.
func (r *roster) assignment(conn *connection, rules Rules, instead *known) map[string]string {
	offering := map[string][]string{}
	for _, k := range r.sorted() {
		if instead != nil && k.Name() == instead.Name() {
			k = instead
		}
		if k.Kind() == pb.KindGenerator && k.ready != nil {
			for _, t := range k.ready.Types {
				offering[t.Url] = append(offering[t.Url], k.Name())
			}
		}
	}
	chosen := make(map[string]string, len(offering))
	for url, names := range offering {
		if name := rules.Choose(url, conn.peer.Node, conn.peer.Names, names); name != "" {
			chosen[url] = name
		}
	}
	return chosen
}

// servedBy returns the types that a generator serves to the connection, sorted.
func (conn *connection) servedBy(name string) []string { return typesOf(conn.generator, name) }

// typesOf returns the types that an assignment gives to a generator, sorted.
func typesOf(assignment map[string]string, name string) []string {
	var types []string
	for url, n := range assignment {
		if n == name {
			types = append(types, url)
		}
	}
	slices.Sort(types)
	return types
}

// asks says whether the connection asks for anything that a generator serves to it.
func (conn *connection) asks(name string) bool {
	for url := range conn.subs {
		if conn.generator[url] == name {
			return true
		}
	}
	return false
}

// introduce tells a generator of a connection that asks for one of its types for the first time, at once or in its turn. One whose types nobody asks
// for has no say in which nodes are good.
func (pl *placer) introduce(conn *connection, name string, inTurn bool) {
	s := pl.roster.session(name)
	if s == nil || !s.generates() || conn.attached[name] || !conn.asks(name) {
		return
	}
	conn.attached[name] = true
	if !inTurn {
		s.attach(conn, conn.servedBy(name))
		return
	}
	s.Maker.Turns.Attach(conn, peerKey(conn))
	s.give(pl.clock.Now(), func(time.Time) {})
}

// attach tells a generator of a connection, if its node fits into a message.
func (s *session) attach(conn *connection, types []string) {
	m := &pb.Attach{
		Connection: conn.id, Node: conn.node, Extensions: conn.extensions, Identities: conn.peer.Identities,
		RemoteAddress: conn.peer.RemoteAddress, Types: types,
	}
	var list *pb.Extensions
	if conn.extensions != 0 && s.Maker.Extensions[conn.extensions] == 0 {
		list = &pb.Extensions{Id: conn.extensions}
		for _, e := range conn.peer.Node.Extensions {
			list.Names = append(list.Names, e.Name)
		}
	}
	if err := s.fits(m, list); err != nil {
		s.deny(conn, err)
		return
	}
	if list != nil {
		s.out.Call(&pb.FromCore{Extensions: list})
	}
	if conn.extensions != 0 && !s.Maker.Attached[conn.id] {
		s.Maker.Extensions[conn.extensions]++
	}
	s.Maker.Attached[conn.id] = true
	s.out.Call(&pb.FromCore{Attach: m})
}

// typesFor are the types that the session serves to a connection.
func (s *session) typesFor(conn *connection) []string {
	if s.shadow != nil {
		s.shadow.Attach(conn, nil)
		return s.shadow.Types(conn)
	}
	return conn.servedBy(s.Name())
}

// detach tells a generator that a connection has gone, if it was told of it. A list of extensions goes with the last connection that has it.
func (s *session) detach(conn *connection) {
	if !s.Maker.Attached[conn.id] {
		return
	}
	delete(s.Maker.Attached, conn.id)
	if s.Maker.Extensions[conn.extensions]--; s.Maker.Extensions[conn.extensions] <= 0 {
		delete(s.Maker.Extensions, conn.extensions)
	}
	s.out.Call(&pb.FromCore{Detach: &pb.Detach{Connection: conn.id}})
}

// Visible, Wish, Label, After and Generator implement guard.Stream.
func (conn *connection) Visible(typeURL string) *view.Snapshot { return conn.visible[typeURL] }

// Wish is what it asks for of a type.
func (conn *connection) Wish(typeURL string) placement.Wish { return conn.subs[typeURL] }

// Label is what its view of a type is called; empty: it is in none.
func (conn *connection) Label(typeURL string) string {
	if v := conn.places.View(typeURL); v != nil {
		return v.Label
	}
	return ""
}

// After is the type whose resources name those of this one.
func (conn *connection) After(typeURL string) string {
	return conn.roster.traits(conn.generator[typeURL], typeURL).After
}

// Generator is the plugin that serves a type to it.
func (conn *connection) Generator(typeURL string) string { return conn.generator[typeURL] }

// subscribe notes what a connection wants of a type.
func (st *streams) subscribe(conn *connection, typeURL string, sub placement.Wish) {
	old := conn.subs[typeURL]
	conn.subs[typeURL] = sub
	if !sub.Wildcard && len(sub.Names) == 0 {
		delete(conn.subs, typeURL)
	}
	if at := conn.places.At(typeURL); at.View != nil {
		st.placer.want(at.Session, at.View, conn, sub, false)
		st.placer.unwant(at.Session, at.View, old, false)
		st.screen.publish(at.Session)
	}
	if n, _ := conn.places.Next(typeURL); n.View != nil {
		st.placer.want(n.Session, n.View, conn, sub, true)
		st.placer.unwant(n.Session, n.View, old, false)
	}
	st.placer.subscribeShadows(conn, typeURL, sub, old)
	if len(conn.subs) > 0 {
		st.placer.attachShadows(conn)
		st.placer.introduce(conn, conn.generator[typeURL], true)
		st.roster.rouse(conn.generator[typeURL])
	}
}

// pull is what a connection is served.
func (st *streams) pull(conn *connection) xds.Served {
	s := xds.Served{Epoch: st.course.epoch, Number: st.course.served.Number, Types: make(map[string]*view.Snapshot, len(conn.subs)), Err: conn.err}
	if st.course.closed {
		s.Err = status.Error(codes.Unavailable, "the control plane is stopping")
	}
	for url := range conn.subs {
		if v := conn.visible[url]; v != nil {
			s.Types[url] = v
		}
	}
	return s
}

// report tells the generator of a type what became of a response, if it asks for that.
func (st *streams) report(conn *connection, o xds.Outcome) {
	s := st.roster.session(conn.generator[o.Type])
	if s == nil || !s.plugin.ready.Reports {
		return
	}
	event := pb.ReportEventAck
	switch {
	case o.Health:
		event = pb.ReportEventHealth
	case o.Refused != "":
		event = pb.ReportEventNack
	}
	s.out.Tell(&pb.FromCore{Report: &pb.Report{
		Connection: conn.id, Type: o.Type, Event: event, Detail: budget.Clip(o.Refused, min(mostDetail, s.mostName())), Revision: &pb.Revision{Epoch: st.course.epoch, Number: o.Number},
	}})
}

// note keeps what became of a type's last responses.
func (st *streams) note(conn *connection, o xds.Outcome) {
	last := conn.outcomes[o.Type]
	last.refused = o.Refused
	if o.Refused == "" {
		last.acked, last.revision, last.refused = o.Version, o.Number, o.Left
	} else if st.refusals.AllowN(st.clock.Now(), 1) {
		st.log.Warn("proxy refused a response", "node", conn.peer.Node.GetId(), "type", o.Type, "revision", o.Number, "reason", o.Refused)
	}
	conn.outcomes[o.Type] = last
}

// disconnect takes a connection out.
func (st *streams) disconnect(conn *connection) {
	if st.conns.all[conn.id] != conn {
		return
	}
	delete(st.conns.all, conn.id)
	st.screen.stale.Fresh(conn)
	for s := range st.roster.everybody() {
		s.Maker.Turns.Leave(conn)
	}
	for s := range st.roster.live() {
		if s.generates() && conn.attached[s.Name()] {
			s.detach(conn)
		}
	}
	for url, at := range conn.places.All() {
		st.placer.depart(conn, url, at)
	}
	for url, n := range conn.places.Planned() {
		if n.View != nil {
			st.placer.unwant(n.Session, n.View, conn.subs[url], true)
		}
	}
	st.placer.detachShadows(conn)
}

// refuse ends the stream: a generator can make nothing of the node.
func (conn *connection) refuse(plugin, reason string) {
	conn.end(status.Errorf(codes.InvalidArgument, "%s (refused by generator %s)", budget.Clip(reason, mostReason), plugin))
}

// mostReason is how much of a plugin's reason a client is told: it goes into a header.
const mostReason = 4 << 10

// end ends the stream.
func (conn *connection) end(err error) {
	conn.err = err
	conn.wake(xds.WakeAll)
}

// notReady says why new streams are not taken.
func (p *pipeline) notReady() []string {
	if p.course.closed {
		return []string{"it is stopping"}
	}
	if !p.course.started {
		reasons := p.unready()
		if len(reasons) == 0 {
			reasons = []string{"the first revision is being made" + p.waitingFor()}
		}
		return reasons
	}
	var reasons []string
	for _, k := range p.roster.sorted() {
		if k.Expected.Blocks && k.ready != nil && k.session == nil && !k.Sleep.Asleep {
			reasons = append(reasons, "plugin "+k.Name()+" is away (onFailure: block)")
		}
	}
	return reasons
}

func (p *pipeline) waitingFor() string {
	if p.course.flight == nil || len(p.course.flight.Waiting()) == 0 {
		return ""
	}
	return " by " + strings.Join(p.course.flight.Waiting(), ", ")
}
