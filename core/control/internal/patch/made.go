package patch

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// Made is what patches made of views.
type Made struct {
	of map[Key]*composition
	// unswept: compositions have come or gone since results were looked through that none stands
	// on.
	unswept bool
}

// Key is a view as a chain of patches leaves it.
type Key struct {
	View  *view.View
	Chain string // by Names
}

// KeyOf returns the key of a view after a chain of patches.
func KeyOf(v *view.View, chain []*Patcher) Key { return Key{v, Names(chain)} }

// Names of a chain's patches, a space after each; empty: there is none.
func Names(chain []*Patcher) (names string) {
	for _, p := range chain {
		names += p.Name + " "
	}
	return names
}

// Waiting notes the views of which it is not known yet what patches make of them.
type Waiting map[Key]bool

// composition is what patches made of a view's snapshot.
type composition struct {
	raw    *view.Snapshot
	rounds []uint64
	result *view.Snapshot
	// from are the results that it stands on, those of before that stand in for failed ones
	// included.
	from []*Result
}

// NewMade returns one of which nothing is known.
func NewMade() *Made { return &Made{of: map[Key]*composition{}} }

// good returns what patches got right of the composition, by patch and resource. A nil composition
// has nothing.
func (comp *composition) good() map[[2]string]*Result {
	if comp == nil {
		return nil
	}
	all := make(map[[2]string]*Result, len(comp.from))
	for _, r := range comp.from {
		if r.failed == "" {
			all[[2]string{r.by, r.key.name}] = r
		}
	}
	return all
}

// Of returns what a view looks like after a chain of patches; ok is false while they are being
// asked, which waiting notes. before is what is served while other patches are tried: what they
// fail at is as it was there.
func (m *Made) Of(v *view.View, chain []*Patcher, before *Made, waiting Waiting, now time.Time) (snap *view.Snapshot, ok bool) {
	k, rounds := KeyOf(v, chain), make([]uint64, len(chain))
	for i, p := range chain {
		rounds[i] = p.round
	}
	have := m.of[k]
	if have != nil && have.raw == v.Snapshot() && slices.Equal(have.rounds, rounds) {
		return have.result, true
	}
	if waiting[k] {
		return nil, false
	}
	comp := &composition{raw: v.Snapshot(), rounds: rounds}
	if have == nil && before != nil {
		have = before.of[k]
	}
	if !comp.patch(sync.OnceValue(have.good), v, chain, now) {
		waiting[k] = true
		return nil, false
	}
	m.of[k] = comp
	m.unswept = true
	return comp.result, true
}

// patch runs the snapshot through the chain; good is what patches got right of the view before. All
// of a patch's calls are begun before any is waited for.
func (comp *composition) patch(good func() map[[2]string]*Result, v *view.View, chain []*Patcher, now time.Time) bool {
	bodies := map[string]*view.Body{}
	for _, b := range comp.raw.Known() {
		bodies[b.Name()] = b
	}
	for _, p := range chain {
		ready := true
		next := maps.Clone(bodies)
		for _, name := range slices.Sorted(maps.Keys(bodies)) {
			b := bodies[name]
			if !b.Exists() || !p.concerns(v.Type, name) {
				continue
			}
			r, ok := p.result(v, b, now)
			if !ok {
				ready = false
				continue
			}
			comp.from = append(comp.from, r)
			if last := p.apply(r, good, next); last != nil {
				comp.from = append(comp.from, last)
			}
		}
		if !ready {
			return false
		}
		bodies = next
	}
	comp.result = view.NewSnapshot(view.NewSet(slices.Collect(maps.Values(bodies))), nil, comp.raw.Complete())
	return true
}

// apply makes a result part of the bodies. A failed one is as onFailure says: left out (skip), or
// what the patch got right last of the resource in that view (good), which is returned, or else in
// any; a resource that it never got right is not served.
func (p *Patcher) apply(r *Result, good func() map[[2]string]*Result, bodies map[string]*view.Body) (last *Result) {
	switch name := r.key.name; {
	case r.failed == "":
		r.put(bodies)
		return nil
	case p.Skips:
		return nil
	default:
		if last = good()[[2]string{p.Name, name}]; last == nil {
			last = p.good[goodKey{r.key.typeURL, name, r.key.facts}]
		}
		bodies[name] = view.Absent(name)
		if last != nil {
			bodies[name] = last.input
			last.put(bodies)
		}
		return last
	}
}

// put makes what the patch said part of the bodies.
func (r *Result) put(bodies map[string]*view.Body) {
	for _, b := range r.changed {
		bodies[b.Name()] = b
	}
	for _, n := range r.removed {
		bodies[n] = view.Absent(n)
	}
}

// SoFar is a view as a chain of patches leaves it, without asking them anything; served is the
// chain by which it is served.
func (m *Made) SoFar(v *view.View, chain, served []*Patcher) *view.Snapshot {
	good := sync.OnceValue(m.of[KeyOf(v, served)].good)
	bodies := map[string]*view.Body{}
	for _, b := range v.Snapshot().Known() {
		bodies[b.Name()] = b
	}
	for _, p := range chain {
		_, facts := p.facts(v)
		for _, b := range slices.Collect(maps.Values(bodies)) {
			if r := p.results[key{v.Type, b.Name(), b.Version(), facts}]; r != nil && !r.open && b.Exists() {
				p.apply(r, good, bodies)
			}
		}
	}
	return view.NewSnapshot(view.NewSet(slices.Collect(maps.Values(bodies))), nil, v.Snapshot().Complete())
}

// Last returns what a view was like when patches were last through with it, and what it was made
// from, as the generator made it; nil: they never were. Where there are no patches both are the
// view's own.
func (m *Made) Last(k Key) (snap, raw *view.Snapshot) {
	if k.Chain == "" {
		return k.View.Snapshot(), k.View.Snapshot()
	}
	if comp := m.of[k]; comp != nil {
		return comp.result, comp.raw
	}
	return nil, nil
}

// By are the patches that a resource of a view comes from, in their order; nil: the generator made
// it so.
func (m *Made) By(k Key, name string) (patches []string) {
	comp := m.of[k]
	if comp == nil {
		return nil
	}
	for _, r := range comp.from {
		if slices.ContainsFunc(r.changed, func(b *view.Body) bool { return b.Name() == name }) && !slices.Contains(patches, r.by) {
			patches = append(patches, r.by)
		}
	}
	return patches
}

// Clear forgets all.
func (m *Made) Clear() { clear(m.of) }

// DropUnused lets go of views that nobody is in, and that are not kept for those who were.
func (m *Made) DropUnused() {
	before := len(m.of)
	maps.DeleteFunc(m.of, func(k Key, _ *composition) bool { return k.View.Unused() })
	m.unswept = m.unswept || len(m.of) < before
}

// Sweep lets go of results of patches that nothing stands on, neither here nor in what others make
// that are tried. It does nothing where nothing has changed.
func (m *Made) Sweep(patchers iter.Seq[*Patcher], tried iter.Seq[*Made]) {
	changed := m.unswept
	for t := range tried {
		changed = changed || t.unswept
	}
	if !changed {
		return
	}
	used := map[*Result]bool{}
	note := func(m *Made) {
		m.unswept = false
		for _, comp := range m.of {
			for _, r := range comp.from {
				used[r] = true
			}
		}
	}
	note(m)
	for t := range tried {
		note(t)
	}
	for p := range patchers {
		maps.DeleteFunc(p.results, func(_ key, r *Result) bool { return !r.open && !used[r] })
		maps.DeleteFunc(p.good, func(_ goodKey, r *Result) bool { return !used[r] })
	}
}
