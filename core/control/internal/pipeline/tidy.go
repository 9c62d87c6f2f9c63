package pipeline

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
)

// Tidy reports whether a revision without changes should be made, so that generators and the core
// let go of what is not used. Those that start on demand end instead, unless memory is short.
func (p *Pipeline) Tidy(now time.Time, at func(time.Time)) bool {
	after, short := serving.TidyAfter, p.state.Connections.Left.IsShort(now)
	if short {
		after = serving.TidySoon
	}
	for s := range p.state.Roster.Sessions() {
		wanted := s.Generates() && (short || !s.Plugin.Expected.OnDemand)
		due, again := s.Maker.Unused.Tidy(s.Maker.Views, wanted, short, after, !s.State.Busy.IsZero(), now)
		at(again)
		if due {
			p.state.Course.Force(s.Name())
		}
	}
	return p.state.Course.Forces()
}
