package serving

import (
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// attachShadows tells shadows of a connection that asks for something of theirs for the first time.
func (pl *Placer) attachShadows(conn *state.Connection) {
	for s := range pl.state.Roster.RivalSessions() {
		if s.Generates() {
			pl.AttachShadow(s, conn)
		}
	}
}

// AttachShadow tells a rival's session of a connection that asks for something of its for the
// first time.
func (pl *Placer) AttachShadow(s *state.Session, conn *state.Connection) {
	types := state.TypesOf(pl.state.Roster.Assignment(conn, pl.state.Roster.Rivals[s.Plugin].Rules, s.Plugin), s.Name())
	asked := func(url string) bool { _, ok := conn.Subs[url]; return ok }
	if !s.Shadow.Attached(conn) && slices.ContainsFunc(types, asked) {
		s.Shadow.Attach(conn, types)
		s.Attach(conn, types)
	}
}

// subscribeShadows lets shadows know what a connection wants now.
func (pl *Placer) subscribeShadows(conn *state.Connection, typeURL string, sub, old placement.Wish) {
	for s := range pl.state.Roster.RivalSessions() {
		v := s.Shadow.View(conn, typeURL)
		if v == nil {
			continue
		}
		pl.want(s, v, conn, sub, false)
		pl.unwant(s, v, old, false)
		pl.screen.Publish(s)
	}
}

// detachShadows tells shadows that a connection has gone.
func (pl *Placer) detachShadows(conn *state.Connection) {
	for s := range pl.state.Roster.RivalSessions() {
		if !s.Shadow.Attached(conn) {
			continue
		}
		s.Detach(conn)
		for url, v := range s.Shadow.Leave(conn) {
			pl.unwant(s, v, conn.Subs[url], true)
		}
	}
}

// handleShadowPlace moves a connection between a shadow's views.
func (pl *Placer) handleShadowPlace(s *state.Session, conn *state.Connection, m *pb.Place) error {
	if !s.Shadow.Attached(conn) {
		return nil
	}
	if s.Shadow.Refuse(conn, m.Refused); m.Refused != "" {
		return nil
	}
	for _, p := range m.Placements {
		if !s.Shadow.Serves(conn, p.Type) {
			return fmt.Errorf("it placed connection %d for type %s, which it doesn't serve to it", m.Connection, p.Type)
		}
		to, forgotten, err := viewOf(s, m, p)
		switch {
		case err != nil:
			return err
		case forgotten:
			pl.anew(s, conn, p)
			continue
		case to != nil:
			to.Connections++ // so that it isn't forgotten meanwhile
			s.Maker.Unused.Entered(to)
			pl.state.Connections.Left.Weigh(to)
		}
		if err := pl.screen.at(s, m.Revision, func() error { pl.placeAt(s, conn, p.Type, to); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// placeAt makes a placement count, for a shadow or, where it has become the served one meanwhile,
// for proxies.
func (pl *Placer) placeAt(s *state.Session, conn *state.Connection, typeURL string, to *view.View) {
	switch {
	case pl.state.Connections.All[conn.ID] != conn:
		if to != nil {
			pl.unwant(s, to, placement.Wish{}, true)
		}
	case s.Shadow == nil:
		if to != nil {
			pl.want(s, to, conn, conn.Subs[typeURL], false)
		}
		pl.move(s, conn, typeURL, to)
	default:
		if to != nil {
			pl.want(s, to, conn, conn.Subs[typeURL], false)
		}
		if before := s.Shadow.Place(conn, typeURL, to); before != nil {
			pl.unwant(s, before, conn.Subs[typeURL], true)
		}
	}
}
