package control

import (
	"fmt"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Declare adds a plugin that Serve may then be given sessions of.
func (c *Control) Declare(e state.Expected, rules state.Rules) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plugins.Orders.add(e, rules)
}

// add declares a plugin.
func (o *orders) add(e state.Expected, rules state.Rules) error {
	if o.roster.Plugins[e.Name] != nil {
		return fmt.Errorf("plugin %s is declared already", e.Name)
	}
	o.members.declare(state.NewPlugin(e, state.NewShard(e), o.clock.Now()))
	o.roster.Rules = rules
	return nil
}

// Withdraw takes a plugin away, whose session must have ended: what rows it still has go, in a revision of their own, and others serve the types that
// it served. Unless it is forced, proxies that would lose much by that keep what they have.
func (c *Control) Withdraw(name string, rules state.Rules, forced bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.plugins.Orders.withdraw(name, rules, forced); err != nil {
		return err
	}
	c.questions.isAwake(name)
	c.schedule(c.state.Clock.Now())
	return nil
}

// withdraw takes a plugin out.
func (o *orders) withdraw(name string, rules state.Rules, forced bool) error {
	if p := o.departure.parting; p != nil && p.known.Name() == name && p.judged {
		o.departure.parting = nil
		delete(o.roster.Rivals, p.known)
	}
	k := o.roster.Plugins[name]
	switch {
	case k == nil:
		return fmt.Errorf("plugin %s is not declared", name)
	case o.roster.Session(name) != nil || o.roster.Tried(name):
		return fmt.Errorf("plugin %s still runs", name)
	}
	now := o.clock.Now()
	delete(o.roster.Plugins, name)
	delete(o.course.Forced, name)
	o.roster.Rules = rules
	if o.course.Flight != nil {
		o.course.Flight.Leave(name)
	}
	for _, conn := range o.conns.Sorted() {
		o.streams.LeaveGenerator(conn, name)
	}
	if k.Kind() == pb.KindPatch {
		o.screen.SpoilAll()
	}
	o.env.Drop(k.Shard)
	o.losses.Holds.Drop(name)
	if forced || state.Publishes(k) { // it was judged before
		if o.losses.Holds.Approve(); state.Publishes(k) {
			o.losses.Holds.ApproveNext(false)
		}
	}
	o.env.Replace(k.Shard, nil)
	if !state.Publishes(k) && o.course.Flight == nil {
		o.screen.Settle()
	}
	o.intake.Touched(name, now)
	if o.pipeline.Advance(now); o.course.Flight == nil {
		o.pipeline.Begin("swap", o.env.Of(k.Shard), false, now)
	}
	o.pipeline.Rest()
	return nil
}

// Reorder gives plugins their places: of two rows with one key that of the earlier plugin is served.
func (c *Control) Reorder(order map[string]int, rules state.Rules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plugins.Orders.reorder(order, rules)
	c.schedule(c.state.Clock.Now())
}

func (o *orders) reorder(order map[string]int, rules state.Rules) {
	o.roster.Rules = rules
	shards := map[*environment.Shard]int{}
	for name, k := range o.roster.Plugins {
		if at, ok := order[name]; ok {
			k.Expected.Order = at
			shards[k.Shard] = at
			for rival := range o.roster.Rivals {
				if rival.Name() == name {
					rival.Expected.Order = at
				}
			}
		}
	}
	changes := o.env.Reorder(shards)
	if len(changes) > 0 {
		o.intake.MarkDirty(changes)
		o.intake.ForceReaders(changes)
	}
	for _, conn := range o.conns.Sorted() {
		had := conn.Generators
		o.roster.Assign(conn)
		o.streams.Reattach(conn, had, "")
	}
	o.screen.SpoilAll()
	o.screen.Settle()
}

// Redeclare changes what is known of a plugin that does not run.
func (c *Control) Redeclare(e state.Expected, rules state.Rules) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.plugins.Orders.redeclare(e, rules); err != nil {
		return err
	}
	c.schedule(c.state.Clock.Now())
	return nil
}

func (o *orders) redeclare(e state.Expected, rules state.Rules) error {
	k := o.roster.Plugins[e.Name]
	if k == nil || o.roster.Session(e.Name) != nil {
		return fmt.Errorf("plugin %s is not declared, or runs", e.Name)
	}
	k.Expected, o.roster.Rules = e, rules
	k.Absence.After = e.DropAfter
	if p := o.roster.Patcher(e.Name); p != nil {
		p.Settings = k.PatchSettings(o.patches.Patience)
	}
	if changes := o.env.Prioritize(k.Shard, e.Priority); len(changes) > 0 {
		o.course.Moved.Merge(changes)
		o.course.Soon = true
	}
	return nil
}
