package serving

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/state"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Introduce tells a generator of a connection that asks for one of its types for the first time, at once or in its turn. One whose types nobody asks
// for has no say in which nodes are good.
func (pl *Placer) Introduce(conn *state.Connection, name string, inTurn bool) {
	s := pl.roster.Session(name)
	if s == nil || !s.Generates() || conn.Attached[name] || !conn.Asks(name) {
		return
	}
	conn.Attached[name] = true
	if !inTurn {
		s.Attach(conn, conn.ServedBy(name))
		return
	}
	s.Maker.Turns.Attach(conn, state.PeerKey(conn))
	s.Give(pl.clock.Now(), func(time.Time) {})
}

// Placer is who is in which view, and what is wanted of it.
type Placer struct {
	log       *slog.Logger
	metrics   state.Metrics
	clock     *state.Clock
	roster    *state.Roster
	course    *state.Course
	conns     *state.Connections
	screen    *Screen
	retention placement.Retention
}

// TakeGenerated takes a message of a generator: into the served state if it belongs to what is served, aside if to a later revision.
func (pl *Placer) TakeGenerated(s *state.Session, m *pb.FromPlugin) error {
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
		return pl.takePlace(s, m.Place)
	case m.Wanted != nil:
		return pl.takeWanted(s, m.Wanted)
	}
	pl.metrics.Unknown(s.Name(), "message", 1)
	return nil
}

// lenient answers missing bodies by asking for them; other faults end the session.
func (pl *Placer) lenient(s *state.Session, err error) error {
	var missing *view.MissingError
	if errors.As(err, &missing) {
		pl.log.Warn("plugin named bodies that it never sent", "plugin", s.Name(), "bodies", len(missing.Bodies))
		for some := range slices.Chunk(missing.Bodies, state.IDsAtOnce) {
			s.Out.Call(&pb.FromCore{Missing: &pb.Missing{Bodies: some}})
		}
		return nil
	}
	return err
}

