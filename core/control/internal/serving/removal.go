package serving

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// AnySees reports whether any connection has anything.
func (st *Streams) AnySees() bool {
	for _, conn := range st.state.Connections.All {
		if len(conn.Seen) > 0 {
			return true
		}
	}
	return false
}

// Orphaned is what proxies would be shown of the types that nobody would make for them without a
// generator: nothing.
func (st *Streams) Orphaned(k *state.Plugin) state.Shown {
	next := state.Shown{}
	gone := &state.Plugin{Expected: state.Expected{Name: k.Name()}} // which offers nothing
	for _, conn := range st.state.Connections.Sorted() {
		without := st.state.Roster.Assignment(conn, st.state.Roster.Rules, gone)
		for _, url := range conn.ServedBy(k.Name()) {
			if without[url] == "" {
				next.Put(conn, url, nil)
			}
		}
	}
	return next
}

// Unpatched is what proxies would be shown without a patch, as far as the others have said already
// what they make of it.
func (st *Streams) Unpatched(k *state.Plugin, rules state.Rules) state.Shown {
	next := state.Shown{}
	made := map[patch.Key]*view.Snapshot{}
	for _, conn := range st.state.Connections.Sorted() {
		for url, at := range conn.Places.All() {
			v := at.View
			served := st.patches.Chain(conn, url)
			if v.Snapshot() == nil || !slices.ContainsFunc(served, func(p *patch.Patcher) bool { return p.Name == k.Name() }) {
				continue
			}
			chain := st.patches.ChainBy(conn, url, rules, nil)
			key := patch.KeyOf(v, chain)
			if made[key] == nil {
				made[key] = st.patches.made.SoFar(v, chain, served)
			}
			next.Put(conn, url, made[key])
		}
	}
	return next
}
