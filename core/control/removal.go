package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Removal finds out what would go with a plugin by rules that leave it out, and has decide judge that; why is what speaks against it. Rows go in a
// revision of their own, of which proxies see nothing before decide has agreed; if it doesn't, they are put back. Once the plugin's session has ended
// Withdraw is to follow.
func (c *Control) Removal(ctx context.Context, name string, rules Rules, decide func(d *guard.Difference, why []string) error) error {
	c.mu.Lock()
	k := c.known[name]
	switch {
	case k == nil:
		c.mu.Unlock()
		return errors.New("it is not declared")
	case c.parting != nil:
		c.mu.Unlock()
		return fmt.Errorf("plugin %s is being removed: try again", c.parting.known.Name)
	}
	d := guard.Rows(c.env.Shard(k.shard), nil, c.beside(k.shard))
	d.Silent = false
	if k.Kind == pb.KindAuthenticator {
		c.mu.Unlock()
		return decide(d, c.unknownWithout(ctx, k))
	}
	if why, known := c.speaksAgainst(k, d, rules); known {
		defer c.mu.Unlock()
		return decide(d, why)
	}
	rows := slices.Concat(c.lostWith(k), d.Emptied)
	now := time.Now()
	p := &parting{known: k, since: now, until: now.Add(c.cfg.HoldMax), done: make(chan error, 1), decide: func(why []string) error {
		if len(why) > 0 {
			why = append(why, rows...)
		}
		return decide(d, why)
	}}
	c.parting = p
	c.schedule(now)
	c.mu.Unlock()
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case err := <-p.done:
		return err
	default:
	}
	p.decide = func([]string) error { return context.Cause(ctx) }
	if !p.aside && c.parting == p {
		c.parting = nil
	}
	return context.Cause(ctx)
}

// speaksAgainst says what speaks against a removal, where no revision is needed to know.
func (c *Control) speaksAgainst(k *known, d *guard.Difference, rules Rules) (why []string, known bool) {
	byRows := func(reason string) []string {
		why := append(c.lostWith(k), d.Emptied...)
		if len(why) > 0 {
			why = append(why, reason)
		}
		return why
	}
	if h := c.holds[k.Name]; h != nil {
		return append([]string{"it took away what is held: " + strings.Join(h.reasons, "; ")}, byRows("coxswain hold show "+k.Name+" says more")...), true
	}
	switch {
	case k.Kind == pb.KindGenerator:
		why = c.goneFrom(c.orphaned(k))
	case k.Kind == pb.KindPatch:
		why = c.undone(c.unpatched(k, rules))
	case !publishes(k) || !c.started:
	case !c.anySees():
		return byRows("no proxy is connected that would show whether it needs them"), true
	default:
		if absent := c.absent(); len(absent) > 0 {
			return byRows(fmt.Sprintf("plugins are away that would say what proxies need of them: %s", strings.Join(absent, ", "))), true
		}
		return nil, false
	}
	return append(why, byRows("proxies may need them")...), true
}

// anySees reports whether any connection has anything.
func (c *Control) anySees() bool {
	for _, conn := range c.conns {
		if len(conn.visible) > 0 {
			return true
		}
	}
	return false
}

// goneFrom says what connections would lose that are shown this next.
func (c *Control) goneFrom(next shown) []string {
	frozen := c.frozen()
	next = maps.Clone(next)
	maps.DeleteFunc(next, func(conn *connection, _ map[string]*view.Snapshot) bool { return frozen[conn] })
	return told(c.losses(next))
}

// absent names the plugins that make something of rows and have no session.
func (c *Control) absent() (names []string) {
	for _, k := range c.sortedKnown() {
		if k.ready != nil && (k.Kind == pb.KindGenerator || k.ready.Derives) && !k.asleep && c.sessions[k.Name] == nil {
			names = append(names, k.Name)
		}
	}
	return names
}

// lostWith says what rows that somebody reads would go with a plugin, as no other has them.
func (c *Control) lostWith(k *known) []string {
	read := c.tablesRead()
	var parts []string
	rows := c.env.Shard(k.shard)
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		if !read[table] {
			continue
		}
		beside := map[string]bool{}
		for key := range c.env.Beside(k.shard, table) {
			beside[key] = true
		}
		n := 0
		for key := range rows[table] {
			n += b2i(!beside[key])
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, guard.Plural(table[strings.LastIndexByte(table, '/')+1:], n)))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{strings.Join(parts, ", ") + " would go with it, which no other plugin has"}
}

