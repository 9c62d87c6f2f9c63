package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/guard"
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
	rows := slices.Concat(guard.Only(dp.env, k.Shard, dp.losses.TablesRead()), d.Emptied)
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
		why := append(guard.Only(dp.env, k.Shard, dp.losses.TablesRead()), d.Emptied...)
		if len(why) > 0 {
			why = append(why, reason)
		}
		return why
	}
	if h := dp.losses.Holds.Of(k.Name()); h != nil {
		return append([]string{"it took away what is held: " + strings.Join(h.Reasons, "; ")}, byRows("coxswain hold show "+k.Name()+" says more")...), true
	}
	switch {
	case k.Kind() == pb.KindGenerator:
		why = dp.losses.GoneFrom(dp.streams.Orphaned(k))
	case k.Kind() == pb.KindPatch:
		why = guard.Undone(dp.streams.Unpatched(k, rules))
	case !state.Publishes(k) || !dp.course.Started:
	case !dp.streams.AnySees():
		return byRows("no proxy is connected that would show whether it needs them"), true
	default:
		if absent := dp.roster.Absent(); len(absent) > 0 {
			return byRows(fmt.Sprintf("plugins are away that would say what proxies need of them: %s", strings.Join(absent, ", "))), true
		}
		return nil, false
	}
	return append(why, byRows("proxies may need them")...), true
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
