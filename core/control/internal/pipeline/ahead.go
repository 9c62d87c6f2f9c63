package pipeline

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/outbox"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Paced reports whether endpoints may have a revision of their own now, and otherwise says when.
func (p *Pipeline) Paced(now time.Time, at func(time.Time)) bool {
	ok, again := p.state.Course.Pace.May(len(p.state.Connections.All), now)
	at(again)
	return ok
}

// overtake commits endpoints on top of what is served, while a revision is in the making.
func (p *Pipeline) overtake() {
	for s := range p.state.Roster.Sessions() {
		if s.Maker.Overtaking != 0 || s.Generates() && s.State.Acked == 0 {
			return // one at a time, and not before there is something to go on top of
		}
	}
	changes := p.state.Env.Pending.Commit(false, p.state.Env.Pending.Ahead)
	if len(changes) == 0 {
		return
	}
	number := p.state.Env.Committed.Number()
	if others := changes[environment.ClusterServices]; others != nil { // of services that others serve now: they wait for the next revision
		delete(changes, environment.ClusterServices)
		p.state.Course.Moved.Merge(environment.Changes{environment.ClusterServices: others})
		p.state.Course.Hurry()
	}
	p.state.Metrics.Committed("overtaking")
	p.count(changes)
	for s := range p.state.Roster.RivalSessions() {
		s.Feed.Changed(changes)
	}
	for s := range p.state.Roster.Sessions() {
		if !s.Feed.Reads(environment.Endpoints) {
			continue
		}
		t, size := s.Feed.Ahead(p.state.Env.Committed, environment.Endpoints, changes[environment.Endpoints], s.Plugin.Suspects)
		if !s.Generates() || size > outbox.MaxState {
			s.Feed.Changed(changes)
			continue
		}
		s.Maker.Overtake(number)
		s.Out.State(&outbox.Job{Revision: pb.Revision{Epoch: p.state.Course.Epoch, Number: number}, Overtakes: true, Tables: []*pb.TableRows{t}})
	}
}

// overtaken applies what a generator made of endpoints that overtook: now, and again when the
// revision that they overtook is served.
func (p *Pipeline) overtaken(s *state.Session) error {
	if err := s.Maker.Overtaken(); err != nil {
		return err
	}
	p.screen.Publish(s)
	p.Rest()
	return nil
}
