package history

import (
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// Image is what was served at a revision. Once it is made it does not change.
type Image struct {
	Revision uint64
	Places   map[Key]*Place
	lines    map[uint64]*view.Set
	// shown are snapshots that were made of it, by their lines.
	shown map[string]*view.Snapshot
	// views are places by type and view; nil: there are several that differ.
	views map[Key]*Place
	// types are those of each node, in order.
	types map[string][]string
}

// NewImage returns one of nothing.
func NewImage(revision uint64) *Image {
	return &Image{Revision: revision, Places: map[Key]*Place{}, lines: map[uint64]*view.Set{}, shown: map[string]*view.Snapshot{}}
}

// By is how an image knows what a node gets.
type By string

// Own: the node itself was served at the revision. View: others of its view were. Live: neither, so
// that it gets what is live.
const (
	Own  By = "own"
	View By = "view"
	Live By = "live"
)

// Of returns what a node had of a type, or else what others had whose view was described as its is
// now; nil: nothing is known. Equal places are one snapshot. Not safe for concurrent use.
func (im *Image) Of(k Key, plugin string, v *view.View) (*view.Snapshot, By) {
	if p := im.Places[k]; p != nil {
		return im.snapshot(p).Whole(), Own
	}
	if im.views == nil {
		im.gather()
	}
	if p := im.views[Key{ViewWords(plugin, v), k.Type}]; p != nil {
		return im.snapshot(p).Whole(), View
	}
	return nil, Live
}

func (im *Image) gather() {
	im.views = map[Key]*Place{}
	for _, k := range keysOf(im.Places) {
		p := im.Places[k]
		at := Key{p.View, k.Type}
		other, known := im.views[at]
		if p.View != "" && (!known || p.equal(other)) {
			im.views[at] = p
		} else {
			im.views[at] = nil
		}
	}
}

// Snapshot returns what a node had of a type; nil: nothing.
func (im *Image) Snapshot(k Key) *view.Snapshot {
	if p := im.Places[k]; p != nil {
		return im.snapshot(p)
	}
	return nil
}

func (im *Image) snapshot(p *Place) *view.Snapshot {
	at := fmt.Sprint(p.Complete, p.Lines)
	if s := im.shown[at]; s != nil {
		return s
	}
	var own *view.Set
	var parts []*view.Set
	for i, id := range p.Lines {
		if set := im.lines[id]; i == 0 {
			own = set
		} else {
			parts = append(parts, set)
		}
	}
	s := view.NewSnapshot(own, parts, p.Complete)
	im.shown[at] = s
	return s
}

// Nodes are those that were served something, in order.
func (im *Image) Nodes() (all []string) {
	for _, k := range keysOf(im.Places) {
		all = append(all, k.Node)
	}
	return slices.Compact(all)
}

// Types are those that a node had, in order. Not safe for concurrent use.
func (im *Image) Types(node string) []string {
	if im.types == nil {
		im.types = map[string][]string{}
		for _, k := range keysOf(im.Places) {
			im.types[k.Node] = append(im.types[k.Node], k.Type)
		}
	}
	return im.types[node]
}

// stored is an image as it is kept: by names and versions.
type stored struct {
	Revision uint64                    `json:"revision"`
	Places   []storedPlace             `json:"places"`
	Lines    map[uint64]map[string]ref `json:"lines"`
}

type storedPlace struct {
	Key
	Place
}

func (im *Image) store() stored {
	out := stored{Revision: im.Revision, Lines: map[uint64]map[string]ref{}}
	for _, k := range keysOf(im.Places) {
		out.Places = append(out.Places, storedPlace{k, *im.Places[k]})
	}
	for id, set := range im.lines {
		names := map[string]ref{}
		for _, b := range set.Bodies() {
			names[b.Name()] = *refOf(b)
		}
		out.Lines[id] = names
	}
	return out
}

// restore makes an image of what is kept of it. Find reads a resource.
func restore(s stored, find func(key string) (*view.Body, error)) (*Image, error) {
	im := NewImage(s.Revision)
	for _, p := range s.Places {
		im.Places[p.Key] = &p.Place
	}
	for id, names := range s.Lines {
		bodies := make([]*view.Body, 0, len(names))
		for name, version := range names {
			if version == "" {
				bodies = append(bodies, view.Absent(name))
				continue
			}
			b, err := find(bodyKey(name, version))
			if err != nil {
				return nil, err
			}
			bodies = append(bodies, b)
		}
		im.lines[id] = view.NewSet(bodies)
	}
	return im, nil
}

// secretive returns the names of resources that have something secret in them, which are not kept
// over a restart.
func (im *Image) secretive(l *Log) (names []string) {
	for _, set := range im.lines {
		for _, b := range set.Bodies() {
			if h := l.bodies[bodyKey(b.Name(), ref(b.Version()))]; b.Version() != "" && h != nil && h.withheld.Load() {
				names = append(names, b.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// keep has the resources of an image kept, or, by -1, no longer.
func (l *Log) keep(im *Image, by int) {
	for _, set := range im.lines {
		for _, b := range set.Bodies() {
			if b.Version() == "" {
				continue
			}
			key := bodyKey(b.Name(), ref(b.Version()))
			h := l.bodies[key]
			if h == nil && (by < 0 || !b.Exists()) {
				continue
			}
			if h == nil {
				h = &held{size: int64(b.Size(true)), body: b}
				l.bodies[key] = h
			}
			if h.old += by; by > 0 && !h.saved {
				l.ops.body(key, h)
			}
			l.rest(key, h)
		}
	}
}
