package control

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// takeGenerated takes a message of a generator: into the served state if it belongs to what is served, aside if to a later revision.
func (c *Control) takeGenerated(s *session, m *pb.FromPlugin) error {
	switch {
	case m.Bodies != nil:
		return s.store(m.Bodies)
	case m.View != nil:
		if !offers(s.ready, m.View.Type) {
			return fmt.Errorf("it described a view of type %s, which its Ready doesn't offer", m.View.Type)
		}
		s.views.Describe(m.View)
		return nil
	case m.Part != nil:
		return c.at(s, m.Part.Revision, func() error { return s.lenient(c, s.views.Part(m.Part)) })
	case m.Change != nil:
		if !offers(s.ready, m.Change.Type) {
			return fmt.Errorf("it changed a view of type %s, which its Ready doesn't offer", m.Change.Type)
		}
		return c.at(s, m.Change.Revision, func() error { return s.lenient(c, s.views.Change(m.Change)) })
	case m.Place != nil:
		return c.takePlace(s, m.Place)
	case m.Wanted != nil:
		return c.takeWanted(s, m.Wanted)
	}
	c.cfg.Metrics.Unknown(s.Name, "message", 1)
	return nil
}

// store keeps bodies, as far as the plugin may bring them.
func (s *session) store(m *pb.Bodies) error {
	if err := s.views.Store(m); err != nil {
		return err
	}
	if most := s.Limits.Bodies; most > 0 && s.views.Held() > most {
		return fmt.Errorf("its resources take more than %d bytes of the core's memory (limits.bodies)", most)
	}
	return nil
}

// lenient answers missing bodies by asking for them; other faults end the session.
func (s *session) lenient(c *Control, err error) error {
	var missing *view.MissingError
	if errors.As(err, &missing) {
		c.cfg.Log.Warn("plugin named bodies that it never sent", "plugin", s.Name, "bodies", len(missing.Bodies))
		for some := range slices.Chunk(missing.Bodies, idsAtOnce) {
			s.out.call(&pb.FromCore{Missing: &pb.Missing{Bodies: some}})
		}
		return nil
	}
	return err
}

// blame says which resources were not taken, and whose they are.
func (c *Control) blame(s *session) {
	for _, r := range s.views.Refused() {
		c.cfg.Metrics.Fault(s.Name)
		c.cfg.Log.Error("a resource was refused; what there was before stays", "plugin", s.Name, "type", r.Type, "resource", r.Name, "reason", r.Reason)
	}
}

func offers(ready *pb.Ready, typeURL string) bool {
	return slices.ContainsFunc(ready.Types, func(t *pb.Type) bool { return t.Url == typeURL })
}

// at runs an op now if its revision is served, and keeps it otherwise.
func (c *Control) at(s *session, r *pb.Revision, o op) error {
	switch {
	case r == nil:
		return errors.New("it said something without naming a revision")
	case s.overtaking != 0 && r.Number == s.overtaking:
		s.overtakenOps = append(s.overtakenOps, o)
		return nil
	case r.Number > s.acked:
		s.ops = append(s.ops, o)
		return nil
	}
	if err := o(); err != nil {
		return err
	}
	c.publish(s)
	return nil
}

// apply makes what was kept for the session's newest state part of what is served.
func (c *Control) apply(s *session) error {
	ops := s.ops
	s.ops, s.acked = nil, s.sent
	for _, o := range ops {
		if err := o(); err != nil {
			return err
		}
	}
	s.letGo()
	return nil
}

// spent is what a plugin is known to use no more.
type spent struct {
	views         []*view.View
	parts, bodies []uint64
}

// letGo lets go of what is spent, once nothing waits that was said before the plugin knew of it.
func (s *session) letGo() {
	if len(s.ops)+len(s.overtakenOps) > 0 {
		return
	}
	for _, x := range s.spent {
		s.forgetEmpty(x.views)
		s.views.Expire(x.parts)
		s.views.Collect(x.bodies)
	}
	s.spent = nil
}

