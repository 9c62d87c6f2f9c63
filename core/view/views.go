package view

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Views is what one generator's session says of views: their parts, and what each has of its own.
// Not safe for concurrent use.
type Views struct {
	bodies   *Bodies
	refusals *Refusals
	parts    map[uint64]*part
	views    map[key]*View
	dirty    map[*View]bool
	// gone are views that were forgotten: what is still said of them harms nobody.
	gone   map[key]bool
	unused map[uint64]*part // were listed, but by no view now
	// strayed are views with strays.
	strayed map[*View]bool
}

type key struct {
	typeURL string
	id      uint64
}

type part struct {
	set   *Set
	users map[*View]bool
}

// View is an equivalence class of connections for one type.
type View struct {
	Type  string
	ID    uint64
	Label string
	Facts map[string]string
	// Connections is how many are placed in the view, or about to be.
	Connections int
	// Left is how many lists of wishes are kept of connections that left.
	Left int

	own      *Set
	parts    []uint64
	complete bool
	wildcard int
	lists    map[list]*wish
	wants    map[string]int // how many lists have the name
	// strays are names of own that came when nobody wanted them; nil: none did.
	strays   map[string]bool
	snapshot *Snapshot
}

// Unused reports whether nobody is in the view, and nothing is kept for those who were.
func (v *View) Unused() bool { return v.Connections == 0 && v.Left == 0 }

// Alone returns how many bytes those of the names have that are on one list alone.
func (v *View) Alone(names []string) (bytes int64) {
	for _, n := range names {
		if b := v.snapshot.Get(n); v.wants[n] == 1 && b != nil && b.Exists() {
			bytes += int64(b.Size(true))
		}
	}
	return bytes
}

// list identifies a slice of names.
type list struct {
	first *string
	len   int
}

// wish is a list of names, as long as somebody has it.
type wish struct {
	names []string
	users int
}

// NewViews returns the empty views of a new session, which use its bodies. What can't be taken is
// among the refusals.
func NewViews(bodies *Bodies, refusals *Refusals) *Views {
	return &Views{
		bodies: bodies, refusals: refusals, parts: map[uint64]*part{}, views: map[key]*View{}, dirty: map[*View]bool{}, gone: map[key]bool{},
		unused: map[uint64]*part{}, strayed: map[*View]bool{},
	}
}

// Snapshot returns what the view's connections get.
func (v *View) Snapshot() *Snapshot { return v.snapshot }

// Get returns a view, nil where it was not described.
func (vs *Views) Get(typeURL string, id uint64) *View { return vs.views[key{typeURL, id}] }

// All returns all views, ordered by type and number.
func (vs *Views) All() []*View {
	return slices.SortedFunc(maps.Values(vs.views), func(a, b *View) int {
		if a.Type != b.Type {
			if a.Type < b.Type {
				return -1
			}
			return 1
		}
		return int(int64(a.ID) - int64(b.ID))
	})
}

// Describe notes a new view.
func (vs *Views) Describe(m *pb.View) {
	k := key{m.Type, m.View}
	delete(vs.gone, k)
	if vs.views[k] == nil {
		vs.views[k] = &View{Type: m.Type, ID: m.View, Label: m.Label, Facts: m.Facts, lists: map[list]*wish{}, wants: map[string]int{}}
	}
}

// Forget lets go of a view that no connection is in.
func (vs *Views) Forget(v *View) {
	const most = 100_000
	if len(vs.gone) >= most {
		clear(vs.gone)
	}
	vs.gone[key{v.Type, v.ID}] = true
	delete(vs.views, key{v.Type, v.ID})
	delete(vs.dirty, v)
	delete(vs.strayed, v)
	vs.refusals.forget(v)
	vs.setParts(v, nil)
	for _, b := range v.own.Bodies() {
		vs.bodies.release(b)
	}
	v.own = nil
}

// Gone reports whether a view was described and has been forgotten. It says so once: who asks deals
// with it.
func (vs *Views) Gone(typeURL string, id uint64) bool {
	k := key{typeURL, id}
	defer delete(vs.gone, k)
	return vs.gone[k]
}

