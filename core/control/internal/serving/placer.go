package serving

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Placer is who is in which view, and what is wanted of it.
type Placer struct {
	state     *state.State
	screen    *Screen
	retention placement.Retention
}

// Introduce tells a generator of a connection that asks for one of its types for the first time, at
// once or in its turn. One whose types nobody asks for has no say in which nodes are good.
func (pl *Placer) Introduce(conn *state.Connection, name string, inTurn bool) {
	s := pl.state.Roster.Session(name)
	if s == nil || !s.Generates() || conn.Attached[name] || !conn.Asks(name) {
		return
	}
	conn.Know(name)
	if !inTurn {
		s.Attach(conn, conn.ServedBy(name))
		return
	}
	s.Maker.Turns.Attach(conn, state.PeerKey(conn))
	s.Give(pl.state.Clock.Now(), func(time.Time) {})
}

// HandleGenerated takes a message of a generator: into the served state if it belongs to what is
// served, aside if to a later revision.
func (pl *Placer) HandleGenerated(s *state.Session, m *pb.FromPlugin) error {
	switch {
	case m.Bodies != nil:
		return s.Store(m.Bodies)
	case m.View != nil:
		if !state.Offers(s.Plugin.Ready, m.View.Type) {
			return fmt.Errorf("it described a view of type %s, which its Ready doesn't offer", m.View.Type)
		}
		s.Maker.Views.Describe(m.View)
		return nil
	case m.Part != nil:
		return pl.screen.at(s, m.Part.Revision, func() error { return pl.lenient(s, s.Maker.Views.Part(m.Part)) })
	case m.Change != nil:
		if !state.Offers(s.Plugin.Ready, m.Change.Type) {
			return fmt.Errorf("it changed a view of type %s, which its Ready doesn't offer", m.Change.Type)
		}
		return pl.screen.at(s, m.Change.Revision, func() error { return pl.lenient(s, s.Maker.Views.Change(m.Change)) })
	case m.Place != nil:
		return pl.handlePlace(s, m.Place)
	case m.Wanted != nil:
		return pl.handleWanted(s, m.Wanted)
	}
	pl.state.Metrics.Unknown(s.Name(), "message", 1)
	return nil
}

// lenient answers missing bodies by asking for them; other faults end the session.
func (pl *Placer) lenient(s *state.Session, err error) error {
	var missing *view.MissingError
	if errors.As(err, &missing) {
		pl.state.Log.Warn("plugin named bodies that it never sent", "plugin", s.Name(), "bodies", len(missing.Bodies))
		for some := range slices.Chunk(missing.Bodies, state.IDsAtOnce) {
			s.Out.Call(&pb.FromCore{Missing: &pb.Missing{Bodies: some}})
		}
		return nil
	}
	return err
}

// handlePlace moves a connection between views. What the connection wants is wanted of the new view
// at once, so that the move is complete when it is served.
func (pl *Placer) handlePlace(s *state.Session, m *pb.Place) error {
	defer s.Handed(s.Maker.Turns.Attached, m.Connection, pl.state.Clock.Now())
	conn := pl.state.Connections.All[m.Connection]
	if conn == nil {
		return nil // it went meanwhile
	}
	if s.Shadow != nil {
		return pl.handleShadowPlace(s, conn, m)
	}
	if m.Refused != "" {
		conn.Refuse(s.Name(), m.Refused)
		return nil
	}
	for _, p := range m.Placements {
		if conn.Generators[p.Type] != s.Name() {
			return fmt.Errorf("it placed connection %d for type %s, which it doesn't serve to it", m.Connection, p.Type)
		}
		to, forgotten, err := viewOf(s, m, p)
		switch {
		case err != nil:
			return err
		case forgotten:
			pl.anew(s, conn, p)
			continue
		}
		if err := pl.place(s, conn, p.Type, to, m.Revision); err != nil {
			return err
		}
	}
	return nil
}

// viewOf returns the view that a placement names, nil: none; forgotten: the core has forgotten it.
func viewOf(s *state.Session, m *pb.Place, p *pb.Placement) (to *view.View, forgotten bool, err error) {
	if p.View == 0 {
		return nil, false, nil
	}
	if to = s.Maker.Views.Get(p.Type, p.View); to != nil {
		return to, false, nil
	}
	if s.Maker.Views.Gone(p.Type, p.View) {
		return nil, true, nil
	}
	return nil, false, fmt.Errorf("it placed connection %d into view %d of %s, which it never described", m.Connection, p.View, p.Type)
}

// anew has a generator place a connection again that it placed into a view which the core has
// forgotten: it describes the view again, unless others are in it.
func (pl *Placer) anew(s *state.Session, conn *state.Connection, p *pb.Placement) {
	pl.state.Log.Warn("a generator placed a connection into a view that was forgotten; it is asked again", "plugin",
		s.Name(), "connection", conn.ID, "type", p.Type, "view", p.View)
	types := s.TypesFor(conn)
	s.Detach(conn)
	s.Out.Call(&pb.FromCore{Drop: &pb.Drop{Type: p.Type, View: p.View, All: true}})
	s.Attach(conn, types)
}

func (pl *Placer) place(s *state.Session, conn *state.Connection, typeURL string, to *view.View, r *pb.Revision) error {
	next := placement.Place[*state.Session]{Session: s, View: to}
	if conn.Places.Is(typeURL, next) {
		return nil
	}
	if to != nil {
		to.Connections++
		s.Maker.Unused.Entered(to)
		pl.state.Connections.Left.Weigh(to)
		pl.want(s, to, conn, conn.Subs[typeURL], r != nil && r.Number > s.State.Acked)
	}
	if old := conn.Places.Plan(typeURL, next); old.View != nil {
		pl.unwant(old.Session, old.View, conn.Subs[typeURL], true)
	}
	return pl.screen.at(s, r, func() error {
		if pl.state.Connections.All[conn.ID] == conn && conn.Places.Due(typeURL, next) { // it was not moved again, nor went
			pl.move(s, conn, typeURL, to)
		}
		return nil
	})
}

// move makes a placement the served one.
func (pl *Placer) move(s *state.Session, conn *state.Connection, typeURL string, to *view.View) {
	from := conn.Places.Move(typeURL, placement.Place[*state.Session]{Session: s, View: to})
	if from.View != nil && !from.Session.Keep(conn, typeURL, from.View) {
		pl.unwant(from.Session, from.View, conn.Subs[typeURL], true)
	}
	if from.View != nil && from.View != to {
		pl.screen.quarantine.Moved(conn, from.View)
	}
	pl.screen.stale.Spoil(conn, typeURL)
}

// handleWanted notes that a wish has been answered.
func (pl *Placer) handleWanted(s *state.Session, m *pb.Wanted) error {
	now := pl.state.Clock.Now()
	asked := s.Maker.Asked.Answered(m.Id, s.Watch.Now(now))
	if asked == nil {
		return fmt.Errorf("it answered want %d, which was never asked or is answered already", m.Id)
	}
	defer s.Handed(s.Maker.Turns.Wanted, m.Id, now)
	return pl.screen.at(s, m.Revision, func() error {
		if v := s.Maker.Views.Get(asked.Type, asked.View); v != nil && asked.Wildcard {
			s.Maker.Views.Complete(v)
		}
		return nil
	})
}
