package members

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Goes returns a plugin that may be removed, and its rows as the difference that this makes.
func (dp *Departure) Goes(name string) (*state.Plugin, *guard.Difference, error) {
	k := dp.state.Roster.Plugins[name]
	switch {
	case k == nil:
		return nil, nil, errors.New("it is not declared")
	case dp.Parting != nil:
		return nil, nil, fmt.Errorf("plugin %s is being removed: try again", dp.Parting.known.Name())
	}
	d := guard.Rows(dp.state.Env.Pending.Shard(k.Shard), nil, beside(dp.state.Env.Committed, k.Shard))
	d.Silent = false
	return k, d, nil
}

// Depart begins to find out what proxies would lose by a plugin's removal.
func (dp *Departure) Depart(k *state.Plugin, d *guard.Difference, decide func(*guard.Difference, []string) error) *parting {
	rows := slices.Concat(guard.Only(dp.state.Env, k.Shard, dp.losses.TablesRead()), d.Emptied)
	now := dp.state.Clock.Now()
	dp.Parting = &parting{known: k, since: now, until: now.Add(dp.holdMax), Done: make(chan error, 1), decide: func(why []string) error {
		if len(why) > 0 {
			why = append(why, rows...)
		}
		return decide(d, why)
	}}
	return dp.Parting
}

// Stays has a plugin come back, as nobody waits for what its removal would do.
func (dp *Departure) Stays(p *parting, why error) {
	p.decide = func([]string) error { return why }
	if !p.aside && dp.Parting == p {
		dp.Parting = nil
	}
}

// SpeaksAgainst says what speaks against a removal, where no revision is needed to know.
func (dp *Departure) SpeaksAgainst(k *state.Plugin, d *guard.Difference, rules state.Rules) (why []string, known bool) {
	byRows := func(reason string) []string {
		why := append(guard.Only(dp.state.Env, k.Shard, dp.losses.TablesRead()), d.Emptied...)
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
	case !state.Publishes(k) || !dp.state.Course.Started:
	case !dp.streams.AnySees():
		return byRows("no proxy is connected that would show whether it needs them"), true
	default:
		if absent := dp.state.Roster.Absent(); len(absent) > 0 {
			return byRows(fmt.Sprintf("plugins are away that would say what proxies need of them: %s", strings.Join(absent, ", "))), true
		}
		return nil, false
	}
	return append(why, byRows("proxies may need them")...), true
}
