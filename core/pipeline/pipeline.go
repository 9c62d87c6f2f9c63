package pipeline

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/outbox"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/serving"
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Drop takes rows away whose source is away for too long, and serves them again when it is back, each in a revision of its own. It waits for a moment
// at which proxies see all that was committed, so that nothing else is let through with it.
func (p *Pipeline) Drop(now time.Time, at func(time.Time)) {
	if !p.course.Started {
		return
	}
	for _, k := range p.roster.Sorted() {
		over := k.Absence.Over(now)
		if due := k.Absence.Due(); !due.IsZero() && !over {
			at(due)
		}
		if over == k.Shard.Aside() || over && state.RowsOf(p.env, k.Shard) == 0 || p.course.Flight != nil || !p.AtRest(k) {
			continue
		}
		p.setAside(k, over, now)
	}
}

func (p *Pipeline) setAside(k *state.Plugin, aside bool, now time.Time) {
	changes := p.env.SetAside(k.Shard, aside)
	rows, accept := state.RowsOf(p.env, k.Shard), func(environment.Name) bool { return false }
	kind := "dropped"
	if aside {
		p.log.Warn("a plugin's rows are dropped: its source is away for longer than onLoss allows (drop-after)", "plugin", k.Name(), "rows", rows,
			"since", k.Absence.Since.UTC().Format(time.RFC3339), "after", k.Absence.After, "reason", k.Absence.Why)
		p.losses.Holds.ApproveNext(true) // that is what was asked for
	} else {
		p.log.Info("a plugin's rows are served again: its source is back", "plugin", k.Name(), "rows", rows)
		kind, accept = "returned", p.env.Of(k.Shard)
	}
	p.course.Moved.Merge(changes)
	p.Begin(kind, accept, true, now)
}

// FallAsleep notes that the session of a plugin that sleeps has ended.
func (p *Pipeline) FallAsleep(s *state.Session, now time.Time) {
	s.Plugin.Away = time.Time{}
	s.Plugin.Suspects.Forget()
	s.Plugin.Absence.Ends()
	if s.Generates() && state.PublishesRows(s.Plugin.Ready) { // what it said was for those whom it served
		p.env.Replace(s.Plugin.Shard, nil)
		p.intake.Touched(s.Name(), now)
	}
	if p.intake.sleepers.Wanted(s.Name()) { // since it was told to go
		p.roster.Rouse(s.Name())
	}
	if p.course.Flight != nil {
		p.course.Flight.Leave(s.Name())
		p.Advance(now)
	}
}

// NotReady says why new streams are not taken.
func (p *Pipeline) NotReady() []string {
	if p.course.Closed {
		return []string{"it is stopping"}
	}
	if !p.course.Started {
		reasons := p.Unready()
		if len(reasons) == 0 {
			reasons = []string{"the first revision is being made" + p.waitingFor()}
		}
		return reasons
	}
	var reasons []string
	for _, k := range p.roster.Sorted() {
		if k.Expected.Blocks && k.Ready != nil && k.Session == nil && !k.Sleep.Asleep {
			reasons = append(reasons, "plugin "+k.Name()+" is away (onFailure: block)")
		}
	}
	return reasons
}

func (p *Pipeline) waitingFor() string {
	if p.course.Flight == nil || len(p.course.Flight.Waiting()) == 0 {
		return ""
	}
	return " by " + strings.Join(p.course.Flight.Waiting(), ", ")
}

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

