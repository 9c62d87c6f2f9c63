package history

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// Key names what a node gets of a type.
type Key struct {
	Node string `json:"node"`
	Type string `json:"type"`
}

// Place is where a node gets a type from: lines of resources, of which earlier ones hide later
// ones.
type Place struct {
	// View describes the view in words that outlive sessions: plugin, label and facts.
	View  string   `json:"view,omitempty"`
	Lines []uint64 `json:"lines"`
	// Complete: there is nothing of the type beside it.
	Complete bool `json:"complete,omitempty"`
}

func (p *Place) equal(o *Place) bool {
	return p != nil && o != nil && p.View == o.View && p.Complete == o.Complete && slices.Equal(p.Lines, o.Lines)
}

// ref is a resource's version; empty: it is known that there is none of the name.
type ref string

// entry is a revision, and what undoes it: what was so before, of all that it changed.
type entry struct {
	push   report.Push
	places map[Key]*Place             // nil: there was none
	names  map[uint64]map[string]*ref // nil: there was none
	made   map[uint64]bool            // lines that there were not
	bytes  int64
}

func newEntry(p report.Push) *entry {
	return &entry{push: p, places: map[Key]*Place{}, names: map[uint64]map[string]*ref{}, made: map[uint64]bool{}}
}

func (e *entry) empty() bool { return len(e.places)+len(e.names)+len(e.made) == 0 }

// held is a resource that something names: what is so now, or what was before.
type held struct {
	now, old int
	size     int64
	body     *view.Body // nil: it is in the file alone
	// queued: it is to be written into the file; saved: it is there.
	queued, saved bool
	// withheld: there is something secret in it, so that it is not in the file, but a mark.
	withheld atomic.Bool
}

// line is a set of resources as it changes. Members of a view have some lines in common.
type line struct {
	set   *view.Set      // as connections have it
	refs  map[string]ref // where there is no set yet: it is read from a file
	users int
}

// bounds of what is kept.
type bounds struct {
	revisions int
	bytes     int64
}

// what records cost, as far as memory is concerned, beside names and bodies.
const (
	nameCost  = 80
	placeCost = 200
	pushCost  = 2000
)

// Log is what was served, and of what revisions. Not safe for concurrent use.
type Log struct {
	bounds  bounds
	entries []*entry // oldest first
	places  map[Key]*Place
	lines   map[uint64]*line
	bySet   map[*view.Set]uint64
	bodies  map[string]*held
	last    uint64 // the newest line's number
	bytes   int64  // of what undoes
	// ops are changes for the file; nil where there is none.
	ops *ops
}

func newLog(b bounds) *Log {
	return &Log{
		bounds: b, places: map[Key]*Place{}, lines: map[uint64]*line{}, bySet: map[*view.Set]uint64{}, bodies: map[string]*held{},
	}
}

// Shown is what a connection is shown of a type; without a snapshot: nothing any more.
type Shown struct {
	Key
	// Connection is the number of the newest one of the node.
	Connection uint64
	// Plugin made it for View.
	Plugin   string
	View     *view.View
	Snapshot *view.Snapshot
}

func bodyKey(name string, version ref) string { return string(version) + name }

// versionSize is how long each version is, in bytes (view.Body.Version).
const versionSize = 16

func refOf(b *view.Body) *ref {
	if b == nil {
		return nil
	}
	r := ref(b.Version())
	return &r
}

// Begin begins a revision. The one before is forgotten if it changed nothing.
func (l *Log) Begin(p report.Push) {
	if n := len(l.entries); n > 1 && l.entries[n-1].empty() {
		l.drop(n - 1)
	}
	e := newEntry(p)
	e.bytes = pushCost
	l.bytes += e.bytes
	l.entries = append(l.entries, e)
	l.ops.push(e)
}

// Note updates what is known of a revision's cause and reach.
func (l *Log) Note(p report.Push) {
	for _, e := range slices.Backward(l.entries) {
		if e.push.Revision == p.Revision {
			e.push = p
			l.ops.push(e)
			return
		}
	}
}

// Record notes what connections are shown, as part of the newest revision.
func (l *Log) Record(all []Shown) {
	if len(l.entries) == 0 || len(all) == 0 {
		return
	}
	t := taking{Log: l, staying: map[uint64]bool{}, moving: make(map[Key]bool, len(all))}
	for _, s := range all {
		t.moving[s.Key] = true
		if s.Snapshot != nil {
			for set := range s.Snapshot.Sets() {
				if id, known := l.bySet[set]; known {
					t.staying[id] = true
				}
			}
		}
	}
	for _, s := range all {
		t.place(s)
	}
	l.bound()
}

// taking is what one call of Log.Record works with.
type taking struct {
	*Log
	// staying are lines that somebody has as they are, so that others than these don't change them.
	staying map[uint64]bool
	moving  map[Key]bool
	looked  bool
}

