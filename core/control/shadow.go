package control

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// shadow is what a session says while another of its name is served: it may take its place, or was replaced by it and is kept warm. It is fed as
// the served one is, and holds what the tables and the connections would have from it.
type shadow struct {
	rows  environment.Tables
	seats map[*connection]*seat
}

// seat is a connection as a shadow sees it.
type seat struct {
	types   []string
	placed  map[string]*view.View
	refused string
}

func newShadow(rows environment.Tables) *shadow {
	return &shadow{rows: rows, seats: map[*connection]*seat{}}
}

// take makes rows part of the shadow's shard.
func (sh *shadow) take(tables []*pb.TableRows) {
	for _, t := range tables {
		for _, r := range t.Upserts {
			sh.rows.Put(t.Table, r)
		}
		for _, k := range t.Deletes {
			delete(sh.rows[t.Table], k)
		}
	}
}

func (sh *shadow) seat(conn *connection, types []string) *seat {
	at := sh.seats[conn]
	if at == nil {
		at = &seat{placed: map[string]*view.View{}}
		sh.seats[conn] = at
	}
	if types != nil {
		at.types = types
	}
	return at
}

// shadows yields the sessions that are not served.
func (c *Control) shadows() iter.Seq[*session] {
	return func(yield func(*session) bool) {
		for _, t := range c.trials {
			if t.session != nil && !yield(t.session) {
				return
			}
		}
	}
}

// everybody yields all sessions.
func (c *Control) everybody() iter.Seq[*session] {
	return func(yield func(*session) bool) {
		for _, s := range c.sessions {
			if !yield(s) {
				return
			}
		}
		for s := range c.shadows() {
			if !yield(s) {
				return
			}
		}
	}
}

// lives says whether a session has not ended.
func (c *Control) lives(s *session) bool {
	return c.sessions[s.Name] == s || c.trialOf(s) != nil
}

// lacks says whether there are rows that the session has not been sent.
func (s *session) lacks() bool {
	return len(s.dirty) > 0 || s.whole && (s.generates() || s.ready.Derives || len(s.reads) > 0)
}

// feedShadows sends shadows what they lack, once all rows of a revision are made.
func (c *Control) feedShadows() {
	if c.flight != nil && !c.flight.generating {
		return
	}
	for s := range c.shadows() {
		if s.lacks() && s.busy.IsZero() {
			c.sendState(s, c.env.Number())
			if t := c.trialOf(s); t.patcher != nil {
				t.patcher.Forget()
				t.made.Clear()
			}
		}
	}
}

// shadowDone takes in what a generator said of a revision.
func (c *Control) shadowDone(s *session) error {
	if !s.generates() {
		return nil
	}
	if err := c.apply(s); err != nil {
		return err
	}
	c.publish(s)
	c.free(s)
	return nil
}

// attachShadows tells shadows of a connection that asks for something of theirs for the first time.
func (c *Control) attachShadows(conn *connection) {
	for _, name := range slices.Sorted(maps.Keys(c.trials)) {
		t := c.trials[name]
		if s := t.session; s != nil && s.generates() {
			t.attach(conn)
		}
	}
}

func (t *Trial) attach(conn *connection) {
	types := typesOf(t.c.assignment(conn, t.rules, t.known), t.known.Name)
	asked := func(url string) bool { _, ok := conn.subs[url]; return ok }
	if t.session.shadow.seats[conn] == nil && slices.ContainsFunc(types, asked) {
		t.session.shadow.seat(conn, types)
		t.session.attach(conn, types)
	}
}

// subscribeShadows lets shadows know what a connection wants now.
func (c *Control) subscribeShadows(conn *connection, typeURL string, sub, old subscription) {
	for s := range c.shadows() {
		at := s.shadow.seats[conn]
		if at == nil || at.placed[typeURL] == nil {
			continue
		}
		c.want(s, at.placed[typeURL], conn, sub, false)
		c.unwant(s, at.placed[typeURL], old, false)
		c.publish(s)
	}
}

// detachShadows tells shadows that a connection has gone.
func (c *Control) detachShadows(conn *connection) {
	for s := range c.shadows() {
		at := s.shadow.seats[conn]
		if at == nil {
			continue
		}
		s.detach(conn)
		for url, v := range at.placed {
			c.unwant(s, v, conn.subs[url], true)
		}
		delete(s.shadow.seats, conn)
	}
}

// takeShadowPlace moves a connection between a shadow's views.
func (c *Control) takeShadowPlace(s *session, conn *connection, m *pb.Place) error {
	at := s.shadow.seats[conn]
	if at == nil {
		return nil
	}
	if at.refused = m.Refused; m.Refused != "" {
		return nil
	}
	for _, p := range m.Placements {
		if !slices.Contains(at.types, p.Type) {
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
			to.Connections++ // so that it isn't forgotten meanwhile
			delete(s.empty, to)
			c.left.weigh(to)
		}
		if err := c.at(s, m.Revision, func() error { c.seatAt(s, conn, p.Type, to); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// seatAt makes a placement count, for a shadow or, where it has become the served one meanwhile, for proxies.
func (c *Control) seatAt(s *session, conn *connection, typeURL string, to *view.View) {
	switch {
	case c.conns[conn.id] != conn:
		if to != nil {
			c.unwant(s, to, subscription{}, true)
		}
	case s.shadow == nil:
		if to != nil {
			c.want(s, to, conn, conn.subs[typeURL], false)
		}
		c.move(s, conn, typeURL, to)
	default:
		at := s.shadow.seat(conn, nil)
		before := at.placed[typeURL]
		if to != nil {
			c.want(s, to, conn, conn.subs[typeURL], false)
			at.placed[typeURL] = to
		} else {
			delete(at.placed, typeURL)
		}
		if before != nil {
			c.unwant(s, before, conn.subs[typeURL], true)
		}
	}
}

// keep lets a replaced plugin hold a connection's place in a view, so that it can come back; false: it need not.
func (s *session) keep(conn *connection, typeURL string, v *view.View) bool {
	if s == nil || s.shadow == nil {
		return false
	}
	at := s.shadow.seat(conn, nil)
	if at.placed[typeURL] != nil {
		return false
	}
	at.placed[typeURL] = v
	return true
}

// rested says whether the session has said all about what is in the tables.
func (c *Control) rested(s *session) bool {
	if s.lacks() || !s.busy.IsZero() || len(s.asked) > 0 || !s.turns.idle() {
		return false
	}
	return (!publishesRows(s.ready) || s.synced) && c.trialOf(s).hasComposed()
}

// said says whether the session has said all about some revision.
func (c *Control) said(s *session) bool {
	switch {
	case s.generates() || s.ready.Derives:
		return s.done > 0 && len(s.asked) == 0 && s.turns.idle()
	case publishesRows(s.ready):
		return s.synced
	}
	return c.trialOf(s).hasComposed()
}

func publishesRows(r *pb.Ready) bool { return len(r.Publishes) > 0 }