// Part changes a part.
func (vs *Views) Part(m *pb.Part) error {
	p := vs.part(m.Part)
	set, err := vs.edit(p, p.set, m.Type, m.Upserts, m.Removes)
	p.set = set
	for v := range p.users {
		vs.dirty[v] = true
	}
	return err
}

func (vs *Views) part(id uint64) *part {
	p := vs.parts[id]
	if p == nil {
		p = &part{users: map[*View]bool{}}
		vs.parts[id] = p
	}
	return p
}

// Change changes a view. One that is gone is left alone: the plugin may have said this before it
// read that nobody is in it.
func (vs *Views) Change(m *pb.Change) error {
	v := vs.views[key{m.Type, m.View}]
	if v == nil && vs.gone[key{m.Type, m.View}] {
		vs.bodies.drop(m.Upserts)
		return nil
	}
	if v == nil {
		return fmt.Errorf("view %d of %s was changed but never described", m.View, m.Type)
	}
	if m.SetParts {
		vs.setParts(v, m.Parts)
	}
	set, err := vs.edit(v, v.own, m.Type, m.Upserts, m.Removes)
	v.own = set
	vs.dirty[v] = true
	if v.stray(m.Upserts); v.strays != nil {
		vs.strayed[v] = true
	}
	return err
}

// stray notes the names of entries that nobody wants: the plugin said them before it read that, or
// before somebody wants them.
func (v *View) stray(entries []*pb.Entry) {
	if v.wildcard > 0 {
		return
	}
	for _, e := range entries {
		if v.wants[e.Name] > 0 {
			continue
		}
		if v.strays == nil {
			v.strays = map[string]bool{}
		}
		v.strays[e.Name] = true
	}
}

// Strayed returns the views that have names which came when nobody wanted them, and which nobody
// has wanted since.
func (vs *Views) Strayed() []*View {
	for v := range vs.strayed {
		maps.DeleteFunc(v.strays, func(n string, _ bool) bool { return v.wants[n] > 0 || v.own.Get(n) == nil })
		if v.wildcard > 0 || len(v.strays) == 0 {
			v.strays = nil
			delete(vs.strayed, v)
		}
	}
	return slices.Collect(maps.Keys(vs.strayed))
}

// Waits reports whether something was said that is not published yet, or whether there are bodies
// that no view names and of which the plugin was not told.
func (vs *Views) Waits() bool { return len(vs.dirty) > 0 || vs.bodies.untold() }

// Sweep removes such names from a view: the plugin knows by now what is wanted, and says anew what
// will be.
func (vs *Views) Sweep(v *View) {
	if !slices.Contains(vs.Strayed(), v) {
		return
	}
	vs.Unwant(v, false, slices.Collect(maps.Keys(v.strays)))
	v.strays = nil
	delete(vs.strayed, v)
}

// Complete notes that the whole set of the view is known.
func (vs *Views) Complete(v *View) {
	v.complete = true
	vs.dirty[v] = true
}

func (vs *Views) setParts(v *View, parts []uint64) {
	for _, id := range v.parts {
		p := vs.part(id)
		if delete(p.users, v); len(p.users) == 0 {
			vs.unused[id] = p
		}
	}
	v.parts = parts
	for _, id := range parts {
		vs.part(id).users[v] = true
		delete(vs.unused, id)
	}
}

// edit applies entries to the set of a part or view. What it can't apply (missing bodies) stays as
// it was and is the error.
func (vs *Views) edit(of any, set *Set, typeURL string, entries []*pb.Entry, removes []string) (*Set, error) {
	ups := make([]*Body, 0, len(entries))
	missing := &MissingError{}
	for _, e := range lastOfEach(entries) {
		b, err := vs.bodies.use(typeURL, e, set.Get(e.Name))
		if errors.Is(err, errMissing) {
			missing.Bodies = append(missing.Bodies, e.Body)
			continue
		}
		if err != nil {
			vs.refusals.refuse(spot{of, e.Name}, typeURL, err)
			if set.Get(e.Name) != nil {
				continue
			}
			b = Absent(e.Name)
		} else {
			vs.refusals.repair(spot{of, e.Name})
		}
		ups = append(ups, b)
	}
	next := set.With(ups, removes)
	for _, b := range ups {
		vs.bodies.release(set.Get(b.name))
	}
	for _, n := range slices.Compact(slices.Sorted(slices.Values(removes))) {
		vs.refusals.repair(spot{of, n})
		if next.Get(n) == nil {
			vs.bodies.release(set.Get(n))
		}
	}
	if len(missing.Bodies) > 0 {
		return next, missing
	}
	return next, nil
}