func (t *taking) place(s Shown) {
	before := t.places[s.Key]
	if s.Snapshot == nil {
		t.put(s.Key, nil)
		return
	}
	p := &Place{Complete: s.Snapshot.Complete(), View: ViewWords(s.Plugin, s.View)}
	for set := range s.Snapshot.Sets() {
		id, known := t.bySet[set]
		if !known {
			id = t.follow(set, before, len(p.Lines))
		}
		p.Lines = append(p.Lines, id)
	}
	if !p.equal(before) {
		t.put(s.Key, p)
	}
}

// follow finds the line that a set continues, or makes a new one.
func (t *taking) follow(set *view.Set, before *Place, at int) uint64 {
	if !t.looked {
		t.looked = true
		for k, p := range t.places {
			if !t.moving[k] {
				for _, id := range p.Lines {
					t.staying[id] = true
				}
			}
		}
	}
	if before != nil && at < len(before.Lines) {
		id := before.Lines[at]
		if ln := t.lines[id]; ln != nil && !t.staying[id] {
			t.staying[id] = true
			t.step(id, ln, set)
			return id
		}
	}
	t.last++
	id := t.last
	t.lines[id], t.bySet[set], t.staying[id] = &line{set: set}, id, true
	if !t.first() {
		t.newest().made[id] = true
		t.ops.made(t.newest(), id)
	}
	for _, b := range set.Bodies() {
		t.gain(id, b)
	}
	return id
}

// step makes a line another set.
func (l *Log) step(id uint64, ln *line, set *view.Set) {
	ln.ground()
	view.Differ(ln.set, set, func(name string, before, after *view.Body) { l.change(id, name, refOf(before), after) })
	delete(l.bySet, ln.set)
	ln.set = set
	l.bySet[set] = id
}

// ground gives a line that was read from a file a set of marks, with which others are compared.
func (ln *line) ground() {
	if ln.set != nil {
		return
	}
	marks := make([]*view.Body, 0, len(ln.refs))
	for name, version := range ln.refs {
		marks = append(marks, view.Mark(name, string(version)))
	}
	ln.set, ln.refs = view.NewSet(marks), nil
}

// change notes that a name of a line has another resource; nil: none.
func (l *Log) change(id uint64, name string, before *ref, after *view.Body) {
	e := l.newest()
	if l.first() || e.made[id] {
		l.lose(id, name, before, false)
	} else {
		if e.names[id] == nil {
			e.names[id] = map[string]*ref{}
		}
		_, known := e.names[id][name]
		if !known {
			e.names[id][name] = before
			l.cost(e, nameCost+int64(len(name))+l.size(name, before))
			l.ops.undo(e, id, name, before)
		}
		l.lose(id, name, before, !known)
	}
	if after != nil {
		l.gain(id, after)
	}
}

func (l *Log) size(name string, r *ref) int64 {
	if r == nil || *r == "" {
		return 0
	}
	return l.bodies[bodyKey(name, *r)].size
}

func (l *Log) cost(e *entry, bytes int64) { e.bytes, l.bytes = e.bytes+bytes, l.bytes+bytes }

// gain notes that a line has a resource now.
func (l *Log) gain(id uint64, b *view.Body) {
	l.ops.now(id, b.Name(), refOf(b))
	if !b.Exists() {
		return
	}
	key := bodyKey(b.Name(), ref(b.Version()))
	h := l.bodies[key]
	if h == nil {
		h = &held{size: int64(b.Size(true))}
		l.bodies[key] = h
	}
	if h.body == nil || h.now == 0 { // what is live now is one with it
		h.body = b
	}
	if h.now++; !h.saved {
		l.ops.body(key, h)
	}
}

// lose notes that a line does not have a resource any more; kept: what undoes names it.
func (l *Log) lose(id uint64, name string, r *ref, kept bool) {
	l.ops.now(id, name, nil)
	if r == nil || *r == "" {
		return
	}
	h := l.bodies[bodyKey(name, *r)]
	if h.now--; kept {
		h.old++
	}
	l.rest(bodyKey(name, *r), h)
}

// rest lets go of a resource that nothing names, and of the memory of one that is in the file.
func (l *Log) rest(key string, h *held) {
	switch {
	case h.now+h.old == 0:
		delete(l.bodies, key)
		l.ops.gone(key, h)
	case h.now == 0 && h.saved:
		h.body = nil
	}
}

