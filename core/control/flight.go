package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// flight is a revision in the making. There is at most one.
type flight struct {
	number uint64
	kind   string
	start  time.Time
	// until is how long it waits for plugins.
	until   time.Time
	changes environment.Changes
	// level of the derivers that have the revision; generators come after the last level.
	level      int
	generating bool
	// patching: all is said, patches have not seen all of it yet.
	patching bool
	views    int
	// waiting names plugins whose Done is owed.
	waiting map[string]bool
	// forced plugins take part even if nothing that they read changed: their session is new.
	forced map[string]bool
	late   []string
}

// begin commits what waits (of accept) and starts its revision.
func (c *Control) begin(kind string, accept func(environment.Name) bool, force bool, now time.Time) {
	if accept == nil && !c.full.Due().IsZero() {
		c.cfg.Metrics.Debounced(now.Sub(c.full.Due().Add(-c.full.After)))
		c.full.Reset()
	}
	if kind != "endpoints" {
		c.carried(now)
		c.holds.Begin()
		c.soon = false
	}
	force = force || len(c.forced) > 0 || !c.started
	before := c.env.Number()
	changes := c.moved
	c.moved = environment.Changes{}
	changes.Merge(c.env.Commit(force || len(changes) > 0, accept))
	if c.env.Number() == before {
		c.rest()
		return
	}
	c.cfg.Metrics.Hidden(c.env.Hidden())
	c.cfg.Metrics.Committed(kind)
	c.markDirty(changes)
	c.flight = &flight{number: c.env.Number(), kind: kind, start: now, until: now.Add(c.cfg.HoldMax), changes: changes, level: -1, waiting: map[string]bool{}, forced: c.forced}
	c.forced = map[string]bool{}
	c.advance(now)
}

// advance leads the revision through the stages as far as nobody is waited for.
func (c *Control) advance(now time.Time) {
	for f := c.flight; f != nil && len(f.waiting) == 0; f = c.flight {
		if f.patching {
			if c.settle() {
				c.finish(now)
			}
			return
		}
		if f.generating {
			if c.wantsOpen() {
				return
			}
			c.serve(now)
			return
		}
		f.level++
		if f.level > c.lastLevel() {
			f.generating = true
			c.hand(func(k *known) bool { return k.Kind == pb.KindGenerator }, now)
			c.handReaders()
			c.feedShadows()
			continue
		}
		c.hand(func(k *known) bool { return k.ready.Derives && k.level == f.level }, now)
	}
}

// hand gives the revision to those plugins of a stage that it concerns, and waits for them; also for one that died just now.
func (c *Control) hand(stage func(*known) bool, now time.Time) {
	f := c.flight
	for _, k := range c.sortedKnown() {
		if k.ready == nil || !stage(k) {
			continue
		}
		s := c.sessions[k.Name]
		if s == nil {
			if now.Sub(k.away) < c.cfg.HoldMax && concerns(k.ready, f.changes) {
				f.waiting[k.Name] = true
			}
			continue
		}
		if !f.forced[k.Name] && !s.whole && len(s.dirty) == 0 {
			continue
		}
		f.waiting[k.Name] = true
		c.sendState(s, f.number)
	}
}

// handReaders gives the revision to patches and to sources that read; they owe no Done.
func (c *Control) handReaders() {
	for _, s := range c.sessions {
		if s.generates() || s.ready.Derives || len(s.dirty) == 0 {
			continue
		}
		c.sendState(s, c.flight.number)
		if s.Kind == pb.KindPatch {
			c.patchers[s.Name].Forget()
			c.spoilAll()
		}
	}
}

func concerns(ready *pb.Ready, changes environment.Changes) bool {
	return slices.ContainsFunc(ready.Reads, func(r *pb.Read) bool { return len(changes[r.Table]) > 0 })
}

func (c *Control) lastLevel() int {
	last := -1
	for _, k := range c.known {
		if k.ready != nil && k.ready.Derives {
			last = max(last, k.level)
		}
	}
	return last
}

// wantsOpen says whether a view that the revision moves connections to still lacks answers.
func (c *Control) wantsOpen() bool {
	for _, s := range c.sessions {
		if s.asked.Holds() {
			return true
		}
	}
	return false
}

// giveUp serves the revision without the plugins that are late.
func (c *Control) giveUp(now time.Time) {
	f := c.flight
	for name := range f.waiting {
		f.late = append(f.late, name)
		c.noteLate(name, now)
	}
	for _, s := range c.sessions {
		if s.asked.GiveUp() && !slices.Contains(f.late, s.Name) {
			f.late = append(f.late, s.Name)
			c.noteLate(s.Name, now)
		}
	}
	slices.Sort(f.late)
	c.cfg.Log.Warn("revision is partial: plugins were not done in time; what they said last stays", "revision", f.number, "plugins", f.late, "waited", now.Sub(f.start))
	clear(f.waiting)
	f.until = now.Add(c.cfg.HoldMax) // for the stages after theirs, which had no time yet
	c.advance(now)
}

// noteLate notes that the revision goes out without a plugin.
func (c *Control) noteLate(name string, now time.Time) {
	c.cfg.Metrics.Partial(name)
	if k := c.known[name]; k != nil && k.late.IsZero() {
		k.late = now
	}
}

// serve gives the revision to the proxies, whole.
func (c *Control) serve(now time.Time) {
	f := c.flight
	for _, k := range c.sortedKnown() {
		s := c.sessions[k.Name]
		if s == nil || !s.generates() || s.done != s.sent {
			continue
		}
		before := len(s.ops)
		if err := c.apply(s); err != nil {
			s.cancel(fmt.Errorf("plugin %s broke the contract: %w", s.Name, err))
			continue
		}
		if before > 0 || f.forced[k.Name] {
			c.serving(s.Name)
		}
		changed := s.views.Publish()
		c.blame(s)
		c.spoil(changed)
		f.views += len(changed)
		c.free(s)
	}
	f.patching = true
	if f.number >= c.undo && !slices.ContainsFunc(f.late, func(name string) bool { return c.known[name] != nil && c.known[name].Kind == pb.KindGenerator }) {
		c.undo = 0
	}
	c.retryLate()
	if c.settle() {
		c.finish(now)
	}
}

// finish notes that the revision is served.
func (c *Control) finish(now time.Time) {
	f := c.flight
	c.flight = nil
	if c.parting != nil {
		c.ring() // it waits for a moment without a revision
	}
	rows := 0
	for _, keys := range f.changes {
		rows += len(keys)
	}
	if f.number < c.undo {
		c.remember(served{Number: f.number, At: now, Took: now.Sub(f.start), Kind: "held", Rows: rows})
		return
	}
	if !c.started {
		c.started = true
		c.env.Settle()
		close(c.startedUp)
	}
	c.served = served{Number: c.env.Number(), At: now, Took: now.Sub(f.start), Kind: f.kind, Partial: f.late, Rows: rows, Views: f.views}
	if f.number > c.served.Number {
		c.served.Number = f.number
	}
	c.remember(c.served)
	c.instances.tell()
	c.trials.noteSwitched(f.number)
	c.cfg.Metrics.Served(f.kind, c.served.Took)
	c.rest()
	c.cfg.Log.Debug("revision served", "revision", f.number, "kind", f.kind, "rows", rows, "views", f.views, "took", c.served.Took)
}

// remember keeps the last revisions for those who ask what happened.
func (c *Control) remember(s served) {
	const most = 100
	if c.history = append(c.history, s); len(c.history) > most {
		c.history = slices.Delete(c.history, 0, len(c.history)-most)
	}
}