// TakeDone notes that a plugin has said all about a revision.
func (p *Pipeline) TakeDone(s *state.Session, m *pb.Done, now time.Time) error {
	if m.Revision == nil {
		return fmt.Errorf("its Done names no revision")
	}
	if s.Maker.Overtaking != 0 && m.Revision.Number == s.Maker.Overtaking {
		return p.overtaken(s)
	}
	p.roster.TakeFaults(s, m.Faults, now)
	if m.Revision.Number == s.State.Done && s.State.Busy.IsZero() {
		return nil // it is done already: what failed has changed
	}
	if m.Revision.Number != s.State.Sent {
		return nil // of a state that a newer one has replaced
	}
	s.State.Done, s.State.Busy, s.Plugin.Late = m.Revision.Number, time.Time{}, time.Time{}
	s.Plugin.Suspects.Done(s.Feed.Left())
	if s.Generates() {
		s.Maker.Unused.Done()
		s.LetGo()
	}
	if s.Plugin.Ready.Derives {
		p.intake.derived(s, now)
	}
	f := p.course.Flight
	switch {
	case s.Shadow != nil:
		return p.shadowDone(s)
	case f == nil && s.Generates():
		// It was late: the revision went out without it.
		return p.accept(s)
	case f == nil:
		return nil
	}
	switch waited, again := f.Done(s.Name(), s.State.Done); {
	case again:
		p.feeder.SendState(s, f.Number)
	case waited:
		p.Advance(now)
	}
	return nil
}

