package control

import (
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/serving"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
)

// Holds returns what is held, by plugin.
func (c *Control) Holds() []state.Held {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.held()
}

func (pg *pages) held() []state.Held {
	var all []state.Held
	for _, name := range pg.losses.Holds.Plugins() {
		all = append(all, pg.losses.Held(name))
	}
	return all
}

// Holding says in a line each what is held.
func (c *Control) Holding() []string {
	var lines []string
	for _, h := range c.Holds() {
		lines = append(lines, fmt.Sprintf("held: plugin %s: %s; coxswain hold show %s", h.Plugin, strings.Join(h.Reasons, "; "), h.Plugin))
	}
	return lines
}

// Hold returns what is held of a plugin, with the difference of its rows.
func (c *Control) Hold(plugin string) (*state.Held, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.holdOf(plugin)
}

func (pg *pages) holdOf(plugin string) (*state.Held, error) {
	if pg.losses.Holds.Of(plugin) == nil {
		return nil, serving.ErrNotHeld(plugin)
	}
	out := pg.losses.Held(plugin)
	before, after := environment.Tables{}, environment.Tables{}
	if k := pg.roster.Plugins[plugin]; k != nil {
		for u := range pg.env.Held(k.Shard) {
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
	out.Difference = guard.Rows(before, after, func(string, string) bool { return false })
	out.Difference.Emptied, out.Difference.Silent = nil, false
	return &out, nil
}

// ApplyHold lets through what is held of a plugin.
func (c *Control) ApplyHold(plugin string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.plugins.Orders.ApplyHold(plugin); err != nil {
		return err
	}
	c.schedule(c.state.Clock.Now())
	return nil
}

// DropHold forgets what is held of a plugin, and starts it anew: what it says then is judged anew.
func (c *Control) DropHold(plugin string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.plugins.Orders.DropHold(plugin); err != nil {
		return err
	}
	c.schedule(c.state.Clock.Now())
	return nil
}
