package pipeline

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/serving"
)

// Tidy says whether a revision without changes should be made, so that generators and the core let
// go of what is not used. Those that start on demand end instead, unless memory is short.
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