// accept applies what a generator said late.
func (p *Pipeline) accept(s *state.Session) error {
	if err := s.Apply(); err != nil {
		return err
	}
	p.roster.Serving(s.Name())
	if p.course.Flight == nil && s.State.Done >= p.course.Undo {
		p.course.Undo = 0
		p.instances.Tell()
	}
	p.screen.Publish(s)
	s.Free()
	p.Rest()
	return nil
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

// show shows the revision to connections once patches have seen all of it.
func (p *Pipeline) show(now time.Time) {
	if p.screen.Settle() {
		p.finish(now)
	}
}

// hand gives the revision to those plugins of a stage that it concerns, and waits for them; also for one that died just now.
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

// wantsOpen says whether a view that the revision moves connections to still lacks answers.
func (p *Pipeline) wantsOpen() bool {
	for s := range p.roster.Sessions() {
		if s.Maker.Asked.Holds() {
			return true
		}
	}
	return false
}

// giveUp serves the revision without the plugins that are late.
func (p *Pipeline) giveUp(now time.Time) {
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
	p.Advance(now)
}

// noteLate notes that the revision goes out without a plugin.
func (p *Pipeline) noteLate(name string, now time.Time) {
	p.metrics.Partial(name)
	if k := p.roster.Plugins[name]; k != nil && k.Late.IsZero() {
		k.Late = now
	}
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

// overtake commits endpoints on top of what is served, while a revision is in the making.
func (p *Pipeline) overtake() {
	for s := range p.roster.Sessions() {
		if s.Maker.Overtaking != 0 || s.Generates() && s.State.Acked == 0 {
			return // one at a time, and not before there is something to go on top of
		}
	}
	changes := p.env.Commit(false, p.env.Ahead)
	if len(changes) == 0 {
		return
	}
	number := p.env.Number()
	if others := changes[environment.ClusterServices]; others != nil { // of services that others serve now: they wait for the next revision
		delete(changes, environment.ClusterServices)
		p.course.Moved.Merge(environment.Changes{environment.ClusterServices: others})
		p.course.Soon = true
	}
	p.metrics.Committed("overtaking")
	for s := range p.roster.RivalSessions() {
		s.Feed.Changed(changes)
	}
	for s := range p.roster.Sessions() {
		if !s.Feed.Reads(environment.Endpoints) {
			continue
		}
		t, size := s.Feed.Ahead(p.env, environment.Endpoints, changes[environment.Endpoints], s.Plugin.Suspects)
		if !s.Generates() || size > outbox.MaxState {
			s.Feed.Changed(changes)
			continue
		}
		s.Maker.Overtaking = number
		s.Out.State(&outbox.Job{Revision: pb.Revision{Epoch: p.course.Epoch, Number: number}, Overtakes: true, Tables: []*pb.TableRows{t}})
	}
}

// overtaken applies what a generator made of endpoints that overtook: now, and again when the revision that they overtook is served.
func (p *Pipeline) overtaken(s *state.Session) error {
	ops := s.Maker.OvertakenOps
	s.Maker.Overtaking, s.Maker.OvertakenOps = 0, nil
	for _, o := range ops {
		if err := o(); err != nil {
			return err
		}
	}
	if len(s.Maker.Ops) > 0 {
		s.Maker.Ops = append(s.Maker.Ops, ops...)
	}
	p.screen.Publish(s)
	p.Rest()
	return nil
}

// AtRest reports whether proxies see all that was committed, so that a plugin can step aside.
func (p *Pipeline) AtRest(k *state.Plugin) bool {
	s := p.roster.Session(k.Name())
	busy := s != nil && s.Plugin.Ready.Derives && !s.State.Busy.IsZero()
	return !busy && p.course.Undo == 0 && !p.course.Soon && !p.losses.Holds.Approved() && len(p.course.Forced) == 0 && !p.patches.Asking() && !p.env.HasUnsettled()
}

// Paced reports whether endpoints may have a revision of their own now, and otherwise says when.
func (p *Pipeline) Paced(now time.Time, at func(time.Time)) bool {
	ok, again := p.course.Pace.May(len(p.conns.All), now)
	at(again)
	return ok
}

// Tidy says whether a revision without changes should be made, so that generators and the core let go of what is not used.
// Those that start on demand end instead, unless memory is short.
func (p *Pipeline) Tidy(now time.Time, at func(time.Time)) bool {
	after, short := serving.TidyAfter, p.conns.Left.IsShort(now)
	if short {
		after = serving.TidySoon
	}
	for s := range p.roster.Sessions() {
		due, again := s.Maker.Unused.Tidy(s.Generates() && (short || !s.Plugin.Expected.OnDemand), after, !s.State.Busy.IsZero(), now)
		at(again)
		if due {
			p.course.Forced[s.Name()] = true
		}
	}
	return len(p.course.Forced) > 0
}

// Hold looks after the revision in the making: endpoints may overtake it, and it doesn't wait for ever.
func (p *Pipeline) Hold(now time.Time, at func(time.Time)) {
	f := p.course.Flight
	until := f.Until()
	switch {
	case until.IsZero():
		return
	case !until.After(now):
		if p.giveUp(now); p.course.Flight == f {
			at(f.Until())
		}
		return
	}
	at(until)
	overtaken := f.Overtaken(p.timing.endpointPatience)
	switch endpoints, _ := p.env.Pending(); {
	case !endpoints || !p.course.Started || p.timing.debounceEndpoints || overtaken.IsZero():
	case overtaken.After(now):
		at(overtaken)
	case p.Paced(now, at):
		p.overtake()
	}
}

// Unready says what the first revision waits for.
func (p *Pipeline) Unready() []string {
	var reasons []string
	for _, k := range p.roster.Sorted() {
		if k.Expected.Optional || k.Kind() == pb.KindAuthenticator || k.Kind() == pb.KindController {
			continue
		}
		s := p.roster.Session(k.Name())
		switch {
		case k.Sleep.Asleep:
		case s == nil:
			reasons = append(reasons, fmt.Sprintf("plugin %s has not started", k.Name()))
		case k.Kind() == pb.KindPatch:
		case !s.Plugin.Ready.Derives && !s.Source.Synced && (!s.Generates() || len(s.Plugin.Ready.Publishes) > 0):
			reasons = append(reasons, fmt.Sprintf("plugin %s has not synced", k.Name()))
		}
	}
	if len(reasons) == 0 && !p.instances.Gone {
		p.instances.Gather()
		reasons = append(reasons, "plugins that rows ask for (forEach) are being started")
	}
	return reasons
}

// Resume gives a revision in the making to a plugin that died in it and is back.
func (p *Pipeline) Resume(s *state.Session) {
	if p.course.Flight != nil && p.course.Flight.Back(s.Name()) {
		delete(p.course.Forced, s.Name())
		p.feeder.SendState(s, p.course.Flight.Number)
	}
}

// shadowDone takes in what a generator said of a revision.
func (p *Pipeline) shadowDone(s *state.Session) error {
	if !s.Generates() {
		return nil
	}
	if err := s.Apply(); err != nil {
		return err
	}
	p.screen.Publish(s)
	s.Free()
	return nil
}
