package serving

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// Base is what connections were served before a stage began. It is kept as long as the stage is
// under way: in memory and, where the history is on disk, through a restart.
type Base struct {
	own map[history.Key]*view.Snapshot
	// views is what those of a view saw, by its words; nil: not all saw the same.
	views map[viewKey]*view.Snapshot
	// image is all that is known of a base of before a restart; nil: it is of this time.
	image *history.Image
	// equal are, of snapshots, others that have the same resources.
	equal map[*view.Snapshot]*view.Snapshot
}

// viewKey is a type of resource, and a view of it as history.ViewWords says it.
type viewKey struct{ typeURL, words string }

// Base returns what all connections see now of what is live, but for secrets.
func (v *Screen) Base() *Base {
	b := &Base{own: map[history.Key]*view.Snapshot{}, views: map[viewKey]*view.Snapshot{}, equal: map[*view.Snapshot]*view.Snapshot{}}
	for _, conn := range v.state.Connections.All {
		for url, at := range conn.Places.All() {
			seen := v.pins.Live(conn, url, conn.Seen[url])
			if seen == nil || v.state.Roster.Traits(conn.Generators[url], url).Sensitive {
				continue
			}
			b.own[history.Key{Node: conn.Peer.Node.GetId(), Type: url}] = seen
			if words := history.ViewWords(at.Session.Name(), at.View); words != "" {
				key := viewKey{url, words}
				if other, known := b.views[key]; known && other != seen {
					seen = nil
				}
				b.views[key] = seen
			}
		}
	}
	return b
}

// Restored returns a base of before a restart, of which a history has kept the image.
func Restored(image *history.Image) *Base {
	return &Base{image: image, equal: map[*view.Snapshot]*view.Snapshot{}}
}

// Of implements Kept.
func (b *Base) Of(k history.Key, plugin string, v *view.View) (*view.Snapshot, history.By) {
	if b.image != nil {
		return b.image.Of(k, plugin, v)
	}
	if s := b.own[k]; s != nil {
		return s, history.Own
	}
	if words := history.ViewWords(plugin, v); words != "" {
		if s := b.views[viewKey{k.Type, words}]; s != nil {
			return s, history.View
		}
	}
	return nil, history.Live
}

// Differs reports whether a connection would see something else of what is live than it did, but
// for endpoints.
func (v *Screen) Differs(b *Base, conn *state.Connection) bool {
	for url := range conn.Places.All() {
		traits := v.state.Roster.Traits(conn.Generators[url], url)
		was := b.at(history.Key{Node: conn.Peer.Node.GetId(), Type: url})
		if was != nil && traits.After == "" && !traits.Sensitive && !b.same(was, v.pins.Live(conn, url, conn.Seen[url])) {
			return true
		}
	}
	return false
}

// at is what a node was served of a type; nil: nothing.
func (b *Base) at(k history.Key) *view.Snapshot {
	if b.image != nil {
		return b.image.Snapshot(k)
	}
	return b.own[k]
}

// same reports whether two snapshots have the same resources.
func (b *Base) same(was, is *view.Snapshot) bool {
	if was == is || is == b.equal[was] {
		return true
	}
	if !slices.EqualFunc(was.Bodies(), is.Bodies(), func(x, y *view.Body) bool {
		return x.Name() == y.Name() && x.Version() == y.Version()
	}) {
		return false
	}
	b.equal[was] = is
	return true
}

// Stage has those whom a pin selects see what it has, and all others what is live; nil: all do. A
// pin that somebody has set counts for those whom it selects. What others get by that is shown when
// Show is called, and judged by the guards.
func (v *Screen) Stage(pin *Pinned) {
	before := v.pins.each()
	v.pins.stage = pin
	for conn, was := range before {
		if v.pins.Of(conn) == was {
			continue
		}
		for url := range conn.Places.All() {
			v.stale.Spoil(conn, url)
		}
	}
}

// Withdraw has those whom a pin selects see what it has, at once.
func (v *Screen) Withdraw(pin *Pinned) { v.repin(func() { v.pins.stage = pin }) }
