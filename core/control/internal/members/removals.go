package members

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/pipeline"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Removals takes plugins away, one at a time, once it is judged what proxies lose by it.
type Removals struct {
	state    *state.State
	holdMax  time.Duration
	losses   *serving.Losses
	streams  *serving.Streams
	pipeline *pipeline.Pipeline
	// Pending is the one that goes on; nil: none.
	Pending *removal
}

// removal is of a plugin whose rows go in a revision that is not shown before somebody has agreed
// to what proxies lose by it. Meanwhile its session goes on in the shadow, so that it can come back
// as if nothing had been.
type removal struct {
	known *state.Plugin
	// since is when it began, until how long a moment is waited for at which proxies see all that
	// was committed.
	since, until time.Time
	decide       func(why []string) error
	Done         chan error

	// instead are rows that stand in for its own meanwhile; nil: none do, as it is to go.
	instead environment.Tables

	// aside: its rows are gone; judged: decide was asked, and said err.
	aside, judged bool
	err           error
	shadow        *state.Shadow
	// endpoints are how many its services had, with those of others.
	endpoints map[string]int
}

// Step takes a removal to its next step, where no revision is in the making.
func (rs *Removals) Step(now time.Time, at func(time.Time)) {
	p := rs.Pending
	switch {
	case p == nil || p.judged && p.err == nil:
		return
	case !p.aside && rs.state.Course.Flight == nil && rs.pipeline.AtRest(p.known) && (!p.until.After(now) || rs.calm(p, now, at)):
		rs.stepAside(p, now)
	case !p.aside && !p.until.After(now):
		rs.Pending = nil
		p.Done <- p.decide([]string{fmt.Sprintf("what proxies would lose could not be found out: revisions were not served whole for %v", rs.holdMax)})
		return
	case !p.aside:
		at(p.until)
	}
	if p.judged && p.err != nil && rs.state.Course.Flight == nil {
		rs.comeBack(p, now)
	}
}

// calm reports whether nothing is to be expected that makes up for what goes: a source under
// another name that has just been declared, and what it says.
func (rs *Removals) calm(p *removal, now time.Time, at func(time.Time)) bool {
	for _, k := range rs.state.Roster.Plugins {
		s := rs.state.Roster.Session(k.Name())
		switch {
		case s == nil && k.Ready == nil && !k.Sleep.Asleep && now.Sub(k.Away) < rs.holdMax:
			return false // it was declared just now, and has not come yet
		case s != nil && state.PublishesRows(s.Plugin.Ready) && !s.Plugin.Ready.Derives && !s.Source.Synced:
			return false
		}
	}
	end := p.since.Add(commitsSoon)
	endpoints, rest := rs.state.Env.Pending.Waits()
	if (endpoints || rest) && end.After(now) {
		at(end)
		return false
	}
	return true
}

// commitsSoon is how long changes are waited for that are to be committed: under many there are
// always some.
const commitsSoon = time.Second

// stepAside begins the revision without a plugin's rows.
func (rs *Removals) stepAside(p *removal, now time.Time) {
	k := p.known
	p.aside, p.shadow, p.endpoints = true, state.NewShadow(rs.state.Env.Pending.Shard(k.Shard)), map[string]int{}
	for key := range p.shadow.Rows()[environment.Endpoints] {
		service := environment.ServiceOf(key)
		p.endpoints[service] = rs.state.Env.Tally.EndpointsOf(service)
	}
	rs.state.Roster.StepAside(k, p.shadow)
	rs.state.Course.Unforce(k.Name())
	rs.state.Env.Pending.Replace(k.Shard, p.instead)
	rs.pipeline.Begin("removal", rs.state.Env.Pending.Of(k.Shard), true, now)
}

// Loses has somebody judge what proxies are about to lose, if a plugin is aside of which
// that is not known yet. If it is too much nothing is shown.
func (rs *Removals) Loses(next state.Shown) (held, judges bool) {
	p := rs.Pending
	if p == nil || !p.aside || p.judged {
		return false, false
	}
	if rs.state.Course.Flight == nil || !rs.state.Course.Flight.Patching() {
		return false, true // of endpoints that overtake, or of connections that came
	}
	p.judged, p.err = true, p.decide(p.loses(rs, next))
	if p.err != nil {
		rs.state.Course.Withhold(rs.state.Env.Committed.Number() + 1)
		rs.state.Course.Ring()
		return true, true
	}
	rs.losses.Holds.Approve()
	rs.losses.Holds.Freeze(nil, rs.state.Clock.Now())
	rs.losses.TellHolds()
	p.Done <- nil
	return false, true
}

// loses says what proxies would lose.
func (p *removal) loses(rs *Removals, next state.Shown) []string {
	if late := rs.state.Course.Flight.Late(); len(late) > 0 {
		return []string{fmt.Sprintf("what proxies would lose is not known: plugins did not answer in time: %s", strings.Join(late, ", "))}
	}
	if p.instead != nil {
		return rs.losses.TooMuchFrom(next, p.known.Guard().MaxRemoved)
	}
	var thin []string
	for service, had := range p.endpoints {
		left := rs.state.Env.Tally.EndpointsOf(service)
		if lost := had - left; left > 0 && lost > 1 && p.known.Guard().MaxRemoved.Exceeded(lost, had) && len(next) > 0 {
			thin = append(thin, fmt.Sprintf("%d of %d endpoints of service %s would go", lost, had, service))
		}
	}
	slices.Sort(thin)
	if more := len(thin) - guard.Examples; more > 0 {
		thin = append(thin[:guard.Examples], fmt.Sprintf("and %d more services would lose as many", more))
	}
	return append(rs.losses.GoneFrom(next), thin...)
}

// comeBack puts the rows back, in a revision of their own.
func (rs *Removals) comeBack(p *removal, now time.Time) {
	k := p.known
	rs.Pending = nil
	rs.state.Roster.ComeBack(k)
	rs.state.Env.Pending.Replace(k.Shard, p.shadow.Rows())
	rs.pipeline.Begin("removal", rs.state.Env.Pending.Of(k.Shard), true, now)
	p.Done <- p.err
}

// departs reports whether a plugin is being removed, and its rows are gone.
func (rs *Removals) departs(name string) bool {
	p := rs.Pending
	return p != nil && p.aside && p.known.Name() == name
}

// Following returns the rows of tables as proxies are served by them, and has instances told of
// changes from now on; ok: no revision is in the making, and nobody is being removed.
func (rs *Removals) Following(tables []string) (rows map[string][]*pb.Row, ok bool) {
	rs.state.Instances.Follow(tables)
	if rs.state.Course.Flight != nil || rs.state.Course.Withholding() || rs.Pending != nil {
		rs.state.Instances.Remember()
		return nil, false
	}
	rows = map[string][]*pb.Row{}
	for _, t := range tables {
		for _, row := range rs.state.Env.Committed.Rows(t, false) {
			rows[t] = append(rows[t], row)
		}
	}
	return rows, true
}
