package control

import (
	"fmt"
	"iter"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/trial"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// shadow is what a session says that is not served.
type shadow = trial.Shadow[*connection]

func newShadow(rows environment.Tables) *shadow { return trial.NewShadow[*connection](rows) }

// trials are plugins that may take another's place, or were replaced.
type trials struct {
	env      *environment.Environment
	clock    *clock
	roster   *roster
	course   *course
	conns    *connections
	losses   *losses
	streams  *streams
	screen   *screen
	intake   *intake
	pipeline *pipeline
	patches  *patching
	// all by key; meetings wait for a moment at which a trial and the served plugin have said the
	// same revision.
	all      map[string]*candidate
	meetings trial.Meetings[meeting]
}

// rival is what is said of a plugin that is not served, while another one is under its name.
type rival struct {
	// rules by which it would serve proxies.
	rules Rules
	// made is what it would make of views, if it is a patch.
	made *patch.Made
	// warm: it was served, and is kept.
	warm bool
}

// tried reports whether something may take the place of a plugin, or has taken it and the last one
// is kept.
func (r *roster) tried(name string) bool {
	for k := range r.rivals {
		if k.Name() == name {
			return true
		}
	}
	return false
}

// awaited returns the rival of a plugin that waits for its session, nil if there is none.
func (r *roster) awaited(name string) *known {
	for k := range r.rivals {
		if k.Name() == name && k.session == nil && k.ready == nil {
			return k
		}
	}
	return nil
}

// rivalling yields the sessions that are not served.
func (r *roster) rivalling() iter.Seq[*session] {
	return func(yield func(*session) bool) {
		for k := range r.rivals {
			if k.session != nil && !yield(k.session) {
				return
			}
		}
	}
}

// session is that of a plugin that is served; nil: it has none.
func (r *roster) session(name string) *session {
	if k := r.known[name]; k != nil {
		return k.session
	}
	return nil
}

// live yields the sessions that are served.
func (r *roster) live() iter.Seq[*session] {
	return func(yield func(*session) bool) {
		for _, k := range r.known {
			if k.session != nil && !yield(k.session) {
				return
			}
		}
	}
}

// everybody yields all sessions.
func (r *roster) everybody() iter.Seq[*session] {
	return func(yield func(*session) bool) {
		for s := range r.live() {
			if !yield(s) {
				return
			}
		}
		for s := range r.rivalling() {
			if !yield(s) {
				return
			}
		}
	}
}

// lives says whether a session has not ended.
func (r *roster) lives(s *session) bool {
	return s.plugin.session == s && (r.known[s.Name()] == s.plugin || r.rivals[s.plugin] != nil)
}

// lacks says whether there are rows that the session has not been sent.
func (s *session) lacks() bool {
	return len(s.feed.Left()) > 0 || s.feed.Whole() && (s.generates() || s.plugin.ready.Derives || s.feed.ReadsAny())
}

// feedShadows sends shadows what they lack, once all rows of a revision are made.
func (fd *feeder) feedShadows() {
	if fd.course.flight != nil && !fd.course.flight.Generating() {
		return
	}
	for s := range fd.roster.rivalling() {
		if s.lacks() && s.State.Busy.IsZero() {
			fd.sendState(s, fd.env.Number())
			if s.plugin.patcher != nil {
				s.plugin.patcher.Forget()
				fd.roster.rivals[s.plugin].made.Clear()
			}
		}
	}
}

// shadowDone takes in what a generator said of a revision.
func (p *pipeline) shadowDone(s *session) error {
	if !s.generates() {
		return nil
	}
	if err := s.apply(); err != nil {
		return err
	}
	p.screen.publish(s)
	s.free()
	return nil
}

// attachShadows tells shadows of a connection that asks for something of theirs for the first time.
func (pl *placer) attachShadows(conn *connection) {
	for s := range pl.roster.rivalling() {
		if s.generates() {
			pl.attachShadow(s, conn)
		}
	}
}

// attachShadow tells a rival's session of a connection that asks for something of its for the
// first time.
func (pl *placer) attachShadow(s *session, conn *connection) {
	types := typesOf(pl.roster.assignment(conn, pl.roster.rivals[s.plugin].rules, s.plugin), s.Name())
	asked := func(url string) bool { _, ok := conn.subs[url]; return ok }
	if !s.shadow.Attached(conn) && slices.ContainsFunc(types, asked) {
		s.shadow.Attach(conn, types)
		s.attach(conn, types)
	}
}

// subscribeShadows lets shadows know what a connection wants now.
func (pl *placer) subscribeShadows(conn *connection, typeURL string, sub, old placement.Wish) {
	for s := range pl.roster.rivalling() {
		v := s.shadow.View(conn, typeURL)
		if v == nil {
			continue
		}
		pl.want(s, v, conn, sub, false)
		pl.unwant(s, v, old, false)
		pl.screen.publish(s)
	}
}

// detachShadows tells shadows that a connection has gone.
func (pl *placer) detachShadows(conn *connection) {
	for s := range pl.roster.rivalling() {
		if !s.shadow.Attached(conn) {
			continue
		}
		s.detach(conn)
		for url, v := range s.shadow.Leave(conn) {
			pl.unwant(s, v, conn.subs[url], true)
		}
	}
}

// takeShadowPlace moves a connection between a shadow's views.
func (pl *placer) takeShadowPlace(s *session, conn *connection, m *pb.Place) error {
	if !s.shadow.Attached(conn) {
		return nil
	}
	if s.shadow.Refuse(conn, m.Refused); m.Refused != "" {
		return nil
	}
	for _, p := range m.Placements {
		if !s.shadow.Serves(conn, p.Type) {
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
			to.Connections++ // so that it isn't forgotten meanwhile
			s.Maker.Unused.Entered(to)
			pl.conns.left.Weigh(to)
		}
		if err := pl.screen.at(s, m.Revision, func() error { pl.seatAt(s, conn, p.Type, to); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// seatAt makes a placement count, for a shadow or, where it has become the served one meanwhile,
// for proxies.
func (pl *placer) seatAt(s *session, conn *connection, typeURL string, to *view.View) {
	switch {
	case pl.conns.all[conn.id] != conn:
		if to != nil {
			pl.unwant(s, to, placement.Wish{}, true)
		}
	case s.shadow == nil:
		if to != nil {
			pl.want(s, to, conn, conn.subs[typeURL], false)
		}
		pl.move(s, conn, typeURL, to)
	default:
		if to != nil {
			pl.want(s, to, conn, conn.subs[typeURL], false)
		}
		if before := s.shadow.Place(conn, typeURL, to); before != nil {
			pl.unwant(s, before, conn.subs[typeURL], true)
		}
	}
}

// keep lets a replaced plugin hold a connection's place in a view, so that it can come back; false:
// it need not.
func (s *session) keep(conn *connection, typeURL string, v *view.View) bool {
	return s != nil && s.shadow != nil && s.shadow.Keep(conn, typeURL, v)
}

// rested says whether the session has said all about what is in the tables.
func (t *candidate) rested() bool {
	s := t.known.session
	if s.lacks() || !s.State.Busy.IsZero() || s.Maker.Asked.Len() > 0 || !s.Maker.Turns.Idle() {
		return false
	}
	return (!publishesRows(s.plugin.ready) || s.Source.Synced) && t.hasComposed()
}

// said says whether the session has said all about some revision.
func (t *candidate) said() bool {
	switch s := t.known.session; {
	case s.generates() || s.plugin.ready.Derives:
		return s.State.Done > 0 && s.Maker.Asked.Len() == 0 && s.Maker.Turns.Idle()
	case publishesRows(s.plugin.ready):
		return s.Source.Synced
	}
	return t.hasComposed()
}

func publishesRows(r *pb.Ready) bool { return len(r.Publishes) > 0 }
