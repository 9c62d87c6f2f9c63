package control

import (
	"context"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/guard"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Declare adds a plugin that Serve may then be given sessions of.
func (c *Control) Declare(e state.Expected, rules state.Rules) error {
	return c.do(func() error { return c.mid.Plugins.Orders.Add(e, rules) })
}

// Withdraw takes a plugin away, whose session must have ended: what rows it still has go, in a
// revision of their own, and others serve the types that it served. Unless it is forced, proxies
// that would lose much by that keep what they have.
func (c *Control) Withdraw(name string, rules state.Rules, forced bool) error {
	return c.do(func() error {
		if err := c.mid.Plugins.Orders.Withdraw(name, rules, forced); err != nil {
			return err
		}
		c.IsAwake(name)
		return nil
	})
}

// Reorder gives plugins their places: of two rows with one key that of the earlier plugin is
// served.
func (c *Control) Reorder(order map[string]int, rules state.Rules) {
	_ = c.do(func() error { c.mid.Plugins.Orders.Reorder(order, rules); return nil })
}

// Redeclare changes what is known of a plugin that does not run.
func (c *Control) Redeclare(e state.Expected, rules state.Rules) error {
	return c.do(func() error { return c.mid.Plugins.Orders.Redeclare(e, rules) })
}

// Removal finds out what would go with a plugin by rules that leave it out, and has decide judge
// that; why is what speaks against it. Rows go in a revision of their own, of which proxies see
// nothing before decide has agreed; if it doesn't, they are put back. Once the plugin's session has
// ended Withdraw is to follow.
func (c *Control) Removal(ctx context.Context, name string, rules state.Rules, decide func(d *guard.Difference, why []string) error) error {
	c.mu.Lock()
	k, d, err := c.mid.Plugins.Removals.Goes(name)
	if err != nil {
		c.mu.Unlock()
		return err
	}
	if k.Kind().Authenticates() {
		c.mu.Unlock()
		return decide(d, c.UnknownWithout(ctx, k))
	}
	if why, known := c.mid.Plugins.Removals.SpeaksAgainst(k, d, rules); known {
		defer c.mu.Unlock()
		return decide(d, why)
	}
	p := c.mid.Plugins.Removals.Begin(k, d, decide)
	c.schedule()
	c.mu.Unlock()
	return c.await(ctx, p.Done, func() { c.mid.Plugins.Removals.Stays(p, context.Cause(ctx)) })
}

// ApplyHold lets through what is held of a plugin.
func (c *Control) ApplyHold(plugin string) error {
	return c.do(func() error { return c.mid.Plugins.Orders.ApplyHold(plugin) })
}

// DropHold forgets what is held of a plugin, and starts it anew: what it says then is judged anew.
func (c *Control) DropHold(plugin string) error {
	return c.do(func() error { return c.mid.Plugins.Orders.DropHold(plugin) })
}

// LetGo lets go of so many bytes of what was left, or a little more, the oldest first, and for a
// while of what nobody uses without waiting for those who may be back soon: memory is short. It
// reports whether there was anything left.
func (c *Control) LetGo(bytes uint64) (any bool) {
	_ = c.do(func() error { any = c.mid.Serving.Placer.LetGo(bytes); return nil })
	return any
}

// Gathered is closed when all that was declared at first is in, and the first revision waits for
// Go.
func (c *Control) Gathered() <-chan struct{} { return c.mid.State.Instances.Gathered }

// Go lets the first revision be made once what was declared meanwhile is in, too.
func (c *Control) Go() {
	_ = c.do(func() error { c.mid.State.Instances.Go(); return nil })
}

// Waive lets the first revision be made without a plugin, and reports whether it would have waited
// for it.
func (c *Control) Waive(name string) (waives bool) {
	_ = c.do(func() error { waives = c.mid.Plugins.Orders.Waive(name); return nil })
	return waives
}

// Moved receives after rows of the tables that Following was called with last have changed.
func (c *Control) Moved() <-chan struct{} { return c.mid.State.Instances.Moved }

// Following returns the rows of tables as proxies are served by them, and has Moved told of changes
// from now on. ok is false while a revision is in the making: Moved is told when it is served.
func (c *Control) Following(tables []string) (rows map[string][]*pb.Row, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mid.Plugins.Removals.Following(tables)
}

// Coming returns the rows of tables as the first revision will have them.
func (c *Control) Coming(tables []string) map[string][]*pb.Row {
	return operations.Locked(&c.mu, func() map[string][]*pb.Row { return c.mid.State.Coming(tables) })
}
