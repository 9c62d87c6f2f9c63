package control

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// peerKey is whose turn a connection's is: an identity's, if it has one, otherwise an address's.
func peerKey(conn *connection) string {
	if len(conn.peer.Identities) > 0 {
		return conn.peer.Identities[0]
	}
	host, _, err := net.SplitHostPort(conn.peer.RemoteAddress)
	if err != nil {
		return conn.peer.RemoteAddress
	}
	return host
}

// want adds a connection's wishes to a view: the generator is asked in the connection's turn. hold
// makes the revision in the making wait for the answers about what the connection has now, which it
// must not lose; these are asked for at once.
func (pl *placer) want(s *session, v *view.View, conn *connection, sub placement.Wish, hold bool) {
	if !pl.roster.lives(s) {
		v.Want(sub.Wildcard, sub.Names)
		return // it is gone; the next session is asked anew
	}
	all, fresh := v.Want(sub.Wildcard, sub.Names)
	s.Maker.Turns.Wish(conn, peerKey(conn), v, sub, all, s.short(v, fresh))
	if hold {
		s.keepPromises(v, conn, sub, pl.clock.Now())
	}
	s.give(pl.clock.Now(), func(time.Time) {})
}

// keepPromises asks at once for what the connection has and would lose.
func (s *session) keepPromises(v *view.View, conn *connection, sub placement.Wish, now time.Time) {
	has := conn.visible[v.Type]
	if has == nil {
		return
	}
	promised := func(name string) bool { b := has.Get(name); return b != nil && b.Exists() }
	s.Maker.Asked.Promise(v, sub, promised) // for others
	all, names := s.Maker.Turns.Promised(v, sub, promised)
	if all {
		s.ask(&pb.Want{Type: v.Type, View: v.ID, Wildcard: true}, true, now)
	}
	if len(names) > 0 {
		s.ask(&pb.Want{Type: v.Type, View: v.ID, Names: names}, true, now)
	}
}

// ask sends what is to be asked, in messages that it fits into. The last one's answer stands for
// all.
func (s *session) ask(m *pb.Want, hold bool, now time.Time) {
	if m.Wildcard {
		s.Maker.Asked.Ask(m, hold, s.Watch.now(now))
		s.out.Call(&pb.FromCore{Want: m})
		return
	}
	for names := m.Names; len(names) > 0; {
		n := s.batch(names)
		some := &pb.Want{Type: m.Type, View: m.View, Names: names[:n]}
		s.Maker.Asked.Ask(some, hold, s.Watch.now(now))
		s.out.Call(&pb.FromCore{Want: some})
		names = names[n:]
	}
}

// unwant takes wishes back; leave says that the connection leaves the view.
func (pl *placer) unwant(s *session, v *view.View, sub placement.Wish, leave bool) {
	all, gone := v.Drop(sub.Wildcard, sub.Names)
	tellAll, told := s.Maker.Turns.Drop(v, all, gone)
	if leave {
		v.Connections--
	}
	pl.conns.left.Weigh(v)
	tell := func(d *pb.Drop) {
		if pl.roster.lives(s) {
			d.Type, d.View = v.Type, v.ID
			s.out.Call(&pb.FromCore{Drop: d})
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
	told = slices.DeleteFunc(told, func(n string) bool { return len(n) > s.mostName() })
	for len(told) > 0 {
		n := s.batch(told)
		tell(&pb.Drop{Names: told[:n]})
		told = told[n:]
	}
	if v.Unused() {
		tell(&pb.Drop{All: true})
		s.Maker.Unused.Emptied(v)
	}
}

// give hands a generator as much of what connections wait for as it may have in hand.
func (s *session) give(now time.Time, at func(time.Time)) {
	for piece, ok := s.Maker.Turns.Next(now); ok; piece, ok = s.Maker.Turns.Next(now) {
		if conn := piece.Attach; piece.Want == nil {
			if s.attach(conn, s.typesFor(conn)); s.Maker.Attached[conn.id] {
				s.Maker.Turns.Given(piece, conn.id, now)
			}
			continue
		}
		s.ask(piece.Want, false, now)
		s.Maker.Turns.Given(piece, s.Maker.Asked.Last(), now)
	}
	at(s.Maker.Turns.Again())
}

// handed notes that a piece of work was answered, and gives the next.
func (s *session) handed(answered func(id uint64, now time.Time, steady bool), id uint64, now time.Time) {
	answered(id, now, s.State.Busy.IsZero())
	s.give(now, func(time.Time) {})
}

// takeWanted notes that a wish has been answered.
func (pl *placer) takeWanted(s *session, m *pb.Wanted) error {
	now := pl.clock.Now()
	asked := s.Maker.Asked.Answered(m.Id, s.Watch.now(now))
	if asked == nil {
		return fmt.Errorf("it answered want %d, which was never asked or is answered already", m.Id)
	}
	defer s.handed(s.Maker.Turns.Wanted, m.Id, now)
	return pl.screen.at(s, m.Revision, func() error {
		if v := s.Maker.Views.Get(asked.Type, asked.View); v != nil && asked.Wildcard {
			s.Maker.Views.Complete(v)
		}
		return nil
	})
}
