package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// parting is a plugin whose rows go in a revision that is not shown before somebody has agreed to what proxies lose by it. Meanwhile its session goes
// on in the shadow, so that it can come back as if nothing had been.
type parting struct {
	known *state.Plugin
	// since is when it began, until how long a moment is waited for at which proxies see all that was committed.
	since, until time.Time
	decide       func(why []string) error
	done         chan error

	// aside: its rows are gone; judged: decide was asked, and said err.
	aside, judged bool
	err           error
	shadow        *state.Shadow
	// endpoints are how many its services had, with those of others.
	endpoints map[string]int
}

// part takes a parting to its next step, where no revision is in the making.
func (dp *departure) part(now time.Time, at func(time.Time)) {
	p := dp.parting
	switch {
	case p == nil || p.judged && p.err == nil:
		return
	case !p.aside && dp.course.Flight == nil && dp.pipeline.AtRest(p.known) && (!p.until.After(now) || dp.calm(p, now, at)):
		dp.stepAside(p, now)
	case !p.aside && !p.until.After(now):
		dp.parting = nil
		p.done <- p.decide([]string{fmt.Sprintf("what proxies would lose could not be found out: revisions were not served whole for %v", dp.holdMax)})
		return
	case !p.aside:
		at(p.until)
	}
	if p.judged && p.err != nil && dp.course.Flight == nil {
		dp.comeBack(p, now)
	}
}

// commitsSoon is how long changes are waited for that are to be committed: under many there are always some.
const commitsSoon = time.Second

// calm reports whether nothing is to be expected that makes up for what goes: a source under another name that has just been declared, and what it says.
func (dp *departure) calm(p *parting, now time.Time, at func(time.Time)) bool {
	for _, k := range dp.roster.Plugins {
		s := dp.roster.Session(k.Name())
		switch {
		case s == nil && k.Ready == nil && !k.Sleep.Asleep && now.Sub(k.Away) < dp.holdMax:
			return false // it was declared just now, and has not come yet
		case s != nil && state.PublishesRows(s.Plugin.Ready) && !s.Plugin.Ready.Derives && !s.Source.Synced:
			return false
		}
	}
	end := p.since.Add(commitsSoon)
	endpoints, rest := dp.env.Pending()
	if (endpoints || rest) && end.After(now) {
		at(end)
		return false
	}
	return true
}

// stepAside begins the revision without a plugin's rows.
func (dp *departure) stepAside(p *parting, now time.Time) {
	k := p.known
	p.aside, p.shadow, p.endpoints = true, state.NewShadow(dp.env.Shard(k.Shard)), map[string]int{}
	for key := range p.shadow.Rows()[environment.Endpoints] {
		service := environment.ServiceOf(key)
		p.endpoints[service] = dp.env.EndpointsOf(service)
	}
	dp.roster.Rivals[k] = &state.Rival{Rules: dp.roster.Rules, Warm: true}
	if k.Session != nil {
		k.Session.Shadow = p.shadow
	}
	gone := state.NewPlugin(state.Expected{Name: k.Name(), Order: k.Expected.Order, Kind: k.Kind()}, k.Shard, time.Time{})
	gone.Ready = &pb.Ready{}
	dp.roster.Plugins[k.Name()] = gone
	delete(dp.course.Forced, k.Name())
	dp.env.Replace(k.Shard, nil)
	dp.pipeline.Begin("removal", dp.env.Of(k.Shard), true, now)
}

// partingLoses has somebody judge what proxies are about to lose, if a plugin is aside of which that
// is not known yet. If it is too much nothing is shown.
func (dp *departure) partingLoses(next state.Shown) (held, judges bool) {
	p := dp.parting
	if p == nil || !p.aside || p.judged {
		return false, false
	}
	if dp.course.Flight == nil || !dp.course.Flight.Patching() {
		return false, true // of endpoints that overtake, or of connections that came
	}
	p.judged, p.err = true, p.decide(p.loses(dp, next))
	if p.err != nil {
		dp.course.Undo = dp.env.Number() + 1
		dp.course.Ring()
		return true, true
	}
	dp.losses.Holds.Approve()
	dp.losses.Holds.Freeze(nil, dp.clock.Now())
	dp.losses.TellHolds()
	p.done <- nil
	return false, true
}

// loses says what proxies would lose.
func (p *parting) loses(dp *departure, next state.Shown) []string {
	if late := dp.course.Flight.Late(); len(late) > 0 {
		return []string{fmt.Sprintf("what proxies would lose is not known: plugins did not answer in time: %s", strings.Join(late, ", "))}
	}
	var thin []string
	for service, had := range p.endpoints {
		left := dp.env.EndpointsOf(service)
		if lost := had - left; left > 0 && lost > 1 && p.known.Guard().MaxRemoved.Exceeded(lost, had) && len(next) > 0 {
			thin = append(thin, fmt.Sprintf("%d of %d endpoints of service %s would go", lost, had, service))
		}
	}
	slices.Sort(thin)
	if more := len(thin) - guard.Examples; more > 0 {
		thin = append(thin[:guard.Examples], fmt.Sprintf("and %d more services would lose as many", more))
	}
	return append(dp.losses.GoneFrom(next), thin...)
}

// comeBack puts the rows back, in a revision of their own.
func (dp *departure) comeBack(p *parting, now time.Time) {
	k := p.known
	dp.parting = nil
	delete(dp.roster.Rivals, k)
	dp.roster.Plugins[k.Name()] = k
	if k.Session != nil {
		k.Session.Shadow = nil
	}
	dp.env.Replace(k.Shard, p.shadow.Rows())
	dp.pipeline.Begin("removal", dp.env.Of(k.Shard), true, now)
	p.done <- p.err
}
