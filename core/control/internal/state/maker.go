package state

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Maker is what a generator makes.
type Maker struct {
	// Bodies are what it has sent, Views what it said of them, and Refusals what of that was not
	// taken.
	Bodies   *view.Bodies
	Views    *view.Views
	Refusals *view.Refusals
	// Ops are what it said about a revision that is not served yet, OvertakenOps about the
	// endpoints of revision Overtaking; 0: none overtake.
	Ops          []Op
	Overtaking   uint64
	OvertakenOps []Op
	Turns        *placement.Turns[*Connection]
	Asked        *placement.Asked
	Unused       *placement.Unused
	// Attached are connections that the plugin knows of, Extensions the lists that it knows, and
	// how many of these connections have them.
	Attached   map[uint64]bool
	Extensions map[uint64]int
}

// Begin gives a generator that said ready its bodies and views, of which there are none yet.
func (m *Maker) Begin(r *pb.Ready) {
	of := view.Types{Carried: map[string]string{}, Trusted: map[string]bool{}}
	for _, t := range r.Types {
		if b := traitsOf(t).BodyType; b != "" {
			of.Carried[t.Url] = b
		}
		if t.Checked {
			of.Trusted[t.Url] = true
		}
	}
	m.Bodies, m.Refusals = view.NewBodies(of), view.NewRefusals()
	m.Views = view.NewViews(m.Bodies, m.Refusals)
}

// Overtake notes that endpoints overtake, as a revision of their own.
func (m *Maker) Overtake(number uint64) { m.Overtaking = number }

// Keep keeps what it said about a revision that is not served yet.
func (m *Maker) Keep(o Op) { m.Ops = append(m.Ops, o) }

// KeepOvertaken keeps what it said about endpoints that overtake.
func (m *Maker) KeepOvertaken(o Op) { m.OvertakenOps = append(m.OvertakenOps, o) }

// Overtaken does what it said about endpoints that overtook: now, and again when the revision that
// they overtook is served.
func (m *Maker) Overtaken() error {
	ops := m.OvertakenOps
	m.Overtaking, m.OvertakenOps = 0, nil
	for _, o := range ops {
		if err := o(); err != nil {
			return err
		}
	}
	if len(m.Ops) > 0 {
		m.Ops = append(m.Ops, ops...)
	}
	return nil
}

// Attach tells a generator of a connection, if its node fits into a message.
func (s *Session) Attach(conn *Connection, types []string) {
	m := &pb.Attach{
		Connection: conn.ID, Node: conn.Node, Extensions: conn.Extensions, Identities: conn.Peer.Identities,
		RemoteAddress: conn.Peer.RemoteAddress, Types: types,
	}
	var list *pb.Extensions
	if conn.Extensions != 0 && s.Maker.Extensions[conn.Extensions] == 0 {
		list = &pb.Extensions{Id: conn.Extensions}
		for _, e := range conn.Peer.Node.Extensions {
			list.Names = append(list.Names, e.Name)
		}
	}
	if err := s.fits(m, list); err != nil {
		s.Deny(conn, err)
		return
	}
	if list != nil {
		s.Out.Call(&pb.FromCore{Extensions: list})
	}
	if conn.Extensions != 0 && !s.Maker.Attached[conn.ID] {
		s.Maker.Extensions[conn.Extensions]++
	}
	s.Maker.Attached[conn.ID] = true
	s.Out.Call(&pb.FromCore{Attach: m})
}

// TypesFor are the types that the session serves to a connection.
func (s *Session) TypesFor(conn *Connection) []string {
	if s.Shadow != nil {
		s.Shadow.Attach(conn, nil)
		return s.Shadow.Types(conn)
	}
	return conn.ServedBy(s.Name())
}

// Detach tells a generator that a connection has gone, if it was told of it. A list of extensions
// goes with the last connection that has it.
func (s *Session) Detach(conn *Connection) {
	if !s.Maker.Attached[conn.ID] {
		return
	}
	delete(s.Maker.Attached, conn.ID)
	if s.Maker.Extensions[conn.Extensions]--; s.Maker.Extensions[conn.Extensions] <= 0 {
		delete(s.Maker.Extensions, conn.Extensions)
	}
	s.Out.Call(&pb.FromCore{Detach: &pb.Detach{Connection: conn.ID}})
}

// Keep lets a replaced plugin hold a connection's place in a view, so that it can come back; false:
// it need not.
func (s *Session) Keep(conn *Connection, typeURL string, v *view.View) bool {
	return s != nil && s.Shadow != nil && s.Shadow.Keep(conn, typeURL, v)
}

// Deny ends a connection that can't be told to a plugin; one that only a shadow would serve is as
// good as refused by it.
func (s *Session) Deny(conn *Connection, err error) {
	if s.Shadow != nil {
		s.Shadow.Refuse(conn, err.Error())
		return
	}
	conn.end(err)
}

// fits returns why a connection can't be told to a plugin.
func (s *Session) fits(attach *pb.Attach, extensions *pb.Extensions) error {
	size := attach.Size()
	if extensions != nil {
		size = max(size, extensions.Size())
	}
	if size <= s.Room() {
		return nil
	}
	return status.Errorf(codes.InvalidArgument,
		"the node (with its extensions) has %d bytes; generator %s takes %d: send less metadata", size, s.Name(),
		s.Room())
}

// Store keeps bodies, as far as the plugin may bring them.
func (s *Session) Store(m *pb.Bodies) error {
	if err := s.Maker.Bodies.Store(m); err != nil {
		return err
	}
	if most := s.Limits().Bodies; most > 0 && s.Maker.Bodies.Held() > most {
		return carrier.Crossed("bodies", "its resources take more than %d bytes of the core's memory (limits.bodies)", most)
	}
	return nil
}

// IDsAtOnce is how many numbers of bodies go into a message.
const IDsAtOnce = 50_000

// Apply makes what was kept for the session's newest state part of what is served.
func (s *Session) Apply() error {
	ops := s.Maker.Ops
	s.Maker.Ops, s.State.Acked = nil, s.State.Sent
	for _, o := range ops {
		if err := o(); err != nil {
			return err
		}
	}
	s.LetGo()
	return nil
}

// LetGo lets go of what is not used, once nothing waits that was said before the plugin knew of it.
func (s *Session) LetGo() {
	if len(s.Maker.Ops)+len(s.Maker.OvertakenOps) == 0 {
		s.Maker.Unused.LetGo(s.Maker.Views, s.Maker.Bodies)
	}
}

// Free tells a generator which of its bodies are no longer used.
func (s *Session) Free() {
	if ids := s.Maker.Bodies.Freed(); len(ids) > 0 {
		for some := range slices.Chunk(ids, IDsAtOnce) {
			s.Out.Call(&pb.FromCore{Freed: &pb.Freed{Bodies: some}})
		}
		s.Maker.Unused.Freed(ids)
	}
}
