package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Removal finds out what would go with a plugin by rules that leave it out, and has decide judge that; why is what speaks against it. Rows go in a
// revision of their own, of which proxies see nothing before decide has agreed; if it doesn't, they are put back. Once the plugin's session has ended
// Withdraw is to follow.
func (c *Control) Removal(ctx context.Context, name string, rules state.Rules, decide func(d *guard.Difference, why []string) error) error {
	c.mu.Lock()
	k, d, err := c.plugins.Departure.goes(name)
	if err != nil {
		c.mu.Unlock()
		return err
	}
	if k.Kind() == pb.KindAuthenticator {
		c.mu.Unlock()
		return decide(d, c.unknownWithout(ctx, k))
	}
	if why, known := c.plugins.Departure.speaksAgainst(k, d, rules); known {
		defer c.mu.Unlock()
		return decide(d, why)
	}
	p := c.plugins.Departure.depart(k, d, decide)
	c.schedule(c.state.Clock.Now())
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
	c.plugins.Departure.stays(p, context.Cause(ctx))
	return context.Cause(ctx)
}

// goes returns a plugin that may be removed, and its rows as the difference that this makes.
func (dp *departure) goes(name string) (*state.Plugin, *guard.Difference, error) {
	k := dp.roster.Plugins[name]
	switch {
	case k == nil:
		return nil, nil, errors.New("it is not declared")
	case dp.parting != nil:
		return nil, nil, fmt.Errorf("plugin %s is being removed: try again", dp.parting.known.Name())
	}
	d := guard.Rows(dp.env.Shard(k.Shard), nil, beside(dp.env, k.Shard))
	d.Silent = false
	return k, d, nil
}

// depart begins to find out what proxies would lose by a plugin's removal.
func (dp *departure) depart(k *state.Plugin, d *guard.Difference, decide func(*guard.Difference, []string) error) *parting {
	rows := slices.Concat(guard.Only(dp.env, k.Shard, dp.losses.tablesRead()), d.Emptied)
	now := dp.clock.Now()
	dp.parting = &parting{known: k, since: now, until: now.Add(dp.holdMax), done: make(chan error, 1), decide: func(why []string) error {
		if len(why) > 0 {
			why = append(why, rows...)
		}
		return decide(d, why)
	}}
	return dp.parting
}

// departs reports whether a plugin is being removed, and its rows are gone.
func (dp *departure) departs(name string) bool {
	p := dp.parting
	return p != nil && p.aside && p.known.Name() == name
}

// stays has a plugin come back, as nobody waits for what its removal would do.
func (dp *departure) stays(p *parting, why error) {
	p.decide = func([]string) error { return why }
	if !p.aside && dp.parting == p {
		dp.parting = nil
	}
}

// speaksAgainst says what speaks against a removal, where no revision is needed to know.
func (dp *departure) speaksAgainst(k *state.Plugin, d *guard.Difference, rules state.Rules) (why []string, known bool) {
	byRows := func(reason string) []string {
		why := append(guard.Only(dp.env, k.Shard, dp.losses.tablesRead()), d.Emptied...)
		if len(why) > 0 {
			why = append(why, reason)
		}
		return why
	}
	if h := dp.losses.holds.Of(k.Name()); h != nil {
		return append([]string{"it took away what is held: " + strings.Join(h.Reasons, "; ")}, byRows("coxswain hold show "+k.Name()+" says more")...), true
	}
	switch {
	case k.Kind() == pb.KindGenerator:
		why = dp.losses.goneFrom(dp.streams.orphaned(k))
	case k.Kind() == pb.KindPatch:
		why = guard.Undone(dp.streams.unpatched(k, rules))
	case !state.Publishes(k) || !dp.course.Started:
	case !dp.streams.anySees():
		return byRows("no proxy is connected that would show whether it needs them"), true
	default:
		if absent := dp.roster.Absent(); len(absent) > 0 {
			return byRows(fmt.Sprintf("plugins are away that would say what proxies need of them: %s", strings.Join(absent, ", "))), true
		}
		return nil, false
	}
	return append(why, byRows("proxies may need them")...), true
}