// tablesRead are the tables that somebody reads.
func (c *Control) tablesRead() map[string]bool {
	read := map[string]bool{}
	for _, k := range c.known {
		if k.ready != nil {
			for _, r := range k.ready.Reads {
				read[r.Table] = true
			}
		}
	}
	return read
}

// orphaned is what proxies would be shown of the types that nobody would make for them without a generator: nothing.
func (c *Control) orphaned(k *known) shown {
	next := shown{}
	gone := &known{Expected: Expected{Name: k.Name}} // which offers nothing
	for _, conn := range c.sortedConns() {
		without := c.assignment(conn, c.rules, gone)
		for _, url := range conn.servedBy(k.Name) {
			if without[url] == "" {
				next.put(conn, url, nil)
			}
		}
	}
	return next
}

func (n shown) put(conn *connection, url string, snap *view.Snapshot) {
	if n[conn] == nil {
		n[conn] = map[string]*view.Snapshot{}
	}
	n[conn][url] = snap
}

// unpatched is what proxies would be shown without a patch, as far as the others have said already what they make of it.
func (c *Control) unpatched(k *known, rules Rules) shown {
	next := shown{}
	made := map[patch.Key]*view.Snapshot{}
	for _, conn := range c.sortedConns() {
		for url, v := range conn.views {
			served := c.chain(conn, url)
			if v.Snapshot() == nil || !slices.ContainsFunc(served, func(p *patch.Patcher) bool { return p.Name == k.Name }) {
				continue
			}
			chain := c.chainBy(conn, url, rules, nil)
			key := patch.KeyOf(v, chain)
			if made[key] == nil {
				made[key] = c.made.SoFar(v, chain, served)
			}
			next.put(conn, url, made[key])
		}
	}
	return next
}

// undone says which resources would be others for connections that are shown this next: be it a header or a filter that protects, it is what a patch is for.
func (c *Control) undone(next shown) (why []string) {
	type change struct {
		names   map[string]bool
		proxies int
	}
	changes := map[string]*change{}
	found := map[[2]*view.Snapshot][]string{}
	for conn, types := range next {
		for url, now := range types {
			old := conn.visible[url]
			pair := [2]*view.Snapshot{old, now}
			names, known := found[pair]
			if !known {
				names = differing(old, now)
				found[pair] = names
			}
			if len(names) == 0 {
				continue
			}
			if changes[url] == nil {
				changes[url] = &change{names: map[string]bool{}}
			}
			changes[url].proxies++
			for _, name := range names {
				changes[url].names[name] = true
			}
		}
	}
	for _, url := range slices.Sorted(maps.Keys(changes)) {
		names := slices.Sorted(maps.Keys(changes[url].names))
		what := fmt.Sprintf("%d %s would go from %s", len(names), guard.Plural(guard.ShortType(url), len(names)), guard.Proxies(changes[url].proxies))
		why = append(why, "what it makes of "+what+": "+guard.Some(names))
	}
	return why
}

// differing are the names of resources that two snapshots have otherwise.
func differing(old, now *view.Snapshot) (names []string) {
	if old == nil || old == now {
		return nil
	}
	for name := range view.Between(old, now) {
		if !view.Equal(old.Get(name), now.Get(name)) {
			names = append(names, name)
		}
	}
	return names
}

// unknownWithout says which callers of live connections no other authenticator would know.
func (c *Control) unknownWithout(ctx context.Context, k *known) (why []string) {
	others := slices.DeleteFunc(c.authenticators(), func(o caller.Authenticator) bool { return o.Name == k.Name })
	for _, conn := range c.withCredentials() {
		knows := func(a caller.Authenticator) bool {
			return c.interview(ctx, a, c.servedSession(a.Name), *conn.shown).Word == caller.Accepted
		}
		if len(why) < guard.Examples && knows(k.authenticator()) && !slices.ContainsFunc(others, knows) {
			why = append(why, fmt.Sprintf("the caller of %s would be unknown", conn.peer.Node.GetId()))
		}
	}
	return why
}