// lastOfEach returns the entries without those that a later one of the same name overrides.
func lastOfEach(entries []*pb.Entry) []*pb.Entry {
	last := make(map[string]*pb.Entry, len(entries))
	for _, e := range entries {
		last[e.Name] = e
	}
	if len(last) == len(entries) {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e *pb.Entry) bool { return last[e.Name] != e })
}

// Publish makes what was said since the last call visible, and returns the views that changed.
func (vs *Views) Publish() []*View {
	changed := slices.Collect(maps.Keys(vs.dirty))
	for _, v := range changed {
		parts := make([]*Set, len(v.parts))
		for i, id := range v.parts {
			parts[i] = vs.part(id).set
		}
		v.snapshot = NewSnapshot(v.own, parts, v.complete)
	}
	clear(vs.dirty)
	return changed
}

// Unused returns parts that no view lists any more. They are kept until Expire, for the plugin may
// be listing them at this moment.
func (vs *Views) Unused() []uint64 { return slices.Collect(maps.Keys(vs.unused)) }

// Expire forgets those of the parts in ids that no view lists: what the plugin said before it knew
// has come.
func (vs *Views) Expire(ids []uint64) {
	for _, id := range ids {
		p := vs.unused[id]
		if p == nil {
			continue
		}
		for _, b := range p.set.Bodies() {
			vs.bodies.release(b)
		}
		vs.refusals.forget(p)
		delete(vs.parts, id)
		delete(vs.unused, id)
	}
}

// Want adds a connection's wishes and returns those that are new to the view. A list that several
// connections have is gone through once if it is one slice; names must not be written to until they
// are dropped.
func (v *View) Want(wildcard bool, names []string) (all bool, fresh []string) {
	if wildcard {
		v.wildcard++
		all = v.wildcard == 1
	}
	if len(names) == 0 {
		return all, nil
	}
	id := list{&names[0], len(names)}
	w := v.lists[id]
	if w == nil {
		w = &wish{names: names}
		v.lists[id] = w
		for _, n := range names {
			if v.wants[n]++; v.wants[n] == 1 {
				fresh = append(fresh, n)
			}
		}
	}
	w.users++
	return all, fresh
}

// Drop takes a connection's wishes back, the same slice as it wanted, and returns those that nobody
// has any more.
func (v *View) Drop(wildcard bool, names []string) (all bool, gone []string) {
	if wildcard {
		v.wildcard--
		all = v.wildcard == 0
	}
	if len(names) == 0 {
		return all, nil
	}
	id := list{&names[0], len(names)}
	w := v.lists[id]
	if w.users--; w.users > 0 {
		return all, nil
	}
	delete(v.lists, id)
	for _, n := range w.names {
		if v.wants[n]--; v.wants[n] == 0 {
			delete(v.wants, n)
			gone = append(gone, n)
		}
	}
	return all, gone
}

// Wishes returns what is wanted of the view.
func (v *View) Wishes() (wildcard bool, names []string) {
	return v.wildcard > 0, slices.Sorted(maps.Keys(v.wants))
}

// Unwant removes entries that nobody wants any more: they would go stale.
func (vs *Views) Unwant(v *View, wildcard bool, names []string) {
	switch {
	case wildcard:
		v.complete = false
		names = nil
		for _, b := range v.own.Bodies() {
			if v.wants[b.name] == 0 {
				names = append(names, b.name)
			}
		}
	case v.wildcard > 0:
		return
	}
	next, _ := vs.edit(v, v.own, v.Type, nil, names)
	v.own = next
	vs.dirty[v] = true
}
