package control

import (
	"fmt"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// takeDone notes that a plugin has said all about a revision.
func (p *pipeline) takeDone(s *session, m *pb.Done, now time.Time) error {
	if m.Revision == nil {
		return fmt.Errorf("its Done names no revision")
	}
	if s.Maker.Overtaking != 0 && m.Revision.Number == s.Maker.Overtaking {
		return p.overtaken(s)
	}
	p.roster.takeFaults(s, m.Faults, now)
	if m.Revision.Number == s.State.Done && s.State.Busy.IsZero() {
		return nil // it is done already: what failed has changed
	}
	if m.Revision.Number != s.State.Sent {
		return nil // of a state that a newer one has replaced
	}
	s.State.Done, s.State.Busy, s.plugin.late = m.Revision.Number, time.Time{}, time.Time{}
	s.plugin.suspects.Done(s.feed.Left())
	if s.generates() {
		s.Maker.Unused.Done()
		s.letGo()
	}
	if s.plugin.ready.Derives {
		p.intake.derived(s, now)
	}
	f := p.course.flight
	switch {
	case s.shadow != nil:
		return p.shadowDone(s)
	case f == nil && s.generates():
		// It was late: the revision went out without it.
		return p.accept(s)
	case f == nil:
		return nil
	}
	switch waited, again := f.Done(s.Name(), s.State.Done); {
	case again:
		p.feeder.sendState(s, f.Number)
	case waited:
		p.advance(now)
	}
	return nil
}

// takeFaults keeps what failed, since when, and logs and counts what did not fail before.
func (r *roster) takeFaults(s *session, faults []*pb.Fault, now time.Time) {
	type said struct{ what, reason string }
	old := make(map[said]time.Time, len(s.plugin.faults))
	for _, f := range s.plugin.faults {
		old[said{f.What, f.Reason}] = f.since
	}
	s.plugin.faults = make([]fault, len(faults))
	for i, f := range faults {
		since, ok := old[said{f.What, f.Reason}]
		if ok {
			s.plugin.faults[i] = fault{f, since}
			continue
		}
		s.plugin.faults[i] = fault{f, now}
		r.metrics.Fault(s.Name())
		rows := make([]string, len(f.Rows))
		for i, r := range f.Rows {
			rows[i] = r.Table + " " + r.Key
		}
		r.log.Warn("work failed; its last good result stays", "plugin", s.Name(), "what", f.What, "reason", f.Reason, "rows", rows)
	}
}

// accept applies what a generator said late.
func (p *pipeline) accept(s *session) error {
	if err := s.apply(); err != nil {
		return err
	}
	p.roster.serving(s.Name())
	if p.course.flight == nil && s.State.Done >= p.course.undo {
		p.course.undo = 0
		p.instances.tell()
	}
	p.screen.publish(s)
	s.free()
	p.rest()
	return nil
}
