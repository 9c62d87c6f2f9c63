package control

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
)

// takeGenerated takes a message of a generator: into the served state if it belongs to what is served, aside if to a later revision.
func (pl *placer) takeGenerated(s *session, m *pb.FromPlugin) error {
	switch {
	case m.Bodies != nil:
		return s.store(m.Bodies)
	case m.View != nil:
		if !offers(s.plugin.ready, m.View.Type) {
			return fmt.Errorf("it described a view of type %s, which its Ready doesn't offer", m.View.Type)
		}
		s.Maker.Views.Describe(m.View)
		return nil
	case m.Part != nil:
		return pl.screen.at(s, m.Part.Revision, func() error { return pl.lenient(s, s.Maker.Views.Part(m.Part)) })
	case m.Change != nil:
		if !offers(s.plugin.ready, m.Change.Type) {
			return fmt.Errorf("it changed a view of type %s, which its Ready doesn't offer", m.Change.Type)
		}
		return pl.screen.at(s, m.Change.Revision, func() error { return pl.lenient(s, s.Maker.Views.Change(m.Change)) })
	case m.Place != nil:
		return pl.takePlace(s, m.Place)
	case m.Wanted != nil:
		return pl.takeWanted(s, m.Wanted)
	}
	pl.metrics.Unknown(s.Name(), "message", 1)
	return nil
}

// store keeps bodies, as far as the plugin may bring them.
func (s *session) store(m *pb.Bodies) error {
	if err := s.Maker.Views.Store(m); err != nil {
		return err
	}
	if most := s.Limits().Bodies; most > 0 && s.Maker.Views.Held() > most {
		return carrier.Crossed("bodies", "its resources take more than %d bytes of the core's memory (limits.bodies)", most)
	}
	return nil
}

// lenient answers missing bodies by asking for them; other faults end the session.
func (pl *placer) lenient(s *session, err error) error {
	var missing *view.MissingError
	if errors.As(err, &missing) {
		pl.log.Warn("plugin named bodies that it never sent", "plugin", s.Name(), "bodies", len(missing.Bodies))
		for some := range slices.Chunk(missing.Bodies, idsAtOnce) {
			s.out.Call(&pb.FromCore{Missing: &pb.Missing{Bodies: some}})
		}
		return nil
	}
	return err
}

// blame says which resources were not taken, and whose they are.
func (v *screen) blame(s *session) {
	for _, r := range s.Maker.Views.Refused() {
		v.metrics.Fault(s.Name())
		v.log.Error("a resource was refused; what there was before stays", "plugin", s.Name(), "type", r.Type, "resource", r.Name, "reason", r.Reason)
	}
}

func offers(ready *pb.Ready, typeURL string) bool {
	return slices.ContainsFunc(ready.Types, func(t *pb.Type) bool { return t.Url == typeURL })
}

// at runs an op now if its revision is served, and keeps it otherwise.
func (v *screen) at(s *session, r *pb.Revision, o op) error {
	switch {
	case r == nil:
		return errors.New("it said something without naming a revision")
	case s.Maker.Overtaking != 0 && r.Number == s.Maker.Overtaking:
		s.Maker.OvertakenOps = append(s.Maker.OvertakenOps, o)
		return nil
	case r.Number > s.State.Acked:
		s.Maker.Ops = append(s.Maker.Ops, o)
		return nil
	}
	if err := o(); err != nil {
		return err
	}
	v.publish(s)
	return nil
}

// apply makes what was kept for the session's newest state part of what is served.
func (s *session) apply() error {
	ops := s.Maker.Ops
	s.Maker.Ops, s.State.Acked = nil, s.State.Sent
	for _, o := range ops {
		if err := o(); err != nil {
			return err
		}
	}
	s.letGo()
	return nil
}

