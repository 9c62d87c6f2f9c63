package control

import (
	"context"
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/serving"

	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Run drives what depends on time, until ctx ends.
func (c *Control) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		c.mu.Lock()
		next := c.due(c.state.Clock.Now())
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
	c.state.Course.Closed = true
	for _, conn := range c.state.Connections.All {
		conn.Wake(xds.WakeAll)
	}
}

// schedule begins what is due. Every event ends with it.
func (c *Control) schedule(now time.Time) {
	c.due(now)
	c.state.Course.Ring()
}

// due begins what is due, and returns when to look again; the zero time if nothing waits.
func (c *Control) due(now time.Time) (next time.Time) {
	at := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	c.stages.Results.overdue(now, at)
	c.stages.Writes.lateStores(now, at)
	c.stages.Sleepers.slumber(now, at)
	for s := range c.state.Roster.AllSessions() {
		s.Give(now, at)
	}
	c.serving.Placer.Expire(now, at)
	if !c.state.Course.Started {
		c.stages.Feeder.tellEarly()
	}
	if !c.state.Course.Started && c.state.Course.Flight == nil && len(c.stages.Pipeline.unready()) > 0 {
		return next
	}
	c.stages.Feeder.feedShadows()
	c.plugins.Departure.part(now, at)
	if c.plugins.Departure.parting == nil {
		c.stages.Pipeline.drop(now, at)
	}
	if c.plugins.Trials.meets(now, at) {
		return next
	}
	c.serving.Losses.OverHolds()
	for c.state.Course.Flight == nil {
		endpoints, rest := c.state.Env.Pending()
		due := c.state.Course.Debounce.Due()
		switch {
		case !c.state.Course.Started, c.state.Course.Soon, len(c.state.Course.Forced) > 0, !due.IsZero() && !due.After(now):
			c.stages.Pipeline.begin(revision.Full, nil, false, now)
		case endpoints && !c.cfg.DebounceEndpoints && c.stages.Pipeline.paced(now, at):
			c.stages.Pipeline.begin(revision.Endpoints, c.state.Env.Ahead, false, now)
		case c.stages.Pipeline.tidy(now, at):
			c.stages.Pipeline.begin(revision.Full, nil, false, now)
		default:
			if rest || endpoints {
				at(due)
			}
			return next
		}
	}
	c.stages.Pipeline.hold(now, at)
	return next
}

// paced reports whether endpoints may have a revision of their own now, and otherwise says when.
func (p *pipeline) paced(now time.Time, at func(time.Time)) bool {
	ok, again := p.course.Pace.May(len(p.conns.All), now)
	at(again)
	return ok
}

// ring makes Run look at the time again.
func (c *Control) ring() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// tidy says whether a revision without changes should be made, so that generators and the core let go of what is not used.
// Those that start on demand end instead, unless memory is short.
func (p *pipeline) tidy(now time.Time, at func(time.Time)) bool {
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

// hold looks after the revision in the making: endpoints may overtake it, and it doesn't wait for ever.
func (p *pipeline) hold(now time.Time, at func(time.Time)) {
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
	case p.paced(now, at):
		p.overtake()
	}
}

// unready says what the first revision waits for.
func (p *pipeline) unready() []string {
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
