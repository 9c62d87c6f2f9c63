package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/revision"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// begin commits what waits (of accept) and starts its revision.
func (c *Control) begin(kind string, accept func(environment.Name) bool, force bool, now time.Time) {
	if accept == nil && !c.course.debounce.Due().IsZero() {
		c.cfg.Metrics.Debounced(now.Sub(c.course.debounce.Due().Add(-c.course.debounce.After)))
		c.course.debounce.Reset()
	}
	if kind != revision.Endpoints {
		if endpoints, _ := c.env.Pending(); endpoints {
			c.course.pace.Carried(now)
		}
		c.losses.holds.Begin()
		c.course.soon = false
	}
	force = force || len(c.course.forced) > 0 || !c.course.started
	before := c.env.Number()
	changes := c.course.moved
	c.course.moved = environment.Changes{}
	changes.Merge(c.env.Commit(force || len(changes) > 0, accept))
	if c.env.Number() == before {
		c.rest()
		return
	}
	c.cfg.Metrics.Hidden(c.env.Hidden())
	c.cfg.Metrics.Committed(kind)
	c.markDirty(changes)
	c.course.flight = revision.Begin(c.env.Number(), kind, changes, c.course.forced, c.cfg.HoldMax, now)
	c.course.forced = map[string]bool{}
	c.advance(now)
}

// advance leads the revision through the stages as far as nobody is waited for.
func (c *Control) advance(now time.Time) {
	for f := c.course.flight; f != nil; f = c.course.flight {
		switch f.Next(c.roster.lastLevel(), c.wantsOpen) {
		case revision.Derive:
			c.hand(func(k *known) bool { return k.ready.Derives && k.level == f.Level() }, now)
		case revision.Generate:
			c.hand(func(k *known) bool { return k.Kind == pb.KindGenerator }, now)
			c.handReaders()
			c.feedShadows()
		case revision.Serve:
			c.serve(now)
			return
		case revision.Show:
			c.show(now)
			return
		default:
			return
		}
	}
}

// show shows the revision to connections once patches have seen all of it.
func (c *Control) show(now time.Time) {
	if c.screen.settle() {
		c.finish(now)
	}
}

// hand gives the revision to those plugins of a stage that it concerns, and waits for them; also for one that died just now.
func (c *Control) hand(stage func(*known) bool, now time.Time) {
	f := c.course.flight
	for _, k := range c.roster.sorted() {
		if k.ready == nil || !stage(k) {
			continue
		}
		switch s := c.roster.session(k.Name); {
		case s == nil && concerns(k.ready, f.Changes):
			f.Away(k.Name, k.away, now)
		case s != nil && f.Give(k.Name, s.feed.Lacks()):
			c.sendState(s, f.Number)
		}
	}
}

// handReaders gives the revision to patches and to sources that read; they owe no Done.
func (c *Control) handReaders() {
	for s := range c.roster.live() {
		if s.generates() || s.ready.Derives || len(s.feed.Left()) == 0 {
			continue
		}
		c.sendState(s, c.course.flight.Number)
		if s.Kind == pb.KindPatch {
			c.roster.patcher(s.Name).Forget()
			c.screen.spoilAll()
		}
	}
}

func concerns(ready *pb.Ready, changes environment.Changes) bool {
	return slices.ContainsFunc(ready.Reads, func(r *pb.Read) bool { return len(changes[r.Table]) > 0 })
}

func (r *roster) lastLevel() int {
	last := -1
	for _, k := range r.known {
		if k.ready != nil && k.ready.Derives {
			last = max(last, k.level)
		}
	}
	return last
}

// wantsOpen says whether a view that the revision moves connections to still lacks answers.
func (c *Control) wantsOpen() bool {
	for s := range c.roster.live() {
		if s.asked.Holds() {
			return true
		}
	}
	return false
}

// giveUp serves the revision without the plugins that are late.
func (c *Control) giveUp(now time.Time) {
	f := c.course.flight
	var asked []string
	for s := range c.roster.live() {
		if s.asked.GiveUp() {
			asked = append(asked, s.Name)
		}
	}
	for _, name := range f.GiveUp(asked, now) {
		c.noteLate(name, now)
	}
	c.cfg.Log.Warn("revision is partial: plugins were not done in time; what they said last stays", "revision", f.Number, "plugins", f.Late(), "waited", f.Took(now))
	c.advance(now)
}

// noteLate notes that the revision goes out without a plugin.
func (c *Control) noteLate(name string, now time.Time) {
	c.cfg.Metrics.Partial(name)
	if k := c.roster.known[name]; k != nil && k.late.IsZero() {
		k.late = now
	}
}

// serve gives the revision to the proxies, whole.
func (c *Control) serve(now time.Time) {
	f := c.course.flight
	for _, k := range c.roster.sorted() {
		s := c.roster.session(k.Name)
		if s == nil || !s.generates() || s.done != s.sent {
			continue
		}
		before := len(s.ops)
		if err := s.apply(); err != nil {
			s.cancel(fmt.Errorf("plugin %s broke the contract: %w", s.Name, err))
			continue
		}
		if before > 0 || f.Forced(k.Name) {
			c.serving(s.Name)
		}
		changed := s.views.Publish()
		c.screen.blame(s)
		c.screen.spoil(changed)
		f.Views += len(changed)
		s.free()
	}
	if f.Number >= c.course.undo && !slices.ContainsFunc(f.Late(), func(name string) bool {
		return c.roster.known[name] != nil && c.roster.known[name].Kind == pb.KindGenerator
	}) {
		c.course.undo = 0
	}
	c.screen.retryLate()
	c.show(now)
}

// finish notes that the revision is served.
func (c *Control) finish(now time.Time) {
	f := c.course.flight
	c.course.flight = nil
	if c.parting != nil {
		c.ring() // it waits for a moment without a revision
	}
	if f.Number < c.course.undo {
		return // it is held
	}
	if !c.course.started {
		c.course.started = true
		c.env.Settle()
		close(c.startedUp)
	}
	c.course.served = served{Number: max(f.Number, c.env.Number()), Kind: f.Kind, Partial: f.Late(), Rows: f.Rows()}
	c.instances.tell()
	c.trials.noteSwitched(f.Number)
	took := f.Took(now)
	c.cfg.Metrics.Served(f.Kind, took)
	c.rest()
	c.cfg.Log.Debug("revision served", "revision", f.Number, "kind", f.Kind, "rows", c.course.served.Rows, "views", f.Views, "took", took)
}
