package control

import (
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// takePatched takes an answer. Late answers, and those to unknown calls, harm nobody.
func (rs *results) takePatched(s *state.Session, m *pb.Patched) error {
	p := s.Plugin.Patcher
	r := p.Answered(m, rs.clock.Now())
	if r == nil {
		rs.metrics.Unknown(s.Name(), "answer", 1)
		return nil
	}
	if manifest.IsLimit(m.Limit) {
		rs.metrics.Crossed(s.Name(), m.Limit)
	}
	rs.answered(p, r)
	return nil
}

// answered goes on with what waited for a result.
func (rs *results) answered(p *patch.Patcher, r *patch.Result) {
	if why := r.Failed(); why != "" {
		rs.metrics.Fault(p.Name)
		rs.log.Warn("a patch failed", "plugin", p.Name, "type", r.Type(), "resource", r.Name(), "reason", why)
	}
	if rs.course.Flight != nil && rs.course.Flight.Patching() {
		rs.pipeline.advance(rs.clock.Now())
		return
	}
	rs.screen.Settle()
}

// overdue fails calls that were not answered in time.
func (rs *results) overdue(now time.Time, at func(time.Time)) {
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
			rs.answered(p, r)
		}
	}
}

// patcherIsBack asks a patch what it was asked before it died, and what failed meanwhile.
func (rs *results) patcherIsBack(p *patch.Patcher) {
	p.Joined()
	rs.patches.AskPatches()
	rs.screen.SpoilAll()
	rs.screen.Settle()
}

// hasComposed reports whether the trial's patch, if it is one, has seen all that proxies have; what
// it has not, it is asked.
func (t *candidate) hasComposed() bool {
	if t.known.Patcher == nil {
		return true
	}
	if t.known.Patcher.Asking() || t.ts.patches.Asking() {
		return false
	}
	waiting := patch.Waiting{}
	t.compose(waiting, func(*state.Connection, string, *view.Snapshot) {})
	return len(waiting) == 0
}

// compose calls with what each connection would have of each type that the patch concerns, before
// or after; what is not known yet is noted.
func (t *candidate) compose(waiting patch.Waiting, with func(*state.Connection, string, *view.Snapshot)) {
	ts := t.ts
	for _, conn := range ts.conns.Sorted() {
		for url := range conn.Places.All() {
			chain := ts.patches.ChainBy(conn, url, ts.roster.Rivals[t.known].Rules, t.known.Patcher)
			now := ts.patches.Chain(conn, url)
			if !slices.Contains(chain, t.known.Patcher) && !slices.ContainsFunc(now, func(p *patch.Patcher) bool { return p.Name == t.known.Patcher.Name }) {
				continue
			}
			if snap, ok := ts.patches.ComposeBy(conn, url, chain, ts.roster.Rivals[t.known].Made, waiting); ok {
				with(conn, url, snap)
			}
		}
	}
}