// put gives a node another place; nil: none.
func (l *Log) put(k Key, p *Place) {
	e, before := l.newest(), l.places[k]
	if before == nil && p == nil {
		return
	}
	if _, known := e.places[k]; !known && !l.first() {
		e.places[k] = before
		l.cost(e, placeCost+int64(len(k.Node)))
		l.ops.undoPlace(e, k, before)
	}
	l.ops.place(k, p)
	if p != nil {
		l.places[k] = p
		for _, id := range p.Lines {
			l.lines[id].users++
		}
	} else {
		delete(l.places, k)
	}
	if before == nil {
		return
	}
	for _, id := range before.Lines {
		if ln := l.lines[id]; ln != nil {
			if ln.users--; ln.users == 0 {
				l.end(id, ln)
			}
		}
	}
}

// end lets go of a line that nobody has.
func (l *Log) end(id uint64, ln *line) {
	ln.ground()
	for _, b := range ln.set.Bodies() {
		l.change(id, b.Name(), refOf(b), nil)
	}
	delete(l.bySet, ln.set)
	delete(l.lines, id)
	if e := l.newest(); e.made[id] {
		delete(e.made, id)
		l.ops.unmade(e, id)
	}
}

func (l *Log) newest() *entry { return l.entries[len(l.entries)-1] }

// first reports whether the newest revision is the oldest, too: what undoes it is of no use.
func (l *Log) first() bool { return len(l.entries) == 1 }

// bound drops the oldest revisions while there is too much. The newest one is not dropped.
func (l *Log) bound() {
	for len(l.entries) > 1 && (len(l.entries) > l.bounds.revisions || l.bytes > l.bounds.bytes) {
		l.drop(0)
	}
}

// shrink drops the oldest revisions until so many bytes less are kept, or the newest one is left.
// It returns how many it dropped.
func (l *Log) shrink(bytes uint64) (dropped int) {
	most := max(0, l.bytes-int64(min(bytes, math.MaxInt64)))
	for len(l.entries) > 1 && l.bytes > most {
		l.drop(0)
		dropped++
	}
	return dropped
}

// drop forgets a revision: the oldest, or one that changed nothing. What the oldest undoes leads to
// no revision that is kept.
func (l *Log) drop(i int) {
	e := l.entries[i]
	l.entries = slices.Delete(l.entries, i, i+1)
	l.bytes -= e.bytes
	l.forget(e)
	l.ops.dropped(e)
	if i == 0 && len(l.entries) > 0 {
		first := l.entries[0]
		l.forget(first)
		l.bytes -= first.bytes - pushCost
		first.places, first.names, first.made, first.bytes = map[Key]*Place{}, map[uint64]map[string]*ref{}, map[uint64]bool{}, pushCost
		l.ops.cleared(first)
	}
}

func (l *Log) forget(e *entry) {
	for _, names := range e.names {
		for name, r := range names {
			if r == nil || *r == "" {
				continue
			}
			key := bodyKey(name, *r)
			h := l.bodies[key]
			h.old--
			l.rest(key, h)
		}
	}
}

// Span says which revisions are kept; ok: there are any.
func (l *Log) Span() (oldest, newest uint64, ok bool) {
	if len(l.entries) == 0 {
		return 0, 0, false
	}
	return l.entries[0].push.Revision, l.newest().push.Revision, true
}

// undo takes a revision back.
func (l *Log) undo(e *entry, places map[Key]*Place, lines map[uint64]map[string]ref) {
	for k, p := range e.places {
		if p == nil {
			delete(places, k)
		} else {
			places[k] = p
		}
	}
	for id, names := range e.names {
		if lines[id] == nil {
			lines[id] = l.refs(id)
		}
		for name, r := range names {
			if r == nil {
				delete(lines[id], name)
			} else {
				lines[id][name] = *r
			}
		}
	}
}

// refs is what a line has now.
func (l *Log) refs(id uint64) map[string]ref {
	ln, out := l.lines[id], map[string]ref{}
	switch {
	case ln == nil:
	case ln.set == nil:
		maps.Copy(out, ln.refs)
	default:
		for _, b := range ln.set.Bodies() {
			out[b.Name()] = *refOf(b)
		}
	}
	return out
}

// marked reports whether a line's set is marks alone, as of a line that was read from a file.
func (ln *line) marked() bool {
	for _, b := range ln.set.Bodies() {
		if b.Version() != "" {
			return !b.Exists()
		}
	}
	return false
}

// ViewWords describes a view of a plugin by what does not depend on a session; empty: nothing does.
func ViewWords(plugin string, v *view.View) string {
	if v == nil || v.Label == "" && len(v.Facts) == 0 {
		return ""
	}
	text := plugin + "\x00" + v.Label
	for _, k := range slices.Sorted(maps.Keys(v.Facts)) {
		text += "\x00" + k + "=" + v.Facts[k]
	}
	return text
}

// keysOf are the keys in order.
func keysOf(all map[Key]*Place) []Key { return slices.SortedFunc(maps.Keys(all), compareKeys) }

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Type, b.Type))
}
