package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// draft is what was served at a revision, as far as it is in memory.
type draft struct {
	im *Image
	// names are the resources of lines that are to be made, have those of them that are there, and
	// lacks the keys of the others, which the file has.
	names map[uint64]map[string]ref
	have  map[string]*view.Body
	lacks []string
}

// Draft returns what was served at a revision: that of the newest entry that is not later.
func (l *Log) draft(revision uint64) (*draft, error) {
	oldest, _, ok := l.Span()
	switch {
	case !ok:
		return nil, errors.New("no revision is kept yet")
	case revision < oldest:
		return nil, fmt.Errorf("revision %d is not kept any more", revision)
	}
	places, changed := maps.Clone(l.places), map[uint64]map[string]ref{}
	for _, e := range slices.Backward(l.entries) {
		if e.push.Revision <= revision {
			break
		}
		l.undo(e, places, changed)
	}
	d := &draft{im: NewImage(revision), names: map[uint64]map[string]ref{}, have: map[string]*view.Body{}}
	d.im.Places = places
	for _, p := range places {
		for _, id := range p.Lines {
			d.take(l, id, changed)
		}
	}
	return d, nil
}

// take takes in a line: as connections have it if it has not changed.
func (d *draft) take(l *Log, id uint64, changed map[uint64]map[string]ref) {
	if d.im.lines[id] != nil || d.names[id] != nil {
		return
	}
	names, other := changed[id]
	if ln := l.lines[id]; !other && ln != nil && ln.set != nil && !ln.marked() {
		d.im.lines[id] = ln.set
		return
	} else if !other {
		names = l.refs(id)
	}
	d.names[id] = names
	for name, version := range names {
		key := bodyKey(name, version)
		if _, known := d.have[key]; known || version == "" {
			continue
		}
		h := l.bodies[key]
		if d.have[key] = nil; h != nil && h.body != nil {
			d.have[key] = h.body
		} else {
			d.lacks = append(d.lacks, key)
		}
	}
}

// image makes the draft whole with what was read. The error names what is not there.
func (d *draft) image(found map[string]*view.Body) (*Image, error) {
	for _, key := range d.lacks {
		if found[key] == nil {
			return nil, fmt.Errorf("resource %q is not there any more", key)
		}
		d.have[key] = found[key]
	}
	for id, names := range d.names {
		bodies := make([]*view.Body, 0, len(names))
		for name, version := range names {
			if version == "" {
				bodies = append(bodies, view.Absent(name))
			} else {
				bodies = append(bodies, d.have[bodyKey(name, version)])
			}
		}
		d.im.lines[id] = view.NewSet(bodies)
	}
	return d.im, nil
}
