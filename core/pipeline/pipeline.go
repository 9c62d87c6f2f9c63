package pipeline

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/serving"
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// timing is how long revisions wait.
type timing struct {
	holdMax, endpointPatience time.Duration
	debounceEndpoints         bool
}

// Pipeline leads revisions through the stages.
type Pipeline struct {
	log     *slog.Logger
	metrics state.Metrics

	timing    timing
	env       *environment.Environment
	clock     *state.Clock
	roster    *state.Roster
	course    *state.Course
	conns     *state.Connections
	patches   *serving.Patches
	losses    *serving.Losses
	screen    *serving.Screen
	instances *state.Instances
	feeder    *Feeder
	intake    *Intake

	StartedUp chan struct{}
	// onServed is called when a revision is served.
	onServed func(number uint64)
}

// Begin commits what waits (of accept) and starts its revision.
func (p *Pipeline) Begin(kind string, accept func(environment.Name) bool, force bool, now time.Time) {
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
		p.Rest()
		return
	}
	p.metrics.Hidden(p.env.Hidden())
	p.metrics.Committed(kind)
	p.intake.MarkDirty(changes)
	p.course.Flight = revision.Begin(p.env.Number(), kind, changes, p.course.Forced, p.timing.holdMax, now)
	p.course.Forced = map[string]bool{}
	p.Advance(now)
}

// Advance leads the revision through the stages as far as nobody is waited for.
func (p *Pipeline) Advance(now time.Time) {
	for f := p.course.Flight; f != nil; f = p.course.Flight {
		switch f.Next(p.roster.LastLevel(), p.wantsOpen) {
		case revision.Derive:
			p.hand(func(k *state.Plugin) bool { return k.Ready.Derives && k.Level == f.Level() }, now)
		case revision.Generate:
			p.hand(func(k *state.Plugin) bool { return k.Kind() == pb.KindGenerator }, now)
			p.handReaders()
			p.feeder.FeedShadows()
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

// hand gives the revision to those plugins of a stage that it concerns, and waits for them; also
// for one that died just now.
func (p *Pipeline) hand(stage func(*state.Plugin) bool, now time.Time) {
	f := p.course.Flight
	for _, k := range p.roster.Sorted() {
		if k.Ready == nil || !stage(k) {
			continue
		}
		switch s := p.roster.Session(k.Name()); {
		case s == nil && state.Concerns(k.Ready, f.Changes):
			f.Away(k.Name(), k.Away, now)
		case s != nil && f.Give(k.Name(), s.Feed.Lacks()):
			p.feeder.SendState(s, f.Number)
		}
	}
}

// handReaders gives the revision to patches and to sources that read; they owe no Done.
func (p *Pipeline) handReaders() {
	for s := range p.roster.Sessions() {
		if s.Generates() || s.Plugin.Ready.Derives || len(s.Feed.Left()) == 0 {
			continue
		}
		p.feeder.SendState(s, p.course.Flight.Number)
		if s.Kind() == pb.KindPatch {
			p.roster.Patcher(s.Name()).Forget()
			p.screen.SpoilAll()
		}
	}
}

// Resume gives a revision in the making to a plugin that died in it and is back.
func (p *Pipeline) Resume(s *state.Session) {
	if p.course.Flight != nil && p.course.Flight.Back(s.Name()) {
		delete(p.course.Forced, s.Name())
		p.feeder.SendState(s, p.course.Flight.Number)
	}
}

// wantsOpen says whether a view that the revision moves connections to still lacks answers.
func (p *Pipeline) wantsOpen() bool {
	for s := range p.roster.Sessions() {
		if s.Maker.Asked.Holds() {
			return true
		}
	}
	return false
}

// serve gives the revision to the proxies, whole.
func (p *Pipeline) serve(now time.Time) {
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

// show shows the revision to connections once patches have seen all of it.
func (p *Pipeline) show(now time.Time) {
	if p.screen.Settle() {
		p.finish(now)
	}
}

// finish notes that the revision is served.
func (p *Pipeline) finish(now time.Time) {
	f := p.course.Flight
	p.course.Flight = nil
	p.course.Ring() // somebody may wait for a moment without a revision
	if f.Number < p.course.Undo {
		return // it is held
	}
	if !p.course.Started {
		p.course.Started = true
		p.env.Settle()
		close(p.StartedUp)
	}
	p.course.Served = state.Served{Number: max(f.Number, p.env.Number()), Kind: f.Kind, Partial: f.Late(), Rows: f.Rows()}
	p.instances.Tell()
	p.onServed(f.Number)
	took := f.Took(now)
	p.metrics.Served(f.Kind, took)
	p.Rest()
	p.log.Debug("revision served", "revision", f.Number, "kind", f.Kind, "rows", p.course.Served.Rows, "views", f.Views, "took", took)
}

// Rest notes that proxies see all that was committed.
func (p *Pipeline) Rest() {
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
	if p.losses.Holds.Settled(p.env, p.roster.Shards(), p.clock.Now()) {
		p.course.Soon = true
		p.course.Ring()
	}
}

// AtRest reports whether proxies see all that was committed, so that a plugin can step aside.
func (p *Pipeline) AtRest(k *state.Plugin) bool {
	s := p.roster.Session(k.Name())
	busy := s != nil && s.Plugin.Ready.Derives && !s.State.Busy.IsZero()
	return !busy && p.course.Undo == 0 && !p.course.Soon && !p.losses.Holds.Approved() && len(p.course.Forced) == 0 && !p.patches.Asking() && !p.env.HasUnsettled()
}
