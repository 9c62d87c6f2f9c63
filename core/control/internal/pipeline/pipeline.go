package pipeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/revision"
)

// Pipeline leads revisions through the stages.
type Pipeline struct {
	state *state.State

	timing  revision.Timing
	patches *serving.Patches
	losses  *serving.Losses
	screen  *serving.Screen
	feeder  *Feeder
	intake  *Intake

	StartedUp chan struct{}
	// onServing is called before anybody sees anything of a revision, onServed when it is served.
	onServing func(f *revision.Flight)
	onServed  func(number uint64)
}

// Begin commits what waits (of accept) and starts its revision.
func (p *Pipeline) Begin(kind string, accept func(environment.Name) bool, force bool, now time.Time) {
	var waited time.Duration
	if accept == nil && !p.state.Course.Debounce.Due().IsZero() {
		waited = now.Sub(p.state.Course.Debounce.Due().Add(-p.state.Course.Debounce.After))
		p.state.Metrics.Debounced(waited)
		p.state.Course.Debounce.Reset()
	}
	if kind != revision.Endpoints {
		if endpoints, _ := p.state.Env.Pending.Waits(); endpoints {
			p.state.Course.Pace.Carried(now)
		}
		p.losses.Holds.Begin()
		p.state.Course.Begin()
	}
	force = force || p.state.Course.Forces() || !p.state.Course.Started
	before := p.state.Env.Committed.Number()
	changes := p.state.Course.TakeMoved()
	changes.Merge(p.state.Env.Pending.Commit(force || len(changes) > 0, accept))
	if accept == nil {
		p.state.Seen.Committed(p.state.Env.Committed.Holds, now)
	}
	if p.state.Env.Committed.Number() == before {
		p.Rest()
		return
	}
	p.state.Metrics.Hidden(p.state.Env.Precedence.Hidden())
	p.state.Metrics.Committed(kind)
	p.count(changes)
	p.intake.MarkDirty(changes)
	f := revision.Begin(p.state.Env.Committed.Number(), kind, changes, p.state.Course.TakeForced(), p.timing.HoldMax, now)
	f.Waited = waited
	p.state.Course.TakeOff(f)
	p.Advance(now)
}

// count counts what a commit changed of rows that sources publish.
func (p *Pipeline) count(changes environment.Changes) {
	for table, keys := range changes {
		added, changed, removed := 0, 0, 0
		for key, c := range keys {
			switch {
			case !c.Source:
			case c.Before == nil:
				added++
			case p.state.Env.Committed.Row(environment.Name{Table: table, Key: key}, false) == nil:
				removed++
			default:
				changed++
			}
		}
		if added+changed+removed > 0 {
			p.state.Metrics.Changed(table, added, changed, removed)
		}
	}
}

