package control

import (
	"fmt"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Declare adds a plugin that Serve may then be given sessions of.
func (c *Control) Declare(e Expected, rules Rules) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(e, rules)
}

// add declares a plugin.
func (c *Control) add(e Expected, rules Rules) error {
	if c.roster.known[e.Name] != nil {
		return fmt.Errorf("plugin %s is declared already", e.Name)
	}
	c.declare(newKnown(e, newShard(e), c.clock.Now()))
	c.roster.rules = rules
	return nil
}

// Withdraw takes a plugin away, whose session must have ended: what rows it still has go, in a revision of their own, and others serve the types that
// it served. Unless it is forced, proxies that would lose much by that keep what they have.
func (c *Control) Withdraw(name string, rules Rules, forced bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.withdraw(name, rules, forced); err != nil {
		return err
	}
	c.questions.isAwake(name)
	c.schedule(c.clock.Now())
	return nil
}

// withdraw takes a plugin out.
func (c *Control) withdraw(name string, rules Rules, forced bool) error {
	if p := c.parting; p != nil && p.known.Name == name && p.judged {
		c.parting = nil
		delete(c.roster.rivals, p.known)
	}
	k := c.roster.known[name]
	switch {
	case k == nil:
		return fmt.Errorf("plugin %s is not declared", name)
	case c.roster.session(name) != nil || c.roster.tried(name):
		return fmt.Errorf("plugin %s still runs", name)
	}
	now := c.clock.Now()
	delete(c.roster.known, name)
	delete(c.course.forced, name)
	c.roster.rules = rules
	if c.course.flight != nil {
		c.course.flight.Leave(name)
	}
	for _, conn := range c.conns.sorted() {
		c.streams.leaveGenerator(conn, name)
	}
	if k.Kind == pb.KindPatch {
		c.screen.spoilAll()
	}
	c.env.Drop(k.shard)
	c.losses.holds.Drop(name)
	if forced || publishes(k) { // it was judged before
		if c.losses.holds.Approve(); publishes(k) {
			c.losses.holds.ApproveNext(false)
		}
	}
	c.env.Replace(k.shard, nil)
	if !publishes(k) && c.course.flight == nil {
		c.screen.settle()
	}
	c.intake.touched(name, now)
	if c.pipeline.advance(now); c.course.flight == nil {
		c.pipeline.begin("swap", c.env.Of(k.shard), false, now)
	}
	c.pipeline.rest()
	return nil
}

func publishes(k *known) bool { return k.ready != nil && publishesRows(k.ready) }

// leaveGenerator gives the types that a generator served to others; those that nobody serves go.
func (st *streams) leaveGenerator(conn *connection, name string) {
	had := conn.generator
	lost := conn.servedBy(name)
	st.roster.assign(conn)
	for _, url := range lost {
		if at := conn.places.At(url); conn.generator[url] == "" && at.View != nil {
			st.placer.move(at.Session, conn, url, nil)
		}
	}
	st.reattach(conn, had, name)
}

// Reorder gives plugins their places: of two rows with one key that of the earlier plugin is served.
func (c *Control) Reorder(order map[string]int, rules Rules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reorder(order, rules)
	c.schedule(c.clock.Now())
}

func (c *Control) reorder(order map[string]int, rules Rules) {
	c.roster.rules = rules
	shards := map[*environment.Shard]int{}
	for name, k := range c.roster.known {
		if at, ok := order[name]; ok {
			k.Order = at
			shards[k.shard] = at
			for rival := range c.roster.rivals {
				if rival.Name == name {
					rival.Order = at
				}
			}
		}
	}
	changes := c.env.Reorder(shards)
	if len(changes) > 0 {
		c.intake.markDirty(changes)
		c.intake.forceReaders(changes)
	}
	for _, conn := range c.conns.sorted() {
		had := conn.generator
		c.roster.assign(conn)
		c.streams.reattach(conn, had, "")
	}
	c.screen.spoilAll()
	c.screen.settle()
}

// forceReaders makes a revision begin for those who read what changed without a commit.
func (in *intake) forceReaders(changes environment.Changes) {
	for s := range in.roster.live() {
		if concerns(s.ready, changes) {
			in.course.forced[s.Name] = true
		}
	}
}

// Redeclare changes what is known of a plugin that does not run.
func (c *Control) Redeclare(e Expected, rules Rules) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.redeclare(e, rules); err != nil {
		return err
	}
	c.schedule(c.clock.Now())
	return nil
}

func (c *Control) redeclare(e Expected, rules Rules) error {
	k := c.roster.known[e.Name]
	if k == nil || c.roster.session(e.Name) != nil {
		return fmt.Errorf("plugin %s is not declared, or runs", e.Name)
	}
	k.Expected, c.roster.rules = e, rules
	k.absence.after = e.DropAfter
	if p := c.roster.patcher(e.Name); p != nil {
		p.Settings = k.patches(c.patches.patience)
	}
	if changes := c.env.Prioritize(k.shard, e.Priority); len(changes) > 0 {
		c.course.moved.Merge(changes)
		c.course.soon = true
	}
	return nil
}
