package control

import (
	"github.com/coxswain-mesh/coxswain/core/state"
)

// Declare adds a plugin that Serve may then be given sessions of.
func (c *Control) Declare(e state.Expected, rules state.Rules) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plugins.Orders.Add(e, rules)
}

// Withdraw takes a plugin away, whose session must have ended: what rows it still has go, in a revision of their own, and others serve the types that
// it served. Unless it is forced, proxies that would lose much by that keep what they have.
func (c *Control) Withdraw(name string, rules state.Rules, forced bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.plugins.Orders.Withdraw(name, rules, forced); err != nil {
		return err
	}
	c.IsAwake(name)
	c.schedule(c.state.Clock.Now())
	return nil
}

// Reorder gives plugins their places: of two rows with one key that of the earlier plugin is served.
func (c *Control) Reorder(order map[string]int, rules state.Rules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plugins.Orders.Reorder(order, rules)
	c.schedule(c.state.Clock.Now())
}

// Redeclare changes what is known of a plugin that does not run.
func (c *Control) Redeclare(e state.Expected, rules state.Rules) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.plugins.Orders.Redeclare(e, rules); err != nil {
		return err
	}
	c.schedule(c.state.Clock.Now())
	return nil
}