// anySees reports whether any connection has anything.
func (st *streams) anySees() bool {
	for _, conn := range st.conns.All {
		if len(conn.Seen) > 0 {
			return true
		}
	}
	return false
}

// goneFrom says what connections would lose that are shown this next.
func (l *losses) goneFrom(next state.Shown) []string {
	frozen := l.holds.Frozen()
	next = maps.Clone(next)
	maps.DeleteFunc(next, func(conn *state.Connection, _ map[string]*view.Snapshot) bool { return frozen[conn] })
	return guard.Told(guard.Losses(next))
}

// tablesRead are the tables that somebody reads, but for those that generators alone publish: what
// they ask sources for is of no use without those whom they serve; and but for those that have an
// instance of a plugin for each row (forEach): whether these may go is judged when they do.
func (l *losses) tablesRead() map[string]bool {
	read, asked := map[string]bool{}, map[string]bool{}
	for _, k := range l.roster.Plugins {
		if k.Ready == nil {
			continue
		}
		for _, r := range k.Ready.Reads {
			read[r.Table] = true
		}
		for _, table := range k.Ready.Publishes {
			by, known := asked[table]
			asked[table] = k.Kind() == pb.KindGenerator && (by || !known)
		}
	}
	maps.DeleteFunc(read, func(table string, _ bool) bool { return asked[table] || slices.Contains(l.instances.Tables, table) })
	return read
}

// orphaned is what proxies would be shown of the types that nobody would make for them without a generator: nothing.
func (st *streams) orphaned(k *state.Plugin) state.Shown {
	next := state.Shown{}
	gone := &state.Plugin{Expected: state.Expected{Name: k.Name()}} // which offers nothing
	for _, conn := range st.conns.Sorted() {
		without := st.roster.Assignment(conn, st.roster.Rules, gone)
		for _, url := range conn.ServedBy(k.Name()) {
			if without[url] == "" {
				next.Put(conn, url, nil)
			}
		}
	}
	return next
}

// unpatched is what proxies would be shown without a patch, as far as the others have said already what they make of it.
func (st *streams) unpatched(k *state.Plugin, rules state.Rules) state.Shown {
	next := state.Shown{}
	made := map[patch.Key]*view.Snapshot{}
	for _, conn := range st.conns.Sorted() {
		for url, at := range conn.Places.All() {
			v := at.View
			served := st.patches.chain(conn, url)
			if v.Snapshot() == nil || !slices.ContainsFunc(served, func(p *patch.Patcher) bool { return p.Name == k.Name() }) {
				continue
			}
			chain := st.patches.chainBy(conn, url, rules, nil)
			key := patch.KeyOf(v, chain)
			if made[key] == nil {
				made[key] = st.patches.made.SoFar(v, chain, served)
			}
			next.Put(conn, url, made[key])
		}
	}
	return next
}

// unknownWithout says which callers of live connections no other authenticator would know.
func (c *Control) unknownWithout(ctx context.Context, k *state.Plugin) (why []string) {
	c.clients.Lock()
	others := c.state.Roster.Authenticators()
	c.clients.Unlock()
	others = slices.DeleteFunc(others, func(o caller.Authenticator) bool { return o.Name == k.Name() })
	for _, conn := range c.withCredentials() {
		knows := func(a caller.Authenticator) bool {
			return c.interview(ctx, a, c.servedSession(a.Name), *conn.Credentials).Word == caller.Accepted
		}
		if len(why) < guard.Examples && knows(k.Authenticator()) && !slices.ContainsFunc(others, knows) {
			why = append(why, fmt.Sprintf("the caller of %s would be unknown", conn.Peer.Node.GetId()))
		}
	}
	return why
}
