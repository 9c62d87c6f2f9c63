package state

import (
	"cmp"
	"time"

	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
)

// MostDetail is how much of a client's words goes to a plugin.
const MostDetail = 64 << 10

// Room is how many bytes a message to the plugin may have. It keeps to the size of what the plugin
// may say, for much of that repeats what it was told.
func (s *Session) Room() int {
	most := cmp.Or(max(s.Limits().Message, 0), carrier.MaxMessage)
	return min(most, carrier.MaxMessage) * 7 / 8
}

// MostName is the longest name of a resource that a plugin is asked for: several of them go into a
// message.
func (s *Session) MostName() int { return s.Room() / 8 }

// Short takes out the names that are too long to be asked for: nobody has such resources.
func (s *Session) Short(v *view.View, names []string) []string {
	most := s.MostName()
	var long []*pb.Entry
	kept := names[:0:0]
	for _, n := range names {
		if len(n) > most {
			long = append(long, &pb.Entry{Name: n})
		} else {
			kept = append(kept, n)
		}
	}
	if len(long) == 0 {
		return names
	}
	_ = s.Maker.Views.Change(&pb.Change{Type: v.Type, View: v.ID, Upserts: long}) // entries without bodies: nothing can be missing
	return kept
}

// Batch returns how many names fit into a message; at least one, which is short enough.
func (s *Session) Batch(names []string) int {
	size, room := 0, s.Room()
	for i, n := range names {
		if size += len(n) + 8; size > room && i > 0 {
			return i
		}
	}
	return len(names)
}

// KeepPromises asks at once for what the connection has and would lose.
func (s *Session) KeepPromises(v *view.View, conn *Connection, sub placement.Wish, now time.Time) {
	has := conn.Seen[v.Type]
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
func (s *Session) ask(m *pb.Want, hold bool, now time.Time) {
	if m.Wildcard {
		s.Maker.Asked.Ask(m, hold, s.Watch.Now(now))
		s.Out.Call(&pb.FromCore{Want: m})
		return
	}
	for names := m.Names; len(names) > 0; {
		n := s.Batch(names)
		some := &pb.Want{Type: m.Type, View: m.View, Names: names[:n]}
		s.Maker.Asked.Ask(some, hold, s.Watch.Now(now))
		s.Out.Call(&pb.FromCore{Want: some})
		names = names[n:]
	}
}

// Give hands a generator as much of what connections wait for as it may have in hand.
func (s *Session) Give(now time.Time, at func(time.Time)) {
	for piece, ok := s.Maker.Turns.Next(now); ok; piece, ok = s.Maker.Turns.Next(now) {
		if conn := piece.Attach; piece.Want == nil {
			if s.Attach(conn, s.TypesFor(conn)); s.Maker.Attached[conn.ID] {
				s.Maker.Turns.Given(piece, conn.ID, now)
			}
			continue
		}
		s.ask(piece.Want, false, now)
		s.Maker.Turns.Given(piece, s.Maker.Asked.Last(), now)
	}
	at(s.Maker.Turns.Again())
}

// Handed notes that a piece of work was answered, and gives the next.
func (s *Session) Handed(answered func(id uint64, now time.Time, steady bool), id uint64, now time.Time) {
	answered(id, now, s.State.Busy.IsZero())
	s.Give(now, func(time.Time) {})
}
