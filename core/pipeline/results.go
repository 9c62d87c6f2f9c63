package pipeline

import (
	"log/slog"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/serving"
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Results are what patches answer.
type Results struct {
	log      *slog.Logger
	metrics  state.Metrics
	clock    *state.Clock
	roster   *state.Roster
	course   *state.Course
	patches  *serving.Patches
	screen   *serving.Screen
	pipeline *Pipeline
}

// TakePatched takes an answer. Late answers, and those to unknown calls, harm nobody.
func (rs *Results) TakePatched(s *state.Session, m *pb.Patched) error {
	p := s.Plugin.Patcher
	r := p.Answered(m, rs.clock.Now())
	if r == nil {
		rs.metrics.Unknown(s.Name(), "answer", 1)
		return nil
	}
	if manifest.IsLimit(m.Limit) {
		rs.metrics.Crossed(s.Name(), m.Limit)
	}
	rs.Answered(p, r)
	return nil
}

// Answered goes on with what waited for a result.
func (rs *Results) Answered(p *patch.Patcher, r *patch.Result) {
	if why := r.Failed(); why != "" {
		rs.metrics.Fault(p.Name)
		rs.log.Warn("a patch failed", "plugin", p.Name, "type", r.Type(), "resource", r.Name(), "reason", why)
	}
	if rs.course.Flight != nil && rs.course.Flight.Patching() {
		rs.pipeline.Advance(rs.clock.Now())
		return
	}
	rs.screen.Settle()
}

// Overdue fails calls that were not answered in time.
func (rs *Results) Overdue(now time.Time, at func(time.Time)) {
	for p, s := range rs.patches.AllPatchers() {
		late := p.Late(now, rs.roster.Patcher(p.Name) == p, at)
		if late.First {
			r := late.Results[0]
			rs.log.Warn("a patch did not answer in time", "plugin", p.Name, "type", r.Type(), "resource", r.Name(), "limit", p.Call)
		}
		if late.Hangs != nil {
			s.Cancel(late.Hangs)
		}
		for _, r := range late.Results {
			rs.metrics.Crossed(p.Name, "call")
			rs.Answered(p, r)
		}
	}
}

// PatcherIsBack asks a patch what it was asked before it died, and what failed meanwhile.
func (rs *Results) PatcherIsBack(p *patch.Patcher) {
	p.Joined()
	rs.patches.AskPatches()
	rs.screen.SpoilAll()
	rs.screen.Settle()
}

// AskAgain has a patch that left a call without an answer asked again, so that it is known whether
// it answers at all before the next change needs it.
func (rs *Results) AskAgain(s *state.Session, now time.Time) {
	p := rs.roster.Patcher(s.Name())
	if p == nil || rs.roster.Session(s.Name()) != s || !p.TryAgain(now, s.PingEvery()) {
		return
	}
	rs.screen.RetryLate()
	rs.screen.Settle()
}
