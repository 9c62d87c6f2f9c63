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
func (p *pipeline) begin(kind string, accept func(environment.Name) bool, force bool, now time.Time) {
	if accept == nil && !p.course.debounce.Due().IsZero() {
		p.metrics.Debounced(now.Sub(p.course.debounce.Due().Add(-p.course.debounce.After)))
		p.course.debounce.Reset()
	}
	if kind != revision.Endpoints {
		if endpoints, _ := p.env.Pending(); endpoints {
			p.course.pace.Carried(now)
		}
		p.losses.holds.Begin()
		p.course.soon = false
	}
	force = force || len(p.course.forced) > 0 || !p.course.started
	before := p.env.Number()
	changes := p.course.moved
	p.course.moved = environment.Changes{}
	changes.Merge(p.env.Commit(force || len(changes) > 0, accept))
	if p.env.Number() == before {
		p.rest()
		return
	}
	p.metrics.Hidden(p.env.Hidden())
	p.metrics.Committed(kind)
	p.intake.markDirty(changes)
	p.course.flight = revision.Begin(p.env.Number(), kind, changes, p.course.forced, p.timing.holdMax, now)
	p.course.forced = map[string]bool{}
	p.advance(now)
}

// advance leads the revision through the stages as far as nobody is waited for.
func (p *pipeline) advance(now time.Time) {
	for f := p.course.flight; f != nil; f = p.course.flight {
		switch f.Next(p.roster.lastLevel(), p.wantsOpen) {
		case revision.Derive:
			p.hand(func(k *known) bool { return k.ready.Derives && k.level == f.Level() }, now)
		case revision.Generate:
			p.hand(func(k *known) bool { return k.Kind() == pb.KindGenerator }, now)
			p.handReaders()
			p.feeder.feedShadows()
		case revision.Serve:
			p.serve(now)
			return
		case revision.Show:
			p.show(now)
			return
		default:
			return
		}
	}
}

// show shows the revision to connections once patches have seen all of it.
func (p *pipeline) show(now time.Time) {
	if p.screen.settle() {
		p.finish(now)
	}
}

// hand gives the revision to those plugins of a stage that it concerns, and waits for them; also for one that died just now.
func (p *pipeline) hand(stage func(*known) bool, now time.Time) {
	f := p.course.flight
	for _, k := range p.roster.sorted() {
		if k.ready == nil || !stage(k) {
			continue
		}
		switch s := p.roster.session(k.Name()); {
		case s == nil && concerns(k.ready, f.Changes):
			f.Away(k.Name(), k.away, now)
		case s != nil && f.Give(k.Name(), s.feed.Lacks()):
			p.feeder.sendState(s, f.Number)
		}
	}
}

// handReaders gives the revision to patches and to sources that read; they owe no Done.
func (p *pipeline) handReaders() {
	for s := range p.roster.live() {
		if s.generates() || s.plugin.ready.Derives || len(s.feed.Left()) == 0 {
			continue
		}
		p.feeder.sendState(s, p.course.flight.Number)
		if s.Kind() == pb.KindPatch {
			p.roster.patcher(s.Name()).Forget()
			p.screen.spoilAll()
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
func (p *pipeline) wantsOpen() bool {
	for s := range p.roster.live() {
		if s.Maker.Asked.Holds() {
			return true
		}
	}
	return false
}

// giveUp serves the revision without the plugins that are late.
func (p *pipeline) giveUp(now time.Time) {
	f := p.course.flight
	var asked []string
	for s := range p.roster.live() {
		if s.Maker.Asked.GiveUp() {
			asked = append(asked, s.Name())
		}
	}
	for _, name := range f.GiveUp(asked, now) {
		p.noteLate(name, now)
	}
	p.log.Warn("revision is partial: plugins were not done in time; what they said last stays", "revision", f.Number, "plugins", f.Late(), "waited", f.Took(now))
	p.advance(now)
}

// noteLate notes that the revision goes out without a plugin.
func (p *pipeline) noteLate(name string, now time.Time) {
	p.metrics.Partial(name)
	if k := p.roster.known[name]; k != nil && k.late.IsZero() {
		k.late = now
	}
}

// serve gives the revision to the proxies, whole.
func (p *pipeline) serve(now time.Time) {
	f := p.course.flight
	for _, k := range p.roster.sorted() {
		s := p.roster.session(k.Name())
		if s == nil || !s.generates() || s.State.Done != s.State.Sent {
			continue
		}
		before := len(s.Maker.Ops)
		if err := s.apply(); err != nil {
			s.cancel(fmt.Errorf("plugin %s broke the contract: %w", s.Name(), err))
			continue
		}
		if before > 0 || f.Forced(k.Name()) {
			p.roster.serving(s.Name())
		}
		changed := s.Maker.Views.Publish()
		p.screen.blame(s)
		p.screen.spoil(changed)
		f.Views += len(changed)
		s.free()
	}
	if f.Number >= p.course.undo && !slices.ContainsFunc(f.Late(), func(name string) bool {
		return p.roster.known[name] != nil && p.roster.known[name].Kind() == pb.KindGenerator
	}) {
		p.course.undo = 0
	}
	p.screen.retryLate()
	p.show(now)
}

// finish notes that the revision is served.
func (p *pipeline) finish(now time.Time) {
	f := p.course.flight
	p.course.flight = nil
	p.course.ring() // somebody may wait for a moment without a revision
	if f.Number < p.course.undo {
		return // it is held
	}
	if !p.course.started {
		p.course.started = true
		p.env.Settle()
		close(p.startedUp)
	}
	p.course.served = served{Number: max(f.Number, p.env.Number()), Kind: f.Kind, Partial: f.Late(), Rows: f.Rows()}
	p.instances.tell()
	p.onServed(f.Number)
	took := f.Took(now)
	p.metrics.Served(f.Kind, took)
	p.rest()
	p.log.Debug("revision served", "revision", f.Number, "kind", f.Kind, "rows", p.course.served.Rows, "views", f.Views, "took", took)
}
