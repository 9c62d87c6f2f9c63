package control

import (
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/state"
)

// Holds returns what is held, by plugin.
func (c *Control) Holds() []state.Held {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.Held()
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
	return c.pages.HoldOf(plugin)
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
