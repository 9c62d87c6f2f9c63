package status

import (
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
)

// Held returns what is held, by plugin.
func (pg *Pages) Held() []state.Held {
	var all []state.Held
	for _, name := range pg.losses.Holds.Plugins() {
		all = append(all, pg.losses.Held(name))
	}
	return all
}

// HoldOf returns what is held of a plugin, with the difference of its rows.
func (pg *Pages) HoldOf(plugin string) (*state.Held, error) {
	if pg.losses.Holds.Of(plugin) == nil {
		return nil, serving.ErrNotHeld(plugin)
	}
	before, after := environment.Tables{}, environment.Tables{}
	if k := pg.state.Roster.Plugins[plugin]; k != nil {
		for u := range pg.state.Env.Held.Of(k.Shard) {
			if u.Before != nil {
				before.Put(u.Table, u.Before)
			}
			if u.Now != nil {
				now := *u.Now
				now.Key = u.Key
				after.Put(u.Table, &now)
			}
		}
	}
	difference := guard.Rows(before, after, func(string, string) bool { return false })
	difference.Emptied, difference.Silent = nil, false
	held := pg.losses.Held(plugin).With(difference)
	return &held, nil
}
