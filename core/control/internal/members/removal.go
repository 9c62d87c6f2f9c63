package members

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/guard"
)

// Goes returns a plugin that may be removed, and its rows as the difference that this makes.
func (rs *Removals) Goes(name string) (*state.Plugin, *guard.Difference, error) {
	k := rs.state.Roster.Plugins[name]
	switch {
	case k == nil:
		return nil, nil, errors.New("it is not declared")
	case rs.Pending != nil:
		return nil, nil, fmt.Errorf("plugin %s is being removed: try again", rs.Pending.known.Name())
	}
	d := guard.Rows(rs.state.Env.Pending.Shard(k.Shard), nil, beside(rs.state.Env.Committed, k.Shard))
	d.Silent = false
	return k, d, nil
}

// Begin begins to find out what proxies would lose by a plugin's removal.
func (rs *Removals) Begin(k *state.Plugin, d *guard.Difference, decide func(*guard.Difference, []string) error) *removal {
	rows := slices.Concat(guard.Only(rs.state.Env, k.Shard, rs.losses.TablesRead()), d.Emptied)
	now := rs.state.Clock.Now()
	rs.Pending = &removal{known: k, since: now, until: now.Add(rs.holdMax), Done: make(chan error, 1), decide: func(why []string) error {
		if len(why) > 0 {
			why = append(why, rows...)
		}
		return decide(d, why)
	}}
	return rs.Pending
}

// Stays has a plugin come back, as nobody waits for what its removal would do.
func (rs *Removals) Stays(p *removal, why error) {
	p.decide = func([]string) error { return why }
	if !p.aside && rs.Pending == p {
		rs.Pending = nil
	}
}

// SpeaksAgainst says what speaks against a removal, where no revision is needed to know.
func (rs *Removals) SpeaksAgainst(k *state.Plugin, d *guard.Difference, rules state.Rules) (why []string, known bool) {
	byRows := func(reason string) []string {
		why := append(guard.Only(rs.state.Env, k.Shard, rs.losses.TablesRead()), d.Emptied...)
		if len(why) > 0 {
			why = append(why, reason)
		}
		return why
	}
	if h := rs.losses.Holds.Of(k.Name()); h != nil {
		return append([]string{"it took away what is held: " + strings.Join(h.Reasons, "; ")}, byRows("coxswain hold show "+k.Name()+" says more")...), true
	}
	switch {
	case k.Kind().Generates():
		why = rs.losses.GoneFrom(rs.streams.Orphaned(k))
	case k.Kind().Patches():
		why = guard.Undone(rs.streams.Unpatched(k, rules))
	case !state.Publishes(k) || !rs.state.Course.Started:
	case !rs.streams.AnySees():
		return byRows("no proxy is connected that would show whether it needs them"), true
	default:
		if absent := rs.state.Roster.Absent(); len(absent) > 0 {
			return byRows(fmt.Sprintf("plugins are away that would say what proxies need of them: %s", strings.Join(absent, ", "))), true
		}
		return nil, false
	}
	return append(why, byRows("proxies may need them")...), true
}
