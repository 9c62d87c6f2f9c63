package control

import (
	"iter"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// takePatcher lets a candidate's patcher make of all views what it would. What fails is as the served one left it.
func (t *Trial) takePatcher(p *patcher) {
	p.said = p.identity()
	if served := t.c.patchers[p.Name]; served != nil {
		p.good = maps.Clone(served.good)
	}
	t.patcher, t.composed = p, map[composedKey]*composition{}
}

// allPatchers yields those that are served and those that are tried.
func (c *Control) allPatchers() iter.Seq[*patcher] {
	return func(yield func(*patcher) bool) {
		for _, p := range c.patchers {
			if !yield(p) {
				return
			}
		}
		for _, t := range c.trials {
			if t.patcher != nil && t.session != nil && !yield(t.patcher) {
				return
			}
		}
	}
}

// hasComposed says whether the trial's patcher, if it is one, has seen all that proxies have; what it has not, it is asked.
func (t *Trial) hasComposed() bool {
	if t.patcher == nil {
		return true
	}
	if len(t.patcher.open) > 0 || t.c.asking() {
		return false
	}
	waiting := map[composedKey]bool{}
	t.compose(waiting, func(*connection, string, *view.Snapshot) {})
	return len(waiting) == 0
}

// compose calls with what each connection would have of each type that the patch concerns, before or after; what is not known yet is noted.
func (t *Trial) compose(waiting map[composedKey]bool, with func(*connection, string, *view.Snapshot)) {
	c := t.c
	for _, conn := range c.sortedConns() {
		for url := range conn.views {
			chain := c.chainBy(conn, url, t.rules, t.patcher)
			now := c.chain(conn, url)
			if !slices.Contains(chain, t.patcher) && !slices.ContainsFunc(now, func(p *patcher) bool { return p.Name == t.patcher.Name }) {
				continue
			}
			if snap, ok := c.composeBy(conn, url, chain, t.composed, waiting); ok {
				with(conn, url, snap)
			}
		}
	}
}

// patches gathers what proxies have and would have with the trial's patch.
func (t *Trial) patches() []*passage {
	type key struct{ old, now *view.Snapshot }
	found := map[key]*passage{}
	var all []*passage
	t.compose(map[composedKey]bool{}, func(conn *connection, url string, snap *view.Snapshot) {
		k := key{conn.visible[url], snap}
		if found[k] == nil {
			found[k] = &passage{typeURL: url, old: k.old, now: k.now, names: map[string]bool{}, label: conn.views[url].Label}
			all = append(all, found[k])
		}
		found[k].join(conn.subs[url])
	})
	return all
}

// adopt puts bodies in the place of results that mean the same.
func (p *patcher) adopt(same map[*view.Body]*view.Body) {
	for _, r := range p.results {
		for i, b := range r.changed {
			if old := same[b]; old != nil {
				r.changed[i] = old
			}
		}
	}
}

// identity is the plugin and version that results are of.
func (p *patcher) identity() string { return p.ready.Plugin + " " + p.ready.PluginVersion }

// failures counts the results that are failures, and says why one is.
func (p *patcher) failures() (failed, of int, reason string) {
	for _, r := range p.results {
		if of++; r.failed != "" {
			failed, reason = failed+1, r.failed
		}
	}
	return failed, of, reason
}