// takePlace moves a connection between views. What the connection wants is wanted of the new view at once, so that the move is complete
// when it is served.
func (pl *Placer) takePlace(s *state.Session, m *pb.Place) error {
	defer s.Handed(s.Maker.Turns.Attached, m.Connection, pl.clock.Now())
	conn := pl.conns.All[m.Connection]
	if conn == nil {
		return nil // it went meanwhile
	}
	if s.Shadow != nil {
		return pl.takeShadowPlace(s, conn, m)
	}
	if m.Refused != "" {
		conn.Refuse(s.Name(), m.Refused)
		return nil
	}
	for _, p := range m.Placements {
		if conn.Generators[p.Type] != s.Name() {
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
func (pl *Placer) anew(s *state.Session, conn *state.Connection, p *pb.Placement) {
	pl.log.Warn("a generator placed a connection into a view that was forgotten; it is asked again", "plugin", s.Name(), "connection", conn.ID, "type", p.Type, "view", p.View)
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
		pl.conns.Left.Weigh(to)
		pl.want(s, to, conn, conn.Subs[typeURL], r != nil && r.Number > s.State.Acked)
	}
	if old := conn.Places.Plan(typeURL, next); old.View != nil {
		pl.unwant(old.Session, old.View, conn.Subs[typeURL], true)
	}
	return pl.screen.at(s, r, func() error {
		if pl.conns.All[conn.ID] == conn && conn.Places.Due(typeURL, next) { // it was not moved again, nor went
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
	pl.screen.stale.Spoil(conn, typeURL)
}

// depart takes a connection that has ended out of a view. What it wanted stays wanted for a while,
// and if that was nothing the view stays a view: a generator that forgot it would have to place
// anew whoever comes back.
func (pl *Placer) depart(conn *state.Connection, typeURL string, at placement.Place[*state.Session]) {
	s, v, sub, now := at.Session, at.View, conn.Subs[typeURL], pl.clock.Now()
	if !pl.retains(conn, s, typeURL) || pl.conns.Left.Renew(v, sub, now) {
		pl.unwant(s, v, sub, true)
		return
	}
	v.Connections--
	pl.conns.Left.Keep(s, v, sub, now)
}

// retains reports whether views of a type outlive their connections. Secrets don't, nor does what
// is not served any more.
func (pl *Placer) retains(conn *state.Connection, s *state.Session, typeURL string) bool {
	return pl.retention.For > 0 && s != nil && pl.roster.Session(s.Name()) == s && !pl.roster.Traits(conn.Generators[typeURL], typeURL).Sensitive
}

// Expire lets go of what was left too long ago, or is too much.
func (pl *Placer) Expire(now time.Time, at func(time.Time)) {
	w, again := pl.conns.Left.Expired(pl.retention, now)
	for ; w != nil; w, again = pl.conns.Left.Expired(pl.retention, now) {
		pl.forgo(w)
	}
	at(again)
	pl.metrics.Retained(pl.conns.Left.Kept())
}

// LetGo lets go of so many bytes of what was left.
func (pl *Placer) LetGo(bytes uint64) {
	most := pl.conns.Left.But(bytes)
	for w := pl.conns.Left.Oldest(most); w != nil; w = pl.conns.Left.Oldest(most) {
		pl.forgo(w)
	}
	pl.conns.Left.Short(pl.clock.Now().Add(TidyAfter))
}

// forgo takes back what was kept of a connection's wish.
func (pl *Placer) forgo(w *placement.LeftWish[*state.Session]) {
	pl.unwant(w.Session, w.View, w.Wish, false)
}

// TidyAfter is how long views that no connection is in, and bodies that no view names, are kept where no revision comes that would do away with
// them: proxies that are back soon find them.
// Where memory is short they go soon.
const TidyAfter, TidySoon = 10 * time.Second, 500 * time.Millisecond

// attachShadows tells shadows of a connection that asks for something of theirs for the first time.
func (pl *Placer) attachShadows(conn *state.Connection) {
	for s := range pl.roster.RivalSessions() {
		if s.Generates() {
			pl.AttachShadow(s, conn)
		}
	}
}

// AttachShadow tells a rival's session of a connection that asks for something of its for the
// first time.
func (pl *Placer) AttachShadow(s *state.Session, conn *state.Connection) {
	types := state.TypesOf(pl.roster.Assignment(conn, pl.roster.Rivals[s.Plugin].Rules, s.Plugin), s.Name())
	asked := func(url string) bool { _, ok := conn.Subs[url]; return ok }
	if !s.Shadow.Attached(conn) && slices.ContainsFunc(types, asked) {
		s.Shadow.Attach(conn, types)
		s.Attach(conn, types)
	}
}

// subscribeShadows lets shadows know what a connection wants now.
func (pl *Placer) subscribeShadows(conn *state.Connection, typeURL string, sub, old placement.Wish) {
	for s := range pl.roster.RivalSessions() {
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
	for s := range pl.roster.RivalSessions() {
		if !s.Shadow.Attached(conn) {
			continue
		}
		s.Detach(conn)
		for url, v := range s.Shadow.Leave(conn) {
			pl.unwant(s, v, conn.Subs[url], true)
		}
	}
}

// takeShadowPlace moves a connection between a shadow's views.
func (pl *Placer) takeShadowPlace(s *state.Session, conn *state.Connection, m *pb.Place) error {
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
			pl.conns.Left.Weigh(to)
		}
		if err := pl.screen.at(s, m.Revision, func() error { pl.seatAt(s, conn, p.Type, to); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// seatAt makes a placement count, for a shadow or, where it has become the served one meanwhile,
// for proxies.
func (pl *Placer) seatAt(s *state.Session, conn *state.Connection, typeURL string, to *view.View) {
	switch {
	case pl.conns.All[conn.ID] != conn:
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

// want adds a connection's wishes to a view: the generator is asked in the connection's turn. hold
// makes the revision in the making wait for the answers about what the connection has now, which it
// must not lose; these are asked for at once.
func (pl *Placer) want(s *state.Session, v *view.View, conn *state.Connection, sub placement.Wish, hold bool) {
	if !pl.roster.Lives(s) {
		v.Want(sub.Wildcard, sub.Names)
		return // it is gone; the next session is asked anew
	}
	all, fresh := v.Want(sub.Wildcard, sub.Names)
	s.Maker.Turns.Wish(conn, state.PeerKey(conn), v, sub, all, s.Short(v, fresh))
	if hold {
		s.KeepPromises(v, conn, sub, pl.clock.Now())
	}
	s.Give(pl.clock.Now(), func(time.Time) {})
}

// unwant takes wishes back; leave says that the connection leaves the view.
func (pl *Placer) unwant(s *state.Session, v *view.View, sub placement.Wish, leave bool) {
	all, gone := v.Drop(sub.Wildcard, sub.Names)
	tellAll, told := s.Maker.Turns.Drop(v, all, gone)
	if leave {
		v.Connections--
	}
	pl.conns.Left.Weigh(v)
	tell := func(d *pb.Drop) {
		if pl.roster.Lives(s) {
			d.Type, d.View = v.Type, v.ID
			s.Out.Call(&pb.FromCore{Drop: d})
		}
	}
	if all {
		s.Maker.Views.Unwant(v, true, nil)
	}
	if tellAll {
		tell(&pb.Drop{Wildcard: true})
	}
	if len(gone) > 0 {
		s.Maker.Views.Unwant(v, false, gone)
	}
	told = slices.DeleteFunc(told, func(n string) bool { return len(n) > s.MostName() })
	for len(told) > 0 {
		n := s.Batch(told)
		tell(&pb.Drop{Names: told[:n]})
		told = told[n:]
	}
	if v.Unused() {
		tell(&pb.Drop{All: true})
		s.Maker.Unused.Emptied(v)
	}
}

// takeWanted notes that a wish has been answered.
func (pl *Placer) takeWanted(s *state.Session, m *pb.Wanted) error {
	now := pl.clock.Now()
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
