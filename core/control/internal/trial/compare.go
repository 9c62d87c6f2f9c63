package trial

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// Memo is what is known of pairs of resources: whether they mean the same.
type Memo map[guard.Pair]bool

// Look decodes pairs of resources and compares them. That takes time: not to be called where others
// wait.
func Look(open []guard.Pair) Memo {
	known := make(Memo, len(open))
	for _, p := range open {
		known[p] = view.Same(p.Type, p.Old, p.Now)
	}
	return known
}

// Comparison is a difference in the making.
type Comparison struct {
	// Difference is what is known of it already, its Types aside.
	Difference *guard.Difference

	memo   Memo
	secret func(typeURL string) bool
	types  map[string]*guard.TypeDifference
	groups map[[2]any]*group
	order  []*group
	// same are resources of the new views that mean the same as one of the old, open those of which
	// that is not known yet.
	same map[*view.Body]*view.Body
	open []guard.Pair
}

// Transition is what a connection has of a type, and would have.
type Transition struct {
	Type     string
	Old, Now *view.Snapshot
	// From and To are where it has these from: connections for which both are the same count as one
	// view. Label is what that is called.
	From, To any
	Label    string
	// Wish is what it asks for.
	placement.Wish
}

// group is that of all connections for which it is the same.
type group struct {
	Transition
	proxies int
	names   map[string]bool
}

// Compare begins a comparison. What it learns goes into memo, and fields of secret types are not
// shown.
func Compare(memo Memo, secret func(typeURL string) bool) *Comparison {
	return &Comparison{
		Difference: &guard.Difference{}, memo: memo, secret: secret,
		types: map[string]*guard.TypeDifference{}, groups: map[[2]any]*group{}, same: map[*view.Body]*view.Body{},
	}
}

// Add adds a connection.
func (w *Comparison) Add(p Transition) {
	key := [2]any{p.From, p.To}
	of := w.groups[key]
	if of == nil {
		of = &group{Transition: p, names: map[string]bool{}}
		w.groups[key] = of
		w.order = append(w.order, of)
	}
	of.proxies++
	of.Wildcard = of.Wildcard || p.Wildcard
	for _, n := range p.Names {
		of.names[n] = true
	}
}

// Open compares what connections have and would have, as far as that is known, and returns the
// pairs of resources of which it isn't.
func (w *Comparison) Open() []guard.Pair {
	for _, p := range w.order {
		w.view(p)
	}
	w.order = nil
	return w.open
}

// view compares what the connections of a group have and would have.
func (w *Comparison) view(p *group) {
	t := w.types[p.Type]
	if t == nil {
		t = &guard.TypeDifference{Type: p.Type}
		w.types[p.Type] = t
	}
	t.Views++
	t.Proxies += p.proxies
	before, removed, added := 0, 0, 0
	for name := range p.wanted() {
		old, now := p.Old.Get(name), p.Now.Get(name)
		was, is := old != nil && old.Exists(), now != nil && now.Exists()
		if was {
			before++
			t.Before++
		}
		if is {
			t.After++
		}
		switch {
		case was && !is:
			removed++
			t.Went(name)
		case !was && is:
			added++
			t.Came(name)
		case was && is && old.Version() != now.Version():
			w.pair(guard.Pair{Type: p.Type, Old: old, Now: now}, t)
		}
	}
	t.Loses(removed-added, before)
	if before > 0 && removed == before && p.Now.Empty() {
		w.Difference.Emptied = append(w.Difference.Emptied, fmt.Sprintf("%d proxies would have nothing of type %s (view %s)", p.proxies, p.Type, p.Label))
	}
}

// wanted returns the names that the connections can see.
func (p *group) wanted() map[string]bool {
	if !p.Wildcard {
		return p.names
	}
	all := maps.Clone(p.names)
	for _, s := range []*view.Snapshot{p.Old, p.Now} {
		for _, b := range s.Known() {
			all[b.Name()] = true
		}
	}
	return all
}

// pair notes two resources that differ in bytes.
func (w *Comparison) pair(p guard.Pair, t *guard.TypeDifference) {
	same, known := w.memo[p]
	if !known {
		w.open = append(w.open, p)
		return
	}
	w.judge(p, same, t)
}

func (w *Comparison) judge(p guard.Pair, same bool, t *guard.TypeDifference) {
	if same {
		t.Rewritten++
		w.same[p.Now] = p.Old
		return
	}
	t.Differs(p, w.secret(p.Type))
}

// Decide looks at what Open returned, and returns the difference, and of the resources of the new
// plugin those that mean the same as one of the old.
func (w *Comparison) Decide() (*guard.Difference, map[*view.Body]*view.Body) {
	known := Look(w.open)
	maps.Copy(w.memo, known)
	for _, p := range w.open {
		w.judge(p, known[p], w.types[p.Type])
	}
	w.open = nil
	w.Difference.Types = nil
	for _, t := range w.types {
		w.Difference.Types = append(w.Difference.Types, *t)
	}
	slices.SortFunc(w.Difference.Types, func(a, b guard.TypeDifference) int { return cmp.Compare(a.Type, b.Type) })
	return w.Difference, w.same
}
