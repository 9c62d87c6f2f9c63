package serving

import (
	"errors"

	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Screen is what connections see.
type Screen struct {
	state      *state.State
	patches    *Patches
	losses     *Losses
	quarantine *Quarantine
	pins       *Pins
	history    *history.History
	// stale is what connections do not see yet.
	stale *placement.Stale[*state.Connection]
}

// Publish makes what changed in a session's views visible, as soon as patches have seen it.
func (v *Screen) Publish(s *state.Session) (views int) {
	changed := s.Maker.Views.Publish()
	v.Blame(s)
	if s.Shadow != nil {
		return 0
	}
	v.Spoil(changed)
	v.Show()
	return len(changed)
}

// Blame says which resources were not taken, and whose they are.
func (v *Screen) Blame(s *state.Session) {
	for _, r := range s.Maker.Refusals.Refused() {
		v.state.Metrics.Fault(s.Name())
		v.state.Log.Error("a resource was refused; what there was before stays", "plugin", s.Name(), "type", r.Type, "resource", r.Name, "reason", r.Reason)
	}
}

// at runs an op now if its revision is served, and keeps it otherwise.
func (v *Screen) at(s *state.Session, r *pb.Revision, o state.Op) error {
	switch {
	case r == nil:
		return errors.New("it said something without naming a revision")
	case s.Maker.Overtaking != 0 && r.Number == s.Maker.Overtaking:
		s.Maker.KeepOvertaken(o)
		return nil
	case r.Number > s.State.Acked:
		s.Maker.Keep(o)
		return nil
	}
	if err := o(); err != nil {
		return err
	}
	v.Publish(s)
	return nil
}

// RetryLate makes live patches be asked again about what they did not answer in time.
func (v *Screen) RetryLate() {
	for p := range v.state.Roster.Patchers() {
		if p.Retry() {
			v.SpoilAll()
		}
	}
}

// Spoil notes that what connections in these views get must be looked at again.
func (v *Screen) Spoil(changed []*view.View) {
	if len(changed) == 0 {
		return
	}
	v.state.Connections.Left.Weigh(changed...)
	set := make(map[*view.View]bool, len(changed))
	for _, v := range changed {
		set[v] = true
	}
	for _, conn := range v.state.Connections.All {
		for url, at := range conn.Places.All() {
			if set[at.View] {
				v.stale.Spoil(conn, url)
			}
		}
	}
}

// SpoilAll notes that what connections get must be looked at again, all of it.
func (v *Screen) SpoilAll() {
	for _, conn := range v.state.Connections.All {
		for url := range conn.Places.All() {
			v.stale.Spoil(conn, url)
		}
	}
}

// Show makes what changed visible to all connections at once, if patches have seen all of it;
// otherwise they are asked, and it says false.
func (v *Screen) Show() bool {
	if v.state.Course.Withholding() {
		return true // what is there now is on its way out
	}
	if !v.stale.Any() {
		v.losses.guards(nil)
		return true
	}
	v.quarantine.shown()
	v.pins.forget()
	waiting := patch.Waiting{}
	next, ready := v.stale.Next(v.patches.Asking(), func(conn *state.Connection, url string) (*view.Snapshot, bool) {
		snap, ok := v.patches.compose(conn, url, waiting)
		if at := conn.Places.View(url); ok && at != nil {
			snap = v.pins.shown(conn, url, v.quarantine.screened(conn, at, snap))
		}
		return snap, ok
	})
	if !ready {
		return false
	}
	if v.losses.guards(next) {
		return true
	}
	woken := 0
	frozen := v.losses.Holds.Frozen()
	for conn, types := range next {
		if frozen[conn] {
			continue
		}
		if v.stale.Fresh(conn); v.showTo(conn, types) {
			v.state.Journal.Woke(conn)
			woken++
		}
	}
	v.state.Metrics.Woken(woken, len(next))
	v.patches.made.DropUnused()
	v.quarantine.shown()
	v.pins.forget()
	v.patches.sweep()
	return true
}

// showTo makes snapshots visible and wakes the stream if one is new.
func (v *Screen) showTo(conn *state.Connection, types map[string]*view.Snapshot) bool {
	changed, what := false, xds.WakeDependent
	for url, snap := range types {
		live := v.pins.Live(conn, url, snap)
		if conn.Seen[url] == snap && live == snap {
			continue
		}
		traits := v.state.Roster.Traits(conn.Generators[url], url)
		if !traits.Sensitive {
			v.note(conn, url, live)
		}
		if conn.Seen[url] == snap {
			continue
		}
		if changed = true; traits.After == "" {
			what = xds.WakeAll
		}
		conn.See(url, snap)
	}
	if changed {
		conn.Wake(what)
	}
	return changed
}
