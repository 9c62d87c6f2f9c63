package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// flight is a revision in the making. There is at most one.
type flight struct {
	number  uint64
	kind    string
	start   time.Time
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

// Run drives what depends on time, until ctx ends.
func (c *Control) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		c.mu.Lock()
		next := c.due(time.Now())
		c.mu.Unlock()
		wait := time.Hour
		if !next.IsZero() {
			wait = max(time.Until(next), 0)
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-c.wake:
		case <-ctx.Done():
			c.end()
			return nil
		}
	}
}

func (c *Control) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.conns {
		conn.wake()
	}
}

// schedule begins what is due. Every event ends with it.
func (c *Control) schedule(now time.Time) {
	c.due(now)
	c.ring()
}

// due begins what is due, and returns when to look again; the zero time if nothing waits.
func (c *Control) due(now time.Time) (next time.Time) {
	at := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	c.hung(now, at)
	c.overdue(now, at)
	if !c.started && c.flight == nil && len(c.unready()) > 0 {
		return next
	}
	for c.flight == nil {
		endpoints, rest := c.env.Pending()
		due := c.full.Due()
		switch {
		case !c.started:
			c.begin("full", nil, now)
		case len(c.forced) > 0, !due.IsZero() && !due.After(now):
			c.begin("full", nil, now)
		case endpoints && !c.cfg.DebounceEndpoints:
			c.begin("endpoints", c.env.Ahead, now)
		default:
			if rest || endpoints {
				at(due)
			}
			return next
		}
	}
	c.hold(now, at)
	return next
}

// ring makes Run look at the time again.
func (c *Control) ring() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// hold looks after the revision in the making: endpoints may overtake it, and it doesn't wait for ever.
func (c *Control) hold(now time.Time, at func(time.Time)) {
	f := c.flight
	if end := f.start.Add(c.cfg.HoldMax); !end.After(now) {
		c.giveUp(now)
		return
	} else {
		at(end)
	}
	if endpoints, _ := c.env.Pending(); !endpoints || !c.started || c.cfg.DebounceEndpoints || f.kind != "full" {
		return
	}
	if patience := f.start.Add(c.cfg.EndpointPatience); patience.After(now) {
		at(patience)
		return
	}
	c.overtake()
}

// hung ends sessions that owe a Done for too long.
func (c *Control) hung(now time.Time, at func(time.Time)) {
	for _, s := range c.sessions {
		if s.busy.IsZero() {
			continue
		}
		end, why := s.deadline()
		if end.IsZero() {
			continue
		}
		if end.After(now) {
			at(end)
			continue
		}
		s.cancel(fmt.Errorf("plugin %s did not finish revision %d: %s", s.Name, s.sent, why))
		s.busy = time.Time{}
	}
}

// deadline is when a session that owes a Done counts as hung, and by which limit; zero for never.
func (s *session) deadline() (end time.Time, why string) {
	if l := s.Limits.Revision; l > 0 {
		end, why = s.busy.Add(l), fmt.Sprintf("it took longer than limits.revision, %s", l)
	}
	if l := s.Limits.Progress; l > 0 {
		last := s.inst.Link.LastProgress()
		if last.Before(s.busy) {
			last = s.busy
		}
		if e := last.Add(l); end.IsZero() || e.Before(end) {
			end, why = e, fmt.Sprintf("it showed no progress for limits.progress, %s", l)
		}
	}
	return end, why
}

// unready says what the first revision waits for.
func (c *Control) unready() []string {
	var reasons []string
	for _, k := range c.sortedKnown() {
		if k.Optional || k.Kind == pb.KindAuthenticator || k.Kind == pb.KindController {
			continue
		}
		s := c.sessions[k.Name]
		switch {
		case s == nil:
			reasons = append(reasons, fmt.Sprintf("plugin %s has not started", k.Name))
		case k.Kind == pb.KindPatch:
		case !s.ready.Derives && !s.synced && (!s.generates() || len(s.ready.Publishes) > 0):
			reasons = append(reasons, fmt.Sprintf("plugin %s has not synced", k.Name))
		}
	}
	return reasons
}

func (c *Control) sortedKnown() []*known {
	return slices.SortedFunc(maps.Values(c.known), func(a, b *known) int { return a.Order - b.Order })
}

// begin commits what waits (of accept) and starts its revision.
func (c *Control) begin(kind string, accept func(environment.Name) bool, now time.Time) {
	if accept == nil && !c.full.Due().IsZero() {
		c.cfg.Metrics.Debounced(now.Sub(c.full.Due().Add(-c.full.After)))
		c.full.Reset()
	}
	force := len(c.forced) > 0 || !c.started
	before := c.env.Number()
	changes := c.env.Commit(force, accept)
	if c.env.Number() == before {
		return
	}
	c.cfg.Metrics.Hidden(c.env.Hidden())
	c.cfg.Metrics.Committed(kind)
	c.markDirty(changes)
	c.flight = &flight{number: c.env.Number(), kind: kind, start: now, changes: changes, level: -1, waiting: map[string]bool{}, forced: c.forced}
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
			c.forgetResults(c.patchers[s.Name])
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
		if len(s.wants) > 0 {
			return true
		}
	}
	return false
}

