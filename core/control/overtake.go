package control

import (
	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// overtake commits endpoints on top of what is served, while a revision is in the making.
func (c *Control) overtake() {
	for _, s := range c.sessions {
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
		c.moved.Merge(environment.Changes{environment.ClusterServices: others})
		c.soon = true
	}
	c.cfg.Metrics.Committed("overtaking")
	for s := range c.trials.sessions() {
		s.mark(changes)
	}
	for _, s := range c.sessions {
		sources, reads := s.reads[environment.Endpoints]
		if !reads {
			continue
		}
		job := &stateJob{revision: pb.Revision{Epoch: c.epoch, Number: number}, overtakes: true}
		size := 0
		t := &pb.TableRows{Table: environment.Endpoints}
		for key := range changes[environment.Endpoints] {
			r := c.env.Row(environment.Name{Table: environment.Endpoints, Key: key}, sources)
			if r = s.withheld.row(environment.Endpoints, key, r); r != nil {
				t.Upserts = append(t.Upserts, r)
				size += r.Size() + 8
			} else {
				t.Deletes = append(t.Deletes, key)
				size += len(key) + 8
			}
		}
		if !s.generates() || size > stateRoom {
			s.mark(changes)
			continue
		}
		job.tables = []*pb.TableRows{t}
		s.overtaking = number
		s.out.state(job)
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
	c.publish(s)
	c.rest()
	return nil
}
