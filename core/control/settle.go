package control

import (
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/state"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// spoil notes that what connections in these views get must be looked at again.
func (v *screen) spoil(changed []*view.View) {
	if len(changed) == 0 {
		return
	}
	v.conns.Left.Weigh(changed...)
	set := make(map[*view.View]bool, len(changed))
	for _, v := range changed {
		set[v] = true
	}
	for _, conn := range v.conns.All {
		for url, at := range conn.Places.All() {
			if set[at.View] {
				v.stale.Spoil(conn, url)
			}
		}
	}
}

func (v *screen) spoilAll() {
	for _, conn := range v.conns.All {
		for url := range conn.Places.All() {
			v.stale.Spoil(conn, url)
		}
	}
}

// settle makes what changed visible to all connections at once, if patches have seen all of it;
// otherwise they are asked, and it says false.
func (v *screen) settle() bool {
	if v.course.Undo != 0 {
		return true // what is there now is on its way out
	}
	if !v.stale.Any() {
		v.losses.guards(nil)
		return true
	}
	waiting := patch.Waiting{}
	next, ready := v.stale.Next(v.patches.asking(), func(conn *state.Connection, url string) (*view.Snapshot, bool) {
		return v.patches.compose(conn, url, waiting)
	})
	if !ready {
		return false
	}
	if v.losses.guards(next) {
		return true
	}
	woken := 0
	frozen := v.losses.holds.Frozen()
	for conn, types := range next {
		if frozen[conn] {
			continue
		}
		if v.stale.Fresh(conn); v.showTo(conn, types) {
			woken++
		}
	}
	v.metrics.Woken(woken, len(next))
	v.patches.made.DropUnused()
	v.patches.sweep()
	return true
}

// showTo makes snapshots visible and wakes the stream if one is new.
func (v *screen) showTo(conn *state.Connection, types map[string]*view.Snapshot) bool {
	changed, what := false, xds.WakeDependent
	for url, snap := range types {
		if conn.Seen[url] == snap {
			continue
		}
		changed = true
		if v.roster.Traits(conn.Generators[url], url).After == "" {
			what = xds.WakeAll
		}
		if snap == nil {
			delete(conn.Seen, url)
		} else {
			conn.Seen[url] = snap
		}
	}
	if changed {
		conn.Wake(what)
	}
	return changed
}
