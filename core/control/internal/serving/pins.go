package serving

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/view"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Pins have connections see what was served at a revision.
type Pins struct {
	state *state.State
	all   []*Pinned
	// stage is what some see while others try something newer; nil: all see the same.
	stage *Pinned
	// live is what pinned connections would see.
	live map[*state.Connection]map[string]*view.Snapshot
	// made are snapshots that have something of both, since connections were last shown anything.
	made map[overlay]*view.Snapshot
	// views are what others of a view had, since connections were last shown anything; nil: nothing
	// that all of them had.
	views map[pinnedView]*view.Snapshot
}

// Pinned is a pin, what it serves, and whom.
type Pinned struct {
	history.Pin
	Image   Kept
	Selects func(*corev3.Node) bool
}

// Kept is what was served.
type Kept interface {
	// Of returns what a node was served of a type or, if nothing is known of it, what others were
	// whose view was described as its is now; nil: nothing is known.
	Of(k history.Key, plugin string, v *view.View) (*view.Snapshot, history.By)
}

type overlay struct {
	pin        *Pinned
	kept, live *view.Snapshot
}

func newPins(st *state.State) *Pins {
	return &Pins{state: st, live: map[*state.Connection]map[string]*view.Snapshot{}, made: map[overlay]*view.Snapshot{}, views: map[pinnedView]*view.Snapshot{}}
}

// All are the pins; of two that select a connection the later one counts.
func (p *Pins) All() []*Pinned { return p.all }

// Of is the pin that a connection sees; nil: it sees what is live.
func (p *Pins) Of(conn *state.Connection) *Pinned {
	for _, x := range slices.Backward(p.all) {
		if x.Selects(conn.Peer.Node) {
			return x
		}
	}
	if p.stage != nil && p.stage.Selects(conn.Peer.Node) {
		return p.stage
	}
	return nil
}

// each returns the pin that each connection sees.
func (p *Pins) each() map[*state.Connection]*Pinned {
	out := make(map[*state.Connection]*Pinned, len(p.state.Connections.All))
	for _, conn := range p.state.Connections.All {
		out[conn] = p.Of(conn)
	}
	return out
}

// Stage is the pin of the stage that is under way, which nobody has set by hand; nil: there is
// none.
func (p *Pins) Stage() *Pinned { return p.stage }

// shown is what a connection sees in the place of what is live. Secrets are never kept, and
// endpoints are live unless the pin says otherwise: but for those of clusters that live ones don't
// know any more.
func (p *Pins) shown(conn *state.Connection, url string, live *view.Snapshot) *view.Snapshot {
	if len(p.all) == 0 && p.stage == nil {
		return live
	}
	pin := p.Of(conn)
	if pin == nil {
		delete(p.live, conn)
		return live
	}
	if p.live[conn] == nil {
		p.live[conn] = map[string]*view.Snapshot{}
	}
	p.live[conn][url] = live
	kept, _ := p.kept(pin, conn, url)
	if kept == nil || live == nil {
		return live
	}
	endpoints := p.state.Roster.Traits(conn.Generators[url], url).After != "" && !pin.Endpoints
	if kept.Complete() && !endpoints && len(kept.Lacks()) == 0 {
		return kept
	}
	at := overlay{pin, kept, live}
	if p.made[at] == nil {
		if len(kept.Lacks()) > 0 { // what had a secret was not kept over a restart
			kept = kept.Filled(live)
		}
		switch {
		case endpoints:
			kept = kept.Below(live)
		case !kept.Complete():
			kept = kept.Over(live)
		}
		p.made[at] = kept
	}
	return p.made[at]
}

// kept is what a pin has of a type for a connection, and how it knows; nil: nothing.
func (p *Pins) kept(pin *Pinned, conn *state.Connection, url string) (*view.Snapshot, history.By) {
	at := conn.Places.At(url)
	if at.View == nil || p.state.Roster.Traits(conn.Generators[url], url).Sensitive {
		return nil, history.Live
	}
	snap, by := pin.Image.Of(history.Key{Node: conn.Peer.Node.GetId(), Type: url}, at.Session.Name(), at.View)
	if by == history.Live {
		if snap = p.others(pin, at.View); snap != nil {
			by = history.View
		}
	}
	return snap, by
}

