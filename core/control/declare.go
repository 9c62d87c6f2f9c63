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
	return c.orders.add(e, rules)
}

// add declares a plugin.
func (o *orders) add(e Expected, rules Rules) error {
	if o.roster.known[e.Name] != nil {
		return fmt.Errorf("plugin %s is declared already", e.Name)
	}
	o.members.declare(newKnown(e, newShard(e), o.clock.Now()))
	o.roster.rules = rules
	return nil
}

// Withdraw takes a plugin away, whose session must have ended: what rows it still has go, in a revision of their own, and others serve the types that
// it served. Unless it is forced, proxies that would lose much by that keep what they have.
func (c *Control) Withdraw(name string, rules Rules, forced bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.orders.withdraw(name, rules, forced); err != nil {
		return err
	}
	c.questions.isAwake(name)
	c.schedule(c.clock.Now())
	return nil
}

// withdraw takes a plugin out.
func (o *orders) withdraw(name string, rules Rules, forced bool) error {
	if p := o.departure.parting; p != nil && p.known.Name() == name && p.judged {
		o.departure.parting = nil
		delete(o.roster.rivals, p.known)
	}
	k := o.roster.known[name]
	switch {
	case k == nil:
		return fmt.Errorf("plugin %s is not declared", name)
	case o.roster.session(name) != nil || o.roster.tried(name):
		return fmt.Errorf("plugin %s still runs", name)
	}
	now := o.clock.Now()
	delete(o.roster.known, name)
	delete(o.course.forced, name)
	o.roster.rules = rules
	if o.course.flight != nil {
		o.course.flight.Leave(name)
	}
	for _, conn := range o.conns.sorted() {
		o.streams.leaveGenerator(conn, name)
	}
	if k.Kind() == pb.KindPatch {
		o.screen.spoilAll()
	}
	o.env.Drop(k.shard)
	o.losses.holds.Drop(name)
	if forced || publishes(k) { // it was judged before
		if o.losses.holds.Approve(); publishes(k) {
			o.losses.holds.ApproveNext(false)
		}
	}
	o.env.Replace(k.shard, nil)
	if !publishes(k) && o.course.flight == nil {
		o.screen.settle()
	}
	o.intake.touched(name, now)
	if o.pipeline.advance(now); o.course.flight == nil {
		o.pipeline.begin("swap", o.env.Of(k.shard), false, now)
	}
	o.pipeline.rest()
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
	c.orders.reorder(order, rules)
	c.schedule(c.clock.Now())
}

func (o *orders) reorder(order map[string]int, rules Rules) {
	o.roster.rules = rules
	shards := map[*environment.Shard]int{}
	for name, k := range o.roster.known {
		if at, ok := order[name]; ok {
			k.Expected.Order = at
			shards[k.shard] = at
			for rival := range o.roster.rivals {
				if rival.Name() == name {
					rival.Expected.Order = at
				}
			}
		}
	}
	changes := o.env.Reorder(shards)
	if len(changes) > 0 {
		o.intake.markDirty(changes)
		o.intake.forceReaders(changes)
	}
	for _, conn := range o.conns.sorted() {
		had := conn.generator
		o.roster.assign(conn)
		o.streams.reattach(conn, had, "")
	}
	o.screen.spoilAll()
	o.screen.settle()
}

// forceReaders makes a revision begin for those who read what changed without a commit.
func (in *intake) forceReaders(changes environment.Changes) {
	for s := range in.roster.live() {
		if concerns(s.plugin.ready, changes) {
			in.course.forced[s.Name()] = true
		}
	}
}

// Redeclare changes what is known of a plugin that does not run.
func (c *Control) Redeclare(e Expected, rules Rules) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.orders.redeclare(e, rules); err != nil {
		return err
	}
	c.schedule(c.clock.Now())
	return nil
}

func (o *orders) redeclare(e Expected, rules Rules) error {
	k := o.roster.known[e.Name]
	if k == nil || o.roster.session(e.Name) != nil {
		return fmt.Errorf("plugin %s is not declared, or runs", e.Name)
	}
	k.Expected, o.roster.rules = e, rules
	k.absence.after = e.DropAfter
	if p := o.roster.patcher(e.Name); p != nil {
		p.Settings = k.patches(o.patches.patience)
	}
	if changes := o.env.Prioritize(k.shard, e.Priority); len(changes) > 0 {
		o.course.moved.Merge(changes)
		o.course.soon = true
	}
	return nil
}