// Advance leads the revision through the stages as far as nobody is waited for.
func (p *Pipeline) Advance(now time.Time) {
	for f := p.state.Course.Flight; f != nil; f = p.state.Course.Flight {
		switch f.Next(p.state.Roster.LastLevel(), p.wantsOpen) {
		case revision.Derive:
			p.hand(func(k *state.Plugin) bool { return k.Ready.Derives && k.Level == f.Level() }, now)
		case revision.Generate:
			p.hand(func(k *state.Plugin) bool { return k.Kind().Generates() }, now)
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
	f := p.state.Course.Flight
	for _, k := range p.state.Roster.Sorted() {
		if k.Ready == nil || !stage(k) {
			continue
		}
		switch s := p.state.Roster.Session(k.Name()); {
		case s == nil && k.Sleep.Asleep && !k.Sleep.Roused: // there is nothing for it
		case s == nil && state.Concerns(k.Ready, f.Changes):
			f.Away(k.Name(), k.Away, now)
		case s != nil && f.Give(k.Name(), s.Feed.Lacks()):
			p.feeder.SendState(s, f.Number)
		}
	}
}

// handReaders gives the revision to patches and to sources that read; they owe no Done.
func (p *Pipeline) handReaders() {
	for s := range p.state.Roster.Sessions() {
		if s.Generates() || s.Plugin.Ready.Derives || len(s.Feed.Left()) == 0 {
			continue
		}
		p.feeder.SendState(s, p.state.Course.Flight.Number)
		if s.Kind().Patches() {
			p.state.Roster.Patcher(s.Name()).Forget()
			p.screen.SpoilAll()
		}
	}
}

// Resume gives a revision in the making to a plugin that died in it and is back.
func (p *Pipeline) Resume(s *state.Session) {
	if p.state.Course.Flight != nil && p.state.Course.Flight.Back(s.Name()) {
		p.state.Course.Unforce(s.Name())
		p.feeder.SendState(s, p.state.Course.Flight.Number)
	}
}

// wantsOpen reports whether a view that the revision moves connections to still lacks answers.
func (p *Pipeline) wantsOpen() bool {
	for s := range p.state.Roster.Sessions() {
		if s.Maker.Asked.Holds() {
			return true
		}
	}
	return false
}

// serve gives the revision to the proxies, whole.
func (p *Pipeline) serve(now time.Time) {
	f := p.state.Course.Flight
	p.state.Journal.Begin(report.Push{
		Revision: f.Number, Kind: f.Kind, Committed: f.Began().UTC(), Waited: f.Waited, Plugins: f.Plugins, Work: f.Work, Partial: slices.Clone(f.Late()),
	}, max(f.Number, p.state.Env.Committed.Number()), f.Changes, p.state.Env.Committed)
	p.onServing(f)
	for _, k := range p.state.Roster.Sorted() {
		s := p.state.Roster.Session(k.Name())
		if s == nil || !s.Generates() || s.State.Done != s.State.Sent {
			continue
		}
		before := len(s.Maker.Ops)
		if err := s.Apply(); err != nil {
			s.Cancel(fmt.Errorf("plugin %s broke the contract: %w", s.Name(), err))
			continue
		}
		if before > 0 || f.Forced(k.Name()) {
			p.state.Roster.Serving(s.Name())
		}
		changed := s.Maker.Views.Publish()
		p.screen.Blame(s)
		p.screen.Spoil(changed)
		p.state.Journal.Changed(changed)
		f.Views += len(changed)
		s.Free()
	}
	if !p.state.Course.Withholds(f.Number) && !slices.ContainsFunc(f.Late(), func(name string) bool {
		return p.state.Roster.Plugins[name] != nil && p.state.Roster.Plugins[name].Kind().Generates()
	}) {
		p.state.Course.ShowAgain()
	}
	p.screen.RetryLate()
	p.show(now)
}

// show shows the revision to connections once patches have seen all of it.
func (p *Pipeline) show(now time.Time) {
	if p.screen.Show() {
		p.finish(now)
	}
}

// finish notes that the revision is served.
func (p *Pipeline) finish(now time.Time) {
	f := p.state.Course.Flight
	p.state.Course.Land()
	p.state.Journal.End(f.Took(now), p.state.Course.Withholds(f.Number), now)
	if p.state.Course.Withholds(f.Number) {
		return // it is held
	}
	served := state.Served{Number: max(f.Number, p.state.Env.Committed.Number()), Kind: f.Kind, Partial: f.Late(), Rows: f.Rows()}
	if p.state.Course.Serve(served) {
		p.state.Env.Unseen.Seen()
		close(p.StartedUp)
	}
	p.state.Instances.Tell()
	p.onServed(f.Number)
	took := f.Took(now)
	p.state.Metrics.Served(f.Kind, took)
	p.Rest()
	p.state.Log.Debug("revision served", "revision", f.Number, "kind", f.Kind, "rows", p.state.Course.Served.Rows, "views", f.Views, "took", took)
}

// Rest notes that proxies see all that was committed.
func (p *Pipeline) Rest() {
	if p.state.Course.Flight != nil || p.state.Course.Withholding() || len(p.state.Course.Served.Partial) > 0 {
		return
	}
	for _, k := range p.state.Roster.Plugins {
		if !k.Kind().Generates() || k.Ready == nil || k.Sleep.Asleep {
			continue
		}
		s := p.state.Roster.Session(k.Name())
		switch {
		case s == nil && p.state.Clock.Now().Sub(k.Away) >= p.timing.HoldMax: // nobody waits for it any more
		case s == nil, !s.State.Busy.IsZero(), s.Maker.Overtaking != 0, s.State.Acked < s.State.Sent:
			return
		}
	}
	if p.losses.Holds.AllSeen(p.state.Env, p.state.Roster.Shards(), p.state.Clock.Now()) {
		p.state.Course.Hurry()
		p.state.Course.Ring()
	}
}

// AtRest reports whether proxies see all that was committed, so that a plugin can step aside.
func (p *Pipeline) AtRest(k *state.Plugin) bool {
	s := p.state.Roster.Session(k.Name())
	busy := s != nil && s.Plugin.Ready.Derives && !s.State.Busy.IsZero()
	return !busy && !p.state.Course.Withholding() && !p.state.Course.Hurried() && !p.losses.Holds.Approved() &&
		!p.state.Course.Forces() && !p.patches.Asking() && !p.state.Env.Unseen.Any()
}
