package pipeline

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Results are what patches answer.
type Results struct {
	state    *state.State
	patches  *serving.Patches
	screen   *serving.Screen
	pipeline *Pipeline
}

// HandlePatched takes an answer. Late answers, and those to unknown calls, harm nobody.
func (rs *Results) HandlePatched(s *state.Session, m *pb.Patched) error {
	p := s.Plugin.Patcher
	r := p.Answered(m, rs.state.Clock.Now())
	if r == nil {
		rs.state.Metrics.Unknown(s.Name(), "answer", 1)
		return nil
	}
	if manifest.IsLimit(m.Limit) {
		rs.state.Metrics.Crossed(s.Name(), m.Limit)
	}
	rs.Answered(p, r)
	return nil
}

// Answered goes on with what waited for a result.
func (rs *Results) Answered(p *patch.Patcher, r *patch.Result) {
	if why := r.Failed(); why != "" {
		rs.state.Metrics.Fault(p.Name)
		rs.state.Log.Warn("a patch failed", "plugin", p.Name, "type", r.Type(), "resource", r.Name(), "reason", why)
	}
	if rs.state.Course.Flight != nil && rs.state.Course.Flight.Patching() {
		rs.pipeline.Advance(rs.state.Clock.Now())
		return
	}
	rs.screen.Show()
}

// Overdue fails calls that were not answered in time.
func (rs *Results) Overdue(now time.Time, at func(time.Time)) {
	for p, s := range rs.patches.AllPatchers() {
		late := p.Late(now, rs.state.Roster.Patcher(p.Name) == p, at)
		if late.First {
			r := late.Results[0]
			rs.state.Log.Warn("a patch did not answer in time", "plugin", p.Name, "type", r.Type(), "resource", r.Name(), "limit", p.Call)
		}
		if late.Hangs != nil {
			s.Cancel(late.Hangs)
		}
		for _, r := range late.Results {
			rs.state.Metrics.Crossed(p.Name, "call")
			rs.Answered(p, r)
		}
	}
}

// PatcherIsBack asks a patch what it was asked before it died, and what failed meanwhile.
func (rs *Results) PatcherIsBack(p *patch.Patcher) {
	p.Joined()
	rs.patches.AskPatches()
	rs.screen.SpoilAll()
	rs.screen.Show()
}

// AskAgain has a patch that left a call without an answer asked again, so that it is known whether
// it answers at all before the next change needs it.
func (rs *Results) AskAgain(s *state.Session, now time.Time) {
	p := rs.state.Roster.Patcher(s.Name())
	if p == nil || rs.state.Roster.Session(s.Name()) != s || !p.TryAgain(now, s.PingEvery()) {
		return
	}
	rs.screen.RetryLate()
	rs.screen.Show()
}
