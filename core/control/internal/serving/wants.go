package serving

import (
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// want adds a connection's wishes to a view: the generator is asked in the connection's turn. hold
// makes the revision in the making wait for the answers about what the connection has now, which it
// must not lose; these are asked for at once.
func (pl *Placer) want(s *state.Session, v *view.View, conn *state.Connection, sub placement.Wish, hold bool) {
	if !pl.state.Roster.Lives(s) {
		v.Want(sub.Wildcard, sub.Names)
		return // it is gone; the next session is asked anew
	}
	all, fresh := v.Want(sub.Wildcard, sub.Names)
	s.Maker.Turns.Wish(conn, state.PeerKey(conn), v, sub, all, s.Short(v, fresh))
	if hold {
		s.KeepPromises(v, conn, sub, pl.state.Clock.Now())
	}
	s.Give(pl.state.Clock.Now(), func(time.Time) {})
}

// unwant takes wishes back; leave says that the connection leaves the view.
func (pl *Placer) unwant(s *state.Session, v *view.View, sub placement.Wish, leave bool) {
	all, gone := v.Drop(sub.Wildcard, sub.Names)
	tellAll, told := s.Maker.Turns.Drop(v, all, gone)
	if leave {
		v.Connections--
	}
	pl.state.Connections.Left.Weigh(v)
	tell := func(d *pb.Drop) {
		if pl.state.Roster.Lives(s) {
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