// takeDone notes that a plugin has said all about a revision.
func (c *Control) takeDone(s *session, m *pb.Done, now time.Time) error {
	if m.Revision == nil {
		return fmt.Errorf("its Done names no revision")
	}
	c.takeFaults(s, m.Faults)
	if s.overtaking != 0 && m.Revision.Number == s.overtaking {
		return c.overtaken(s)
	}
	if m.Revision.Number != s.sent {
		return nil // of a state that a newer one has replaced
	}
	s.done, s.busy = m.Revision.Number, time.Time{}
	s.suspects, s.deaths = environment.Changes{}, 0
	s.suspects.Merge(s.dirty)
	if s.generates() {
		s.forgetEmpty(s.emptied)
		s.views.Expire(s.unused)
		s.views.Collect(s.toCollect)
		s.emptied, s.unused, s.toCollect = nil, nil, nil
	}
	if s.ready.Derives {
		c.derived(s, now)
	}
	f := c.flight
	switch {
	case f != nil && f.waiting[s.Name]:
		if s.done < f.number { // it was busy with an older one when this one began
			c.sendState(s, f.number)
			return nil
		}
		delete(f.waiting, s.Name)
		c.advance(now)
	case f == nil && s.generates():
		// It was late: the revision went out without it.
		return c.accept(s)
	}
	return nil
}

// takeFaults keeps what failed, and logs and counts what did not fail before.
func (c *Control) takeFaults(s *session, faults []*pb.Fault) {
	old := make(map[string]string, len(s.faults))
	for _, f := range s.faults {
		old[f.What] = f.Reason
	}
	s.faults = faults
	for _, f := range faults {
		if reason, ok := old[f.What]; ok && reason == f.Reason {
			continue
		}
		c.cfg.Metrics.Fault(s.Name)
		rows := make([]string, len(f.Rows))
		for i, r := range f.Rows {
			rows[i] = r.Table + " " + r.Key
		}
		c.cfg.Log.Warn("work failed; its last good result stays", "plugin", s.Name, "what", f.What, "reason", f.Reason, "rows", rows)
	}
}

// giveUp serves the revision without the plugins that are late.
func (c *Control) giveUp(now time.Time) {
	f := c.flight
	for name := range f.waiting {
		f.late = append(f.late, name)
		c.cfg.Metrics.Partial(name)
	}
	for _, s := range c.sessions {
		if len(s.wants) > 0 && !slices.Contains(f.late, s.Name) {
			f.late = append(f.late, s.Name)
			c.cfg.Metrics.Partial(s.Name)
		}
		clear(s.wants)
	}
	slices.Sort(f.late)
	c.cfg.Log.Warn("revision is partial: plugins were not done in time; what they said last stays", "revision", f.number, "plugins", f.late, "waited", now.Sub(f.start))
	clear(f.waiting)
	c.advance(now)
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
	c.retryLate()
	if c.settle() {
		c.finish(now)
	}
}

// finish notes that the revision is served.
func (c *Control) finish(now time.Time) {
	f := c.flight
	c.flight = nil
	rows := 0
	for _, keys := range f.changes {
		rows += len(keys)
	}
	if !c.started {
		c.started = true
		close(c.startedUp)
	}
	c.served = served{Number: c.env.Number(), At: now, Took: now.Sub(f.start), Kind: f.kind, Partial: f.late, Rows: rows, Views: f.views}
	if f.number > c.served.Number {
		c.served.Number = f.number
	}
	c.remember(c.served)
	c.cfg.Metrics.Served(f.kind, c.served.Took)
	c.cfg.Log.Debug("revision served", "revision", f.number, "kind", f.kind, "rows", rows, "views", f.views, "took", c.served.Took)
}

// remember keeps the last revisions for those who ask what happened.
func (c *Control) remember(s served) {
	const most = 100
	if c.history = append(c.history, s); len(c.history) > most {
		c.history = slices.Delete(c.history, 0, len(c.history)-most)
	}
}

// accept applies what a generator said late.
func (c *Control) accept(s *session) error {
	if err := c.apply(s); err != nil {
		return err
	}
	c.serving(s.Name)
	c.publish(s)
	c.free(s)
	return nil
}

// overtake commits endpoints on top of what is served, while a revision is in the making.
func (c *Control) overtake() {
	for _, s := range c.sessions {
		if s.overtaking != 0 || s.generates() && s.acked == 0 {
			return // one at a time, and not before there is something to go on top of
		}
	}
	changes := c.env.Commit(false, c.env.Ahead)
	if len(changes) == 0 {
		return
	}
	number := c.env.Number()
	c.cfg.Metrics.Committed("overtaking")
	for _, s := range c.sessions {
		sources, reads := s.reads[environment.Endpoints]
		if !reads {
			continue
		}
		job := &stateJob{revision: pb.Revision{Epoch: c.epoch, Number: number}, overtakes: true}
		size := 0
		t := &pb.TableRows{Table: environment.Endpoints}
		for key := range changes[environment.Endpoints] {
			r := c.env.Row(environment.Name{Table: environment.Endpoints, Key: key}, sources)
			if r = s.withheld.row(environment.Endpoints, key, r); r != nil {
				t.Upserts = append(t.Upserts, r)
				size += r.Size() + 8
			} else {
				t.Deletes = append(t.Deletes, key)
				size += len(key) + 8
			}
		}
		if !s.generates() || size > stateRoom {
			s.mark(changes)
			continue
		}
		job.tables = []*pb.TableRows{t}
		s.overtaking = number
		s.out.state(job)
	}
}

// overtaken applies what a generator made of endpoints that overtook: now, and again when the revision that they overtook is served.
func (c *Control) overtaken(s *session) error {
	ops := s.overtakenOps
	s.overtaking, s.overtakenOps = 0, nil
	for _, o := range ops {
		if err := o(); err != nil {
			return err
		}
	}
	if len(s.ops) > 0 {
		s.ops = append(s.ops, ops...)
	}
	c.publish(s)
	c.remember(served{Number: c.env.Number(), At: time.Now(), Kind: "overtaking"})
	return nil
}