// idsAtOnce is how many numbers of bodies go into a message.
const idsAtOnce = 50_000

// free tells a generator which of its bodies are no longer used.
func (c *Control) free(s *session) {
	if ids := s.views.Freed(); len(ids) > 0 {
		for some := range slices.Chunk(ids, idsAtOnce) {
			s.out.call(&pb.FromCore{Freed: &pb.Freed{Bodies: some}})
		}
		s.freed = append(s.freed, ids...)
	}
}

// takePlace moves a connection between views. What the connection wants is wanted of the new view at once, so that the move is complete
// when it is served.
func (c *Control) takePlace(s *session, m *pb.Place) error {
	defer c.handed(s, func(o openPiece) bool { return o.attach != 0 && o.attach == m.Connection })
	conn := c.conns[m.Connection]
	if conn == nil {
		return nil // it went meanwhile
	}
	if s.shadow != nil {
		return c.takeShadowPlace(s, conn, m)
	}
	if m.Refused != "" {
		conn.refuse(s.Name, m.Refused)
		return nil
	}
	for _, p := range m.Placements {
		if conn.generator[p.Type] != s.Name {
			return fmt.Errorf("it placed connection %d for type %s, which it doesn't serve to it", m.Connection, p.Type)
		}
		var to *view.View
		if p.View != 0 {
			if to = s.views.Get(p.Type, p.View); to == nil && s.views.Gone(p.Type, p.View) {
				c.anew(s, conn, p)
				continue
			}
			if to == nil {
				return fmt.Errorf("it placed connection %d into view %d of %s, which it never described", m.Connection, p.View, p.Type)
			}
		}
		if err := c.place(s, conn, p.Type, to, m.Revision); err != nil {
			return err
		}
	}
	return nil
}

// anew has a generator place a connection again that it placed into a view which the core has forgotten: it describes the view again, unless others
// are in it.
func (c *Control) anew(s *session, conn *connection, p *pb.Placement) {
	c.cfg.Log.Warn("a generator placed a connection into a view that was forgotten; it is asked again", "plugin", s.Name, "connection", conn.id, "type", p.Type, "view", p.View)
	types := s.typesFor(conn)
	s.detach(conn)
	s.out.call(&pb.FromCore{Drop: &pb.Drop{Type: p.Type, View: p.View, All: true}})
	s.attach(conn, types)
}

func (c *Control) place(s *session, conn *connection, typeURL string, to *view.View, r *pb.Revision) error {
	before := conn.next[typeURL].view
	if before == nil && conn.home[typeURL] == s {
		before = conn.views[typeURL]
	}
	if to != nil && to == before {
		return nil
	}
	if to != nil {
		to.Connections++
		delete(s.empty, to)
		c.left.weigh(to)
		c.want(s, to, conn, conn.subs[typeURL], r != nil && r.Number > s.acked)
	}
	if old := conn.next[typeURL]; old.view != nil {
		c.unwant(old.session, old.view, conn.subs[typeURL], true)
	}
	conn.next[typeURL] = placement{s, to}
	return c.at(s, r, func() error {
		if now := conn.next[typeURL]; c.conns[conn.id] != conn || now.session != s || now.view != to {
			return nil // it was moved again, or went
		}
		delete(conn.next, typeURL)
		c.move(s, conn, typeURL, to)
		return nil
	})
}

// move makes a placement the served one.
func (c *Control) move(s *session, conn *connection, typeURL string, to *view.View) {
	if old := conn.views[typeURL]; old != nil && !conn.home[typeURL].keep(conn, typeURL, old) {
		c.unwant(conn.home[typeURL], old, conn.subs[typeURL], true)
	}
	if to == nil {
		delete(conn.views, typeURL)
		delete(conn.home, typeURL)
	} else {
		conn.views[typeURL], conn.home[typeURL] = to, s
	}
	c.spoilType(conn, typeURL)
}

