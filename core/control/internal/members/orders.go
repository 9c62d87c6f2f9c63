package members

import (
	"errors"
	"fmt"

	"github.com/coxswain-mesh/coxswain/core/control/internal/pipeline"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
)

// Orders are what operators and plugins.yaml have done.
type Orders struct {
	state    *state.State
	losses   *serving.Losses
	streams  *serving.Streams
	screen   *serving.Screen
	patches  *serving.Patches
	intake   *pipeline.Intake
	pipeline *pipeline.Pipeline
	removals *Removals
	members  *Members
}

// Add declares a plugin.
func (o *Orders) Add(e state.Expected, rules state.Rules) error {
	if o.state.Roster.Plugins[e.Name] != nil {
		return fmt.Errorf("plugin %s is declared already", e.Name)
	}
	o.members.Declare(state.NewPlugin(e, state.NewShard(e), o.state.Clock.Now()))
	o.state.Roster.Follow(rules)
	return nil
}

// Withdraw takes a plugin out.
func (o *Orders) Withdraw(name string, rules state.Rules, forced bool) error {
	if p := o.removals.Pending; p != nil && p.known.Name() == name && p.judged {
		o.removals.Pending = nil
		o.state.Roster.GiveUp(p.known)
	}
	k := o.state.Roster.Plugins[name]
	switch {
	case k == nil:
		return fmt.Errorf("plugin %s is not declared", name)
	case o.state.Roster.Session(name) != nil || o.state.Roster.Tried(name):
		return fmt.Errorf("plugin %s still runs", name)
	}
	now := o.state.Clock.Now()
	o.state.Roster.Withdraw(name)
	o.state.Course.Unforce(name)
	o.state.Roster.Follow(rules)
	if o.state.Course.Flight != nil {
		o.state.Course.Flight.Leave(name)
	}
	for _, conn := range o.state.Connections.Sorted() {
		o.streams.LeaveGenerator(conn, name)
	}
	if k.Kind().Patches() {
		o.screen.SpoilAll()
	}
	o.state.Env.Held.Drop(k.Shard)
	o.losses.Holds.Drop(name)
	if forced || state.Publishes(k) { // it was judged before
		if o.losses.Holds.Approve(); state.Publishes(k) {
			o.losses.Holds.ApproveNext(false)
		}
	}
	o.state.Env.Pending.Replace(k.Shard, nil)
	if !state.Publishes(k) && o.state.Course.Flight == nil {
		o.screen.Show()
	}
	o.intake.Touched(name, now)
	if o.pipeline.Advance(now); o.state.Course.Flight == nil {
		o.pipeline.Begin("swap", o.state.Env.Pending.Of(k.Shard), false, now)
	}
	o.pipeline.Rest()
	return nil
}

// Reorder gives plugins their places in plugins.yaml, and rules.
func (o *Orders) Reorder(order map[string]int, rules state.Rules) {
	o.state.Roster.Follow(rules)
	changes := o.state.Env.Precedence.Reorder(o.state.Roster.Order(order))
	if len(changes) > 0 {
		o.intake.MarkDirty(changes)
		o.intake.ForceReaders(changes)
	}
	for _, conn := range o.state.Connections.Sorted() {
		had := conn.Generators
		o.state.Roster.Assign(conn)
		o.streams.Reattach(conn, had, "")
	}
	o.screen.SpoilAll()
	o.screen.Show()
}

// Redeclare changes what is known of a plugin that does not run.
func (o *Orders) Redeclare(e state.Expected, rules state.Rules) error {
	k := o.state.Roster.Plugins[e.Name]
	if k == nil || o.state.Roster.Session(e.Name) != nil {
		return fmt.Errorf("plugin %s is not declared, or runs", e.Name)
	}
	k.Redeclare(e)
	o.state.Roster.Follow(rules)
	if p := o.state.Roster.Patcher(e.Name); p != nil {
		p.Settings = k.PatchSettings(o.patches.Patience)
	}
	if changes := o.state.Env.Precedence.Prioritize(k.Shard, e.Priority); len(changes) > 0 {
		o.state.Course.Moved.Merge(changes)
		o.state.Course.Hurry()
	}
	return nil
}

// Waive lets the first revision be made without a plugin, and reports whether it would have waited
// for it.
func (o *Orders) Waive(name string) bool {
	k, s := o.state.Roster.Plugins[name], o.state.Roster.Session(name)
	if o.state.Course.Started || k == nil || k.Expected.Optional || s != nil && (s.Source.Synced || !state.PublishesRows(s.Plugin.Ready)) {
		return false
	}
	k.Waive()
	return true
}

// ApplyHold lets through what is held of a plugin.
func (o *Orders) ApplyHold(plugin string) error {
	h := o.losses.Holds.Of(plugin)
	if h == nil {
		return serving.ErrNotHeld(plugin)
	}
	o.losses.Release(plugin, "it was let through by command")
	if h.Frozen != nil {
		o.losses.Holds.Approve()
		o.screen.Show()
		o.pipeline.Rest()
		return nil
	}
	o.state.Env.Held.Release(o.state.Roster.Plugins[plugin].Shard)
	o.losses.Holds.ApproveNext(false)
	o.state.Course.Hurry()
	return nil
}

// errAsked is why a session ends whose hold was dropped.
var errAsked = errors.New("what was held of it was dropped: it is started anew, and what it says then is judged anew")

// DropHold forgets what is held of a plugin, and ends its session: what the next one says is judged
// anew.
func (o *Orders) DropHold(plugin string) error {
	if o.losses.Holds.Of(plugin) == nil {
		return serving.ErrNotHeld(plugin)
	}
	o.losses.Release(plugin, "it was dropped by command")
	if k := o.state.Roster.Plugins[plugin]; k != nil {
		o.state.Env.Held.Drop(k.Shard)
	}
	if s := o.state.Roster.Session(plugin); s != nil {
		s.Cancel(errAsked)
	}
	return nil
}
