package control

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// hasComposed reports whether the trial's patch, if it is one, has seen all that proxies have; what
// it has not, it is asked.
func (t *candidate) hasComposed() bool {
	if t.known.Patcher == nil {
		return true
	}
	if t.known.Patcher.Asking() || t.ts.patches.Asking() {
		return false
	}
	waiting := patch.Waiting{}
	t.compose(waiting, func(*state.Connection, string, *view.Snapshot) {})
	return len(waiting) == 0
}

// compose calls with what each connection would have of each type that the patch concerns, before
// or after; what is not known yet is noted.
func (t *candidate) compose(waiting patch.Waiting, with func(*state.Connection, string, *view.Snapshot)) {
	ts := t.ts
	for _, conn := range ts.conns.Sorted() {
		for url := range conn.Places.All() {
			chain := ts.patches.ChainBy(conn, url, ts.roster.Rivals[t.known].Rules, t.known.Patcher)
			now := ts.patches.Chain(conn, url)
			if !slices.Contains(chain, t.known.Patcher) && !slices.ContainsFunc(now, func(p *patch.Patcher) bool { return p.Name == t.known.Patcher.Name }) {
				continue
			}
			if snap, ok := ts.patches.ComposeBy(conn, url, chain, ts.roster.Rivals[t.known].Made, waiting); ok {
				with(conn, url, snap)
			}
		}
	}
}