// want adds a connection's wishes to a view: the generator is asked in the connection's turn. hold makes the revision in the making wait for the
// answers about what the connection has now, which it must not lose; these are asked for at once.
func (c *Control) want(s *session, v *view.View, conn *connection, sub subscription, hold bool) {
	if !c.lives(s) {
		v.Want(sub.wildcard, sub.names)
		return // it is gone; the next session is asked anew
	}
	all, fresh := v.Want(sub.wildcard, sub.names)
	s.turns.wish(conn, v, sub, all, s.short(v, fresh))
	if hold {
		c.keepPromises(s, v, conn, sub)
	}
	c.give(s, time.Now(), func(time.Time) {})
}

// keepPromises asks at once for what the connection has and would lose.
func (c *Control) keepPromises(s *session, v *view.View, conn *connection, sub subscription) {
	has := conn.visible[v.Type]
	if has == nil {
		return
	}
	promised := func(name string) bool { b := has.Get(name); return b != nil && b.Exists() }
	for id, m := range s.asked { // for others
		if m.View == v.ID && m.Type == v.Type && (m.Wildcard && sub.wildcard || slices.ContainsFunc(m.Names, promised)) {
			s.wants[id] = true
		}
	}
	all, names := s.turns.take(v, sub, promised)
	if all {
		c.sendWant(s, &pb.Want{Type: v.Type, View: v.ID, Wildcard: true}, true)
	}
	for len(names) > 0 {
		n := s.batch(names)
		c.sendWant(s, &pb.Want{Type: v.Type, View: v.ID, Names: names[:n]}, true)
		names = names[n:]
	}
}

func (c *Control) sendWant(s *session, m *pb.Want, hold bool) {
	s.nextWant++
	m.Id = s.nextWant
	if len(s.asked) == 0 {
		s.askedAt, s.askedLost = time.Now(), s.lost
	}
	s.asked[m.Id] = m
	if hold {
		s.wants[m.Id] = true
	}
	s.out.call(&pb.FromCore{Want: m})
}

// unwant takes wishes back; leave says that the connection leaves the view.
func (c *Control) unwant(s *session, v *view.View, sub subscription, leave bool) {
	all, gone := v.Drop(sub.wildcard, sub.names)
	tellAll, told := s.turns.drop(v, all, gone)
	if leave {
		v.Connections--
	}
	c.left.weigh(v)
	tell := func(d *pb.Drop) {
		if c.lives(s) {
			d.Type, d.View = v.Type, v.ID
			s.out.call(&pb.FromCore{Drop: d})
		}
	}
	if all {
		s.views.Unwant(v, true, nil)
	}
	if tellAll {
		tell(&pb.Drop{Wildcard: true})
	}
	if len(gone) > 0 {
		s.views.Unwant(v, false, gone)
	}
	told = slices.DeleteFunc(told, func(n string) bool { return len(n) > s.mostName() })
	for len(told) > 0 {
		n := s.batch(told)
		tell(&pb.Drop{Names: told[:n]})
		told = told[n:]
	}
	if v.Unused() {
		tell(&pb.Drop{All: true})
		s.empty[v] = true
	}
}

// forgetEmpty forgets views of which the plugin knows that they are empty. Until then it may be placing connections into them.
func (s *session) forgetEmpty(views []*view.View) {
	for _, v := range views {
		if v.Unused() && s.empty[v] {
			s.views.Forget(v)
			delete(s.empty, v)
		}
	}
}

// takeWanted notes that a wish has been answered.
func (c *Control) takeWanted(s *session, m *pb.Wanted) error {
	asked := s.asked[m.Id]
	if asked == nil {
		return fmt.Errorf("it answered want %d, which was never asked or is answered already", m.Id)
	}
	delete(s.asked, m.Id)
	delete(s.wants, m.Id)
	s.heard = time.Now()
	s.askedAt, s.askedLost = s.heard, s.lost
	defer c.handed(s, func(o openPiece) bool { return o.want == m.Id })
	err := c.at(s, m.Revision, func() error {
		if v := s.views.Get(asked.Type, asked.View); v != nil && asked.Wildcard {
			s.views.Complete(v)
		}
		return nil
	})
	c.advance(time.Now())
	return err
}
