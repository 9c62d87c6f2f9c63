package control

import (
	"maps"
	"slices"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// composedKey is a view as a chain of patches leaves it.
type composedKey struct {
	view  *view.View
	chain string
}

func keyOf(v *view.View, chain []*patcher) composedKey {
	key := composedKey{view: v}
	for _, p := range chain {
		key.chain += p.Name + " "
	}
	return key
}

// composition is what patches made of a view's snapshot.
type composition struct {
	raw    *view.Snapshot
	rounds []uint64
	result *view.Snapshot
	// from are the results that it stands on, those of before that stand in for failed ones included.
	from []*patched
}

// good returns what patches got right of the composition, by patch and resource. A nil composition has nothing.
func (comp *composition) good() map[[2]string]*patched {
	if comp == nil {
		return nil
	}
	all := make(map[[2]string]*patched, len(comp.from))
	for _, r := range comp.from {
		if r.failed == "" {
			all[[2]string{r.by, r.key.name}] = r
		}
	}
	return all
}

// spoil notes that what connections in these views get must be looked at again.
func (c *Control) spoil(changed []*view.View) {
	if len(changed) == 0 {
		return
	}
	c.left.weigh(changed...)
	set := make(map[*view.View]bool, len(changed))
	for _, v := range changed {
		set[v] = true
	}
	for _, conn := range c.conns {
		for url, v := range conn.views {
			if set[v] {
				c.spoilType(conn, url)
			}
		}
	}
}

func (c *Control) spoilType(conn *connection, typeURL string) {
	if c.stale[conn] == nil {
		c.stale[conn] = map[string]bool{}
	}
	c.stale[conn][typeURL] = true
	c.unasked = true
}

func (c *Control) spoilAll() {
	for _, conn := range c.conns {
		for url := range conn.views {
			c.spoilType(conn, url)
		}
	}
}

// settle makes what changed visible to all connections at once, if patches have seen all of it; otherwise they are asked, and it says false.
func (c *Control) settle() bool {
	if c.undo != 0 {
		return true // what is there now is on its way out
	}
	if len(c.stale) == 0 {
		c.guards(nil)
		return true
	}
	if !c.unasked && c.asking() {
		return false
	}
	c.unasked = false
	ready := true
	run := map[composedKey]bool{} // compositions that are not ready
	next := make(shown, len(c.stale))
	for conn, types := range c.stale {
		next[conn] = make(map[string]*view.Snapshot, len(types))
		for url := range types {
			snap, ok := c.compose(conn, url, run)
			ready = ready && ok
			next[conn][url] = snap
		}
	}
	if !ready {
		return false
	}
	if c.guards(next) {
		return true
	}
	woken := 0
	frozen := c.frozen()
	for conn, types := range next {
		if frozen[conn] {
			continue
		}
		if delete(c.stale, conn); conn.show(types) {
			woken++
		}
	}
	c.cfg.Metrics.Woken(woken, len(next))
	if len(c.patchers) > 0 {
		c.dropUnplaced()
	}
	if c.unswept {
		c.sweep()
	}
	return true
}

// asking says whether patches owe answers.
func (c *Control) asking() bool {
	for _, p := range c.patchers {
		if len(p.open) > 0 {
			return true
		}
	}
	return false
}

// show makes snapshots visible and wakes the stream if one is new.
func (conn *connection) show(types map[string]*view.Snapshot) bool {
	changed, what := false, xds.WakeDependent
	for url, snap := range types {
		if conn.visible[url] == snap {
			continue
		}
		changed = true
		if conn.c.traits(conn, url).After == "" {
			what = xds.WakeAll
		}
		if snap == nil {
			delete(conn.visible, url)
		} else {
			conn.visible[url] = snap
		}
	}
	if changed {
		conn.wake(what)
	}
	return changed
}

// chain returns the patches for a connection's type, in order. One that was never there can't say what it concerns, and is left out: the first
// revision waits for all that aren't optional.
func (c *Control) chain(conn *connection, typeURL string) []*patcher {
	return c.chainBy(conn, typeURL, c.rules, nil)
}

// chainBy is chain by other rules, with another patch in the place of the one of its name.
func (c *Control) chainBy(conn *connection, typeURL string, rules Rules, instead *patcher) []*patcher {
	if len(c.patchers) == 0 || rules.Patches == nil || c.traits(conn, typeURL).BodyType != "" {
		return nil
	}
	var chain []*patcher
	for _, name := range rules.Patches(typeURL, conn.peer.Node) {
		p := c.patchers[name]
		if instead != nil && instead.Name == name {
			p = instead
		}
		if p != nil && p.ready != nil && offers(p.ready, typeURL) {
			chain = append(chain, p)
		}
	}
	return chain
}

// compose returns what the connection's view looks like after its patches; ok is false while patches are being asked, which waiting notes.
func (c *Control) compose(conn *connection, typeURL string, waiting map[composedKey]bool) (snap *view.Snapshot, ok bool) {
	return c.composeBy(conn, typeURL, c.chain(conn, typeURL), c.composed, waiting)
}

// composeBy is compose by a chain, with the compositions that there are.
func (c *Control) composeBy(conn *connection, typeURL string, chain []*patcher, composed map[composedKey]*composition, waiting map[composedKey]bool) (snap *view.Snapshot, ok bool) {
	v := conn.views[typeURL]
	if v == nil || v.Snapshot() == nil {
		return nil, true
	}
	if len(chain) == 0 {
		return v.Snapshot(), true
	}
	key, rounds := keyOf(v, chain), make([]uint64, len(chain))
	for i, p := range chain {
		rounds[i] = p.round
	}
	have := composed[key]
	if have != nil && have.raw == v.Snapshot() && slices.Equal(have.rounds, rounds) {
		return have.result, true
	}
	if waiting[key] {
		return nil, false
	}
	comp := &composition{raw: v.Snapshot(), rounds: rounds}
	if have == nil {
		have = c.composed[key] // of before a trial
	}
	if !c.patchAll(comp, sync.OnceValue(have.good), v, chain) {
		waiting[key] = true
		return nil, false
	}
	composed[key] = comp
	c.unswept = true
	return comp.result, true
}

// patchAll runs the snapshot through the chain; good is what patches got right of the view before. All of a patch's calls are begun before any is waited for.
func (c *Control) patchAll(comp *composition, good func() map[[2]string]*patched, v *view.View, chain []*patcher) bool {
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
			r, ok := c.result(p, v, b)
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

// apply makes a result part of the bodies. A failed one is as onFailure says: left out (skip), or what the patch got right last of the resource in that
// view (good), which is returned, or else in any; a resource that it never got right is not served.
func (p *patcher) apply(r *patched, good func() map[[2]string]*patched, bodies map[string]*view.Body) (last *patched) {
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
func (r *patched) put(bodies map[string]*view.Body) {
	for _, b := range r.changed {
		bodies[b.Name()] = b
	}
	for _, n := range r.removed {
		bodies[n] = view.Absent(n)
	}
}

// dropUnplaced lets go of compositions of views that nobody is in, and that are not kept for those who were.
func (c *Control) dropUnplaced() {
	before := len(c.composed)
	maps.DeleteFunc(c.composed, func(k composedKey, _ *composition) bool { return k.view.Unused() })
	c.unswept = c.unswept || len(c.composed) < before
}
