package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/revision"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// begin commits what waits (of accept) and starts its revision.
func (p *pipeline) begin(kind string, accept func(environment.Name) bool, force bool, now time.Time) {
	if accept == nil && !p.course.Debounce.Due().IsZero() {
		p.metrics.Debounced(now.Sub(p.course.Debounce.Due().Add(-p.course.Debounce.After)))
		p.course.Debounce.Reset()
	}
	if kind != revision.Endpoints {
		if endpoints, _ := p.env.Pending(); endpoints {
			p.course.Pace.Carried(now)
		}
		p.losses.Holds.Begin()
		p.course.Soon = false
	}
	force = force || len(p.course.Forced) > 0 || !p.course.Started
	before := p.env.Number()
	changes := p.course.Moved
	p.course.Moved = environment.Changes{}
	changes.Merge(p.env.Commit(force || len(changes) > 0, accept))
	if p.env.Number() == before {
		p.rest()
		return
	}
	p.metrics.Hidden(p.env.Hidden())
	p.metrics.Committed(kind)
	p.intake.markDirty(changes)
	p.course.Flight = revision.Begin(p.env.Number(), kind, changes, p.course.Forced, p.timing.holdMax, now)
	p.course.Forced = map[string]bool{}
	p.advance(now)
}

// advance leads the revision through the stages as far as nobody is waited for.
func (p *pipeline) advance(now time.Time) {
	for f := p.course.Flight; f != nil; f = p.course.Flight {
		switch f.Next(p.roster.LastLevel(), p.wantsOpen) {
		case revision.Derive:
			p.hand(func(k *state.Plugin) bool { return k.Ready.Derives && k.Level == f.Level() }, now)
		case revision.Generate:
			p.hand(func(k *state.Plugin) bool { return k.Kind() == pb.KindGenerator }, now)
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
	if p.screen.Settle() {
		p.finish(now)
	}
}

// hand gives the revision to those plugins of a stage that it concerns, and waits for them; also for one that died just now.
func (p *pipeline) hand(stage func(*state.Plugin) bool, now time.Time) {
	f := p.course.Flight
	for _, k := range p.roster.Sorted() {
		if k.Ready == nil || !stage(k) {
			continue
		}
		switch s := p.roster.Session(k.Name()); {
		case s == nil && state.Concerns(k.Ready, f.Changes):
			f.Away(k.Name(), k.Away, now)
		case s != nil && f.Give(k.Name(), s.Feed.Lacks()):
			p.feeder.sendState(s, f.Number)
		}
	}
}

// handReaders gives the revision to patches and to sources that read; they owe no Done.
func (p *pipeline) handReaders() {
	for s := range p.roster.Sessions() {
		if s.Generates() || s.Plugin.Ready.Derives || len(s.Feed.Left()) == 0 {
			continue
		}
		p.feeder.sendState(s, p.course.Flight.Number)
		if s.Kind() == pb.KindPatch {
			p.roster.Patcher(s.Name()).Forget()
			p.screen.SpoilAll()
		}
	}
}

// wantsOpen says whether a view that the revision moves connections to still lacks answers.
func (p *pipeline) wantsOpen() bool {
	for s := range p.roster.Sessions() {
		if s.Maker.Asked.Holds() {
			return true
		}
	}
	return false
}

// giveUp serves the revision without the plugins that are late.
func (p *pipeline) giveUp(now time.Time) {
	f := p.course.Flight
	var asked []string
	for s := range p.roster.Sessions() {
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
	if k := p.roster.Plugins[name]; k != nil && k.Late.IsZero() {
		k.Late = now
	}
}

// serve gives the revision to the proxies, whole.
func (p *pipeline) serve(now time.Time) {
	f := p.course.Flight
	for _, k := range p.roster.Sorted() {
		s := p.roster.Session(k.Name())
		if s == nil || !s.Generates() || s.State.Done != s.State.Sent {
			continue
		}
		before := len(s.Maker.Ops)
		if err := s.Apply(); err != nil {
			s.Cancel(fmt.Errorf("plugin %s broke the contract: %w", s.Name(), err))
			continue
		}
		if before > 0 || f.Forced(k.Name()) {
			p.roster.Serving(s.Name())
		}
		changed := s.Maker.Views.Publish()
		p.screen.Blame(s)
		p.screen.Spoil(changed)
		f.Views += len(changed)
		s.Free()
	}
	if f.Number >= p.course.Undo && !slices.ContainsFunc(f.Late(), func(name string) bool {
		return p.roster.Plugins[name] != nil && p.roster.Plugins[name].Kind() == pb.KindGenerator
	}) {
		p.course.Undo = 0
	}
	p.screen.RetryLate()
	p.show(now)
}

// finish notes that the revision is served.
func (p *pipeline) finish(now time.Time) {
	f := p.course.Flight
	p.course.Flight = nil
	p.course.Ring() // somebody may wait for a moment without a revision
	if f.Number < p.course.Undo {
		return // it is held
	}
	if !p.course.Started {
		p.course.Started = true
		p.env.Settle()
		close(p.startedUp)
	}
	p.course.Served = state.Served{Number: max(f.Number, p.env.Number()), Kind: f.Kind, Partial: f.Late(), Rows: f.Rows()}
	p.instances.Tell()
	p.onServed(f.Number)
	took := f.Took(now)
	p.metrics.Served(f.Kind, took)
	p.rest()
	p.log.Debug("revision served", "revision", f.Number, "kind", f.Kind, "rows", p.course.Served.Rows, "views", f.Views, "took", took)
}
