package control

import (
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// spoil notes that what connections in these views get must be looked at again.
func (c *Control) spoil(changed []*view.View) {
	if len(changed) == 0 {
		return
	}
	c.conns.left.Weigh(changed...)
	set := make(map[*view.View]bool, len(changed))
	for _, v := range changed {
		set[v] = true
	}
	for _, conn := range c.conns.all {
		for url, at := range conn.places.All() {
			if set[at.View] {
				c.stale.Spoil(conn, url)
			}
		}
	}
}

func (c *Control) spoilAll() {
	for _, conn := range c.conns.all {
		for url := range conn.places.All() {
			c.stale.Spoil(conn, url)
		}
	}
}

// settle makes what changed visible to all connections at once, if patches have seen all of it;
// otherwise they are asked, and it says false.
func (c *Control) settle() bool {
	if c.course.undo != 0 {
		return true // what is there now is on its way out
	}
	if !c.stale.Any() {
		c.guards(nil)
		return true
	}
	waiting := patch.Waiting{}
	next, ready := c.stale.Next(c.asking(), func(conn *connection, url string) (*view.Snapshot, bool) { return c.compose(conn, url, waiting) })
	if !ready {
		return false
	}
	if c.guards(next) {
		return true
	}
	woken := 0
	frozen := c.holds.Frozen()
	for conn, types := range next {
		if frozen[conn] {
			continue
		}
		if c.stale.Fresh(conn); c.showTo(conn, types) {
			woken++
		}
	}
	c.cfg.Metrics.Woken(woken, len(next))
	c.made.DropUnused()
	c.sweep()
	return true
}

// showTo makes snapshots visible and wakes the stream if one is new.
func (c *Control) showTo(conn *connection, types map[string]*view.Snapshot) bool {
	changed, what := false, xds.WakeDependent
	for url, snap := range types {
		if conn.visible[url] == snap {
			continue
		}
		changed = true
		if c.roster.traits(conn.generator[url], url).After == "" {
			what = xds.WakeAll
		}
		if snap == nil {
			delete(conn.visible, url)
		} else {
			conn.visible[url] = snap
		}
	}
	if changed {
		conn.wake(what)
	}
	return changed
}
