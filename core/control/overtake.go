package control

import (
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/outbox"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// overtake commits endpoints on top of what is served, while a revision is in the making.
func (c *Control) overtake() {
	for s := range c.roster.live() {
		if s.overtaking != 0 || s.generates() && s.acked == 0 {
			return // one at a time, and not before there is something to go on top of
		}
	}
	changes := c.env.Commit(false, c.env.Ahead)
	if len(changes) == 0 {
		return
	}
	number := c.env.Number()
	if others := changes[environment.ClusterServices]; others != nil { // of services that others serve now: they wait for the next revision
		delete(changes, environment.ClusterServices)
		c.course.moved.Merge(environment.Changes{environment.ClusterServices: others})
		c.course.soon = true
	}
	c.cfg.Metrics.Committed("overtaking")
	for s := range c.roster.rivalling() {
		s.feed.Changed(changes)
	}
	for s := range c.roster.live() {
		if !s.feed.Reads(environment.Endpoints) {
			continue
		}
		t, size := s.feed.Ahead(c.env, environment.Endpoints, changes[environment.Endpoints], s.suspects)
		if !s.generates() || size > outbox.MaxState {
			s.feed.Changed(changes)
			continue
		}
		s.overtaking = number
		s.out.State(&outbox.Job{Revision: pb.Revision{Epoch: c.course.epoch, Number: number}, Overtakes: true, Tables: []*pb.TableRows{t}})
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
	c.screen.publish(s)
	c.rest()
	return nil
}
