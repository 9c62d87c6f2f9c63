package pipeline

import (
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/revision"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// HandleDone notes that a plugin has said all about a revision.
func (p *Pipeline) HandleDone(s *state.Session, m *pb.Done, now time.Time) error {
	if m.Revision == nil {
		return fmt.Errorf("its Done names no revision")
	}
	if s.Maker.Overtaking != 0 && m.Revision.Number == s.Maker.Overtaking {
		return p.overtaken(s)
	}
	p.state.Roster.HandleFaults(s, m.Faults, now)
	if m.Revision.Number == s.State.Done && s.State.Busy.IsZero() {
		return nil // it is done already: what failed has changed
	}
	if m.Revision.Number != s.State.Sent {
		return nil // of a state that a newer one has replaced
	}
	if f := p.state.Course.Flight; f != nil && s.Shadow == nil && !s.State.Busy.IsZero() {
		f.Worked(revision.Work{Plugin: s.Name(), Began: s.State.Busy, Took: now.Sub(s.State.Busy), Spans: spans(m.Spans)})
	}
	s.Finished(m.Revision.Number)
	s.Plugin.Suspects.Done(s.Feed.Left())
	if s.Generates() {
		s.Maker.Unused.Done()
		s.LetGo()
	}
	if s.Plugin.Ready.Derives {
		p.intake.derived(s, now)
	}
	f := p.state.Course.Flight
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

// mostSpans is of how many pieces of work a plugin may tell in a Done, mostName how long the name
// of one may be, in bytes.
const mostSpans, mostName = 20, 100

func spans(told []*pb.Span) (all []revision.Span) {
	for _, s := range told[:min(len(told), mostSpans)] {
		all = append(all, revision.Span{
			Name: budget.Line(s.Name, mostName), Began: time.Unix(0, int64(s.Began)), Ended: time.Unix(0, int64(s.Ended)),
		})
	}
	return all
}

// accept applies what a generator said late.
func (p *Pipeline) accept(s *state.Session) error {
	if err := s.Apply(); err != nil {
		return err
	}
	p.state.Roster.Serving(s.Name())
	if p.state.Course.Flight == nil && !p.state.Course.Withholds(s.State.Done) {
		p.state.Course.ShowAgain()
		p.state.Instances.Tell()
	}
	p.screen.Publish(s)
	s.Free()
	p.Rest()
	return nil
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
