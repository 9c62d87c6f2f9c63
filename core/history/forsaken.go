package history

import (
	"maps"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// wreck is a log whose file is lost.
type wreck struct{ *Log }

// fileOnly are the keys of resources that the file alone has.
func (l wreck) fileOnly() (keys []string) {
	for key, h := range l.bodies {
		if h.body == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// forsake has the log go on without its file. What connections and images have is taken from them;
// found is what could still be read. Revisions that need what is lost are dropped, and so are nodes
// that were there before a restart and have not come back. It returns how many revisions went.
func (l wreck) forsake(found map[string]*view.Body, images ...*Image) (dropped int) {
	l.ops = nil
	for key, b := range found {
		l.recover(key, b)
	}
	for _, ln := range l.lines {
		l.recoverSet(ln.set)
	}
	for _, im := range images {
		for _, set := range im.lines {
			l.recoverSet(set)
		}
	}
	last := -1
	for _, h := range l.bodies {
		h.saved, h.queued = false, false
		if h.body == nil && h.now > 0 {
			last = len(l.entries) - 1
		}
	}
	for i, e := range l.entries {
		if l.needsLost(e) {
			last = max(last, i)
		}
	}
	for range last {
		l.drop(0)
		dropped++
	}
	for k, p := range maps.Clone(l.places) {
		if l.lost(p) {
			l.put(k, nil)
		}
	}
	return dropped
}

func (l wreck) recoverSet(set *view.Set) {
	if set == nil {
		return
	}
	for _, b := range set.Bodies() {
		if b.Exists() {
			l.recover(bodyKey(b.Name(), ref(b.Version())), b)
		}
	}
}

func (l wreck) recover(key string, b *view.Body) {
	if h := l.bodies[key]; h != nil && h.body == nil {
		h.body = b
	}
}

func (l wreck) isLost(name string, version ref) bool {
	h := l.bodies[bodyKey(name, version)]
	return version != "" && (h == nil || h.body == nil)
}

// needsLost reports whether what was before an entry can't be had any more.
func (l wreck) needsLost(e *entry) bool {
	for _, names := range e.names {
		for name, r := range names {
			if r != nil && l.isLost(name, *r) {
				return true
			}
		}
	}
	return false
}

// lost reports whether what a node has now can't be had any more.
func (l wreck) lost(p *Place) bool {
	for _, id := range p.Lines {
		for name, version := range l.refs(id) {
			if l.isLost(name, version) {
				return true
			}
		}
	}
	return false
}
