package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// guards judges what connections are about to be shown. If too much would go nothing is shown, and
// the rows that caused it are taken back in a revision that begins at once. Where there is no row
// to take back, the connections that would lose are frozen.
func (l *losses) guards(next state.Shown) (held bool) {
	if !l.course.Started {
		return false
	}
	if held, judged := l.instead(next); judged {
		return held
	}
	held = l.holds.Judge(guard.Scene[*state.Connection]{
		Next: next, Connected: len(l.conns.All), Mature: l.course.Flight == nil || l.course.Flight.Patching(),
		Env: l.env, Read: l.tablesRead, Sources: l.roster.Shards, Guard: l.roster.GuardOf,
	}, l.clock.Now())
	if held {
		l.course.Undo, l.course.Soon = l.env.Number()+1, true
		l.course.Ring()
	}
	l.tellHolds()
	return held
}

// tellHolds logs what became of holds.
func (l *losses) tellHolds() {
	for _, e := range l.holds.Events() {
		switch e.What {
		case guard.Held:
			what, n := "rows", e.Rows
			if e.Proxies > 0 {
				what, n = "proxies", e.Proxies
			}
			plugin := e.Plugins[0]
			l.log.Warn("much would go at once: it is held, and what was there stays served", "plugin", plugin, what, n, "reasons", e.Reasons,
				"do", "coxswain hold show "+plugin+"; then coxswain hold apply "+plugin+", hold drop "+plugin+", or repair what it reads")
		case guard.Released:
			l.log.Info("nothing of this plugin is held any more", "plugin", e.Plugins[0], "because", e.Reasons[0])
		case guard.Through:
			l.log.Warn("much goes at once, and onLoss of its plugins is apply", "plugins", e.Plugins, "reasons", e.Reasons)
		}
	}
}

// release ends a hold.
func (l *losses) release(plugin, why string) {
	l.holds.Release(plugin, why)
	l.tellHolds()
}

// overHolds ends the holds of which nothing is left. What was let go by itself may be held again by
// the revision in the making, and counts its tries.
func (l *losses) overHolds() {
	if l.course.Soon || l.course.Flight != nil {
		return
	}
	l.holds.Over(func(conn *state.Connection) bool { return l.conns.All[conn.ID] != conn }, func(plugin string) int {
		if k := l.roster.Plugins[plugin]; k != nil {
			return l.env.HeldRows(k.Shard)
		}
		return 0
	})
	l.tellHolds()
}

// rest notes that proxies see all that was committed.
func (p *pipeline) rest() {
	if p.course.Flight != nil || p.course.Undo != 0 || len(p.course.Served.Partial) > 0 {
		return
	}
	for _, k := range p.roster.Plugins {
		if k.Kind() != pb.KindGenerator || k.Ready == nil || k.Sleep.Asleep {
			continue
		}
		s := p.roster.Session(k.Name())
		switch {
		case s == nil && p.clock.Now().Sub(k.Away) >= p.timing.holdMax: // nobody waits for it any more
		case s == nil, !s.State.Busy.IsZero(), s.Maker.Overtaking != 0, s.State.Acked < s.State.Sent:
			return
		}
	}
	if p.losses.holds.Settled(p.env, p.roster.Shards(), p.clock.Now()) {
		p.course.Soon = true
		p.course.Ring()
	}
}

// Holds returns what is held, by plugin.
func (c *Control) Holds() []state.Held {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.held()
}

func (pg *pages) held() []state.Held {
	var all []state.Held
	for _, name := range pg.losses.holds.Plugins() {
		all = append(all, pg.losses.held(name))
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

func (l *losses) held(name string) state.Held {
	h := l.holds.Of(name)
	out := state.Held{Plugin: name, Since: h.Since.UTC(), Proxies: len(h.Frozen), Reasons: slices.Clone(h.Reasons)}
	if k := l.roster.Plugins[name]; k != nil {
		out.Rows = l.env.HeldRows(k.Shard)
	}
	return out
}

// Hold returns what is held of a plugin, with the difference of its rows.
func (c *Control) Hold(plugin string) (*state.Held, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.holdOf(plugin)
}

func (pg *pages) holdOf(plugin string) (*state.Held, error) {
	if pg.losses.holds.Of(plugin) == nil {
		return nil, errNotHeld(plugin)
	}
	out := pg.losses.held(plugin)
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

func errNotHeld(plugin string) error {
	return fmt.Errorf("nothing of plugin %s is held; coxswain hold list shows what is", plugin)
}

// ApplyHold lets through what is held of a plugin.
func (c *Control) ApplyHold(plugin string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.plugins.Orders.applyHold(plugin); err != nil {
		return err
	}
	c.schedule(c.state.Clock.Now())
	return nil
}

func (o *orders) applyHold(plugin string) error {
	h := o.losses.holds.Of(plugin)
	if h == nil {
		return errNotHeld(plugin)
	}
	o.losses.release(plugin, "it was let through by command")
	if h.Frozen != nil {
		o.losses.holds.Approve()
		o.screen.settle()
		o.pipeline.rest()
		return nil
	}
	o.env.Release(o.roster.Plugins[plugin].Shard)
	o.losses.holds.ApproveNext(false)
	o.course.Soon = true
	return nil
}

// errAsked is why a session ends whose hold was dropped.
var errAsked = errors.New("what was held of it was dropped: it is started anew, and what it says then is judged anew")

// DropHold forgets what is held of a plugin, and starts it anew: what it says then is judged anew.
func (c *Control) DropHold(plugin string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.plugins.Orders.dropHold(plugin); err != nil {
		return err
	}
	c.schedule(c.state.Clock.Now())
	return nil
}

func (o *orders) dropHold(plugin string) error {
	if o.losses.holds.Of(plugin) == nil {
		return errNotHeld(plugin)
	}
	o.losses.release(plugin, "it was dropped by command")
	if k := o.roster.Plugins[plugin]; k != nil {
		o.env.Drop(k.Shard)
	}
	if s := o.roster.Session(plugin); s != nil {
		s.Cancel(errAsked)
	}
	return nil
}