// letGo lets go of what is not used, once nothing waits that was said before the plugin knew of it.
func (s *session) letGo() {
	if len(s.Maker.Ops)+len(s.Maker.OvertakenOps) == 0 {
		s.Maker.Unused.LetGo(s.Maker.Views)
	}
}

// idsAtOnce is how many numbers of bodies go into a message.
const idsAtOnce = 50_000

// free tells a generator which of its bodies are no longer used.
func (s *session) free() {
	if ids := s.Maker.Views.Freed(); len(ids) > 0 {
		for some := range slices.Chunk(ids, idsAtOnce) {
			s.out.Call(&pb.FromCore{Freed: &pb.Freed{Bodies: some}})
		}
		s.Maker.Unused.Freed(ids)
	}
}

// takePlace moves a connection between views. What the connection wants is wanted of the new view at once, so that the move is complete
// when it is served.
func (pl *placer) takePlace(s *session, m *pb.Place) error {
	defer s.handed(s.Maker.Turns.Attached, m.Connection, pl.clock.Now())
	conn := pl.conns.all[m.Connection]
	if conn == nil {
		return nil // it went meanwhile
	}
	if s.shadow != nil {
		return pl.takeShadowPlace(s, conn, m)
	}
	if m.Refused != "" {
		conn.refuse(s.Name(), m.Refused)
		return nil
	}
	for _, p := range m.Placements {
		if conn.generator[p.Type] != s.Name() {
			return fmt.Errorf("it placed connection %d for type %s, which it doesn't serve to it", m.Connection, p.Type)
		}
		var to *view.View
		if p.View != 0 {
			if to = s.Maker.Views.Get(p.Type, p.View); to == nil && s.Maker.Views.Gone(p.Type, p.View) {
				pl.anew(s, conn, p)
				continue
			}
			if to == nil {
				return fmt.Errorf("it placed connection %d into view %d of %s, which it never described", m.Connection, p.View, p.Type)
			}
		}
		if err := pl.place(s, conn, p.Type, to, m.Revision); err != nil {
			return err
		}
	}
	return nil
}

// anew has a generator place a connection again that it placed into a view which the core has forgotten: it describes the view again, unless others
// are in it.
func (pl *placer) anew(s *session, conn *connection, p *pb.Placement) {
	pl.log.Warn("a generator placed a connection into a view that was forgotten; it is asked again", "plugin", s.Name(), "connection", conn.id, "type", p.Type, "view", p.View)
	types := s.typesFor(conn)
	s.detach(conn)
	s.out.Call(&pb.FromCore{Drop: &pb.Drop{Type: p.Type, View: p.View, All: true}})
	s.attach(conn, types)
}

func (pl *placer) place(s *session, conn *connection, typeURL string, to *view.View, r *pb.Revision) error {
	next := placement.Place[*session]{Session: s, View: to}
	if conn.places.Is(typeURL, next) {
		return nil
	}
	if to != nil {
		to.Connections++
		s.Maker.Unused.Entered(to)
		pl.conns.left.Weigh(to)
		pl.want(s, to, conn, conn.subs[typeURL], r != nil && r.Number > s.State.Acked)
	}
	if old := conn.places.Plan(typeURL, next); old.View != nil {
		pl.unwant(old.Session, old.View, conn.subs[typeURL], true)
	}
	return pl.screen.at(s, r, func() error {
		if pl.conns.all[conn.id] == conn && conn.places.Due(typeURL, next) { // it was not moved again, nor went
			pl.move(s, conn, typeURL, to)
		}
		return nil
	})
}

// move makes a placement the served one.
func (pl *placer) move(s *session, conn *connection, typeURL string, to *view.View) {
	from := conn.places.Move(typeURL, placement.Place[*session]{Session: s, View: to})
	if from.View != nil && !from.Session.keep(conn, typeURL, from.View) {
		pl.unwant(from.Session, from.View, conn.subs[typeURL], true)
	}
	pl.screen.stale.Spoil(conn, typeURL)
}