type pinnedView struct {
	pin  *Pinned
	view *view.View
}

// others returns what the nodes that are in a view now were served themselves at the pinned
// revision; nil: none was there then, or not all had the same.
func (p *Pins) others(pin *Pinned, v *view.View) *view.Snapshot {
	at := pinnedView{pin, v}
	if s, known := p.views[at]; known {
		return s
	}
	var found *view.Snapshot
	for _, conn := range p.state.Connections.All {
		place := conn.Places.At(v.Type)
		if place.View != v {
			continue
		}
		snap, by := pin.Image.Of(history.Key{Node: conn.Peer.Node.GetId(), Type: v.Type}, place.Session.Name(), v)
		if by != history.Own {
			continue
		}
		if found != nil && found != snap {
			found = nil
			break
		}
		found = snap
	}
	p.views[at] = found
	return found
}

// forget lets go of what is kept while connections are shown something.
func (p *Pins) forget() {
	clear(p.made)
	clear(p.views)
}

// Shows reports whether a pin shows a connection this, and not what is live.
func (p *Pins) Shows(pin *Pinned, conn *state.Connection, url string, body *view.Body) bool {
	kept, _ := p.kept(pin, conn, url)
	return body != nil && kept != nil && kept.Get(body.Name()) == body
}

// Types says for each type of a connection where what it sees comes from; nil: it is not pinned.
func (p *Pins) Types(conn *state.Connection) map[string]history.By {
	pin := p.Of(conn)
	if pin == nil {
		return nil
	}
	out := map[string]history.By{}
	for url := range conn.Subs {
		_, out[url] = p.kept(pin, conn, url)
	}
	return out
}

// Live is what a connection would see that sees something.
func (p *Pins) Live(conn *state.Connection, url string, seen *view.Snapshot) *view.Snapshot {
	if live, pinned := p.live[conn][url]; pinned {
		return live
	}
	return seen
}

// Pin puts a pin in the place of one of the same proxies.
func (v *Screen) Pin(pin *Pinned) {
	v.repin(func() { v.pins.all = append(without(v.pins.all, pin.Proxies), pin) })
}

// Unpin takes a pin away, and reports whether there was one.
func (v *Screen) Unpin(proxies string) (was bool) {
	v.repin(func() {
		n := len(v.pins.all)
		v.pins.all = without(v.pins.all, proxies)
		was = len(v.pins.all) < n
	})
	return was
}

func without(all []*Pinned, proxies string) []*Pinned {
	return slices.DeleteFunc(slices.Clone(all), func(p *Pinned) bool { return p.Proxies == proxies })
}

// repin changes the pins, and shows those whom that concerns what they are to see. People asked for
// it: guards don't judge it.
func (v *Screen) repin(change func()) {
	before := v.pins.each()
	change()
	frozen := v.losses.Holds.Frozen()
	for conn, was := range before {
		is := v.pins.Of(conn)
		if is == was {
			continue
		}
		types := map[string]*view.Snapshot{}
		for url, at := range conn.Places.All() {
			snap, ok := v.patches.compose(conn, url, patch.Waiting{})
			if !ok || is == nil && (frozen[conn] || v.state.Course.Withholding()) {
				v.stale.Spoil(conn, url)
				continue
			}
			types[url] = v.pins.shown(conn, url, v.quarantine.screened(conn, at.View, snap))
		}
		v.showTo(conn, types)
		if is == nil {
			delete(v.pins.live, conn)
		}
	}
	v.quarantine.shown()
	v.pins.forget()
}

// note has the history keep what a connection is shown, but for what is sensitive, and for what a
// pin has it see: a pin is no part of what there was.
func (v *Screen) note(conn *state.Connection, url string, snap *view.Snapshot) {
	s := history.Shown{Key: history.Key{Node: conn.Peer.Node.GetId(), Type: url}, Connection: conn.ID, Snapshot: snap}
	if at := conn.Places.At(url); at.View != nil {
		s.Plugin, s.View = at.Session.Name(), at.View
	}
	v.history.Note(v.state.Journal.Showing(), s)
}

// forget lets go of a connection that has gone.
func (v *Screen) forget(conn *state.Connection) {
	delete(v.pins.live, conn)
	v.history.Left(conn.Peer.Node.GetId(), conn.ID)
}
