package control

import (
	"iter"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/outbox"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// newPatcher returns a plugin's patch, of which nothing is known yet.
func (pt *patching) newPatcher(k *state.Plugin) *patch.Patcher {
	p := patch.New(k.PatchSettings(pt.patience))
	p.Describes(k.Ready)
	return p
}

// allPatchers yields those that are served and those that are tried, and their sessions; nil: there is none.
func (pt *patching) allPatchers() iter.Seq2[*patch.Patcher, *state.Session] {
	return func(yield func(*patch.Patcher, *state.Session) bool) {
		for _, k := range pt.roster.Plugins {
			if k.Patcher != nil && !yield(k.Patcher, k.Session) {
				return
			}
		}
		for k := range pt.roster.Rivals {
			if k.Patcher != nil && k.Session != nil && !yield(k.Patcher, k.Session) {
				return
			}
		}
	}
}

// askPatches sends patches what they are to be asked.
func (pt *patching) askPatches() {
	for p, s := range pt.allPatchers() {
		for _, call := range p.Calls() {
			call.Revision = &pb.Revision{Epoch: pt.course.Epoch, Number: s.State.Sent}
			s.Out.State(&outbox.Job{Call: &pb.FromCore{Patch: call}})
		}
	}
}

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
	rs.screen.settle()
}

// overdue fails calls that were not answered in time.
func (rs *results) overdue(now time.Time, at func(time.Time)) {
	for p, s := range rs.patches.allPatchers() {
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

// retryLate makes live patches be asked again about what they did not answer in time.
func (v *screen) retryLate() {
	for p := range v.roster.Patchers() {
		if p.Retry() {
			v.spoilAll()
		}
	}
}

// patcherIsBack asks a patch what it was asked before it died, and what failed meanwhile.
func (rs *results) patcherIsBack(p *patch.Patcher) {
	p.Joined()
	rs.patches.askPatches()
	rs.screen.spoilAll()
	rs.screen.settle()
}

// asking reports whether patches owe answers.
func (pt *patching) asking() bool {
	for p := range pt.roster.Patchers() {
		if p.Asking() {
			return true
		}
	}
	return false
}

// chain returns the patches for a connection's type, in order. The first revision waits for all that aren't optional.
func (pt *patching) chain(conn *state.Connection, typeURL string) []*patch.Patcher {
	return pt.chainBy(conn, typeURL, pt.roster.Rules, nil)
}

// chainBy is chain by other rules, with another patch in the place of the one of its name.
func (pt *patching) chainBy(conn *state.Connection, typeURL string, rules state.Rules, instead *patch.Patcher) []*patch.Patcher {
	if !pt.roster.HasPatches() || rules.Patches == nil || pt.roster.Traits(conn.Generators[typeURL], typeURL).BodyType != "" {
		return nil
	}
	var chain []*patch.Patcher
	for _, name := range rules.Patches(typeURL, conn.Peer.Node) {
		p := pt.roster.Patcher(name)
		if instead != nil && instead.Name == name {
			p = instead
		}
		if p != nil && p.Offers(typeURL) {
			chain = append(chain, p)
		}
	}
	return chain
}

// compose returns what the connection's view looks like after its patches; ok is false while
// patches are being asked, which waiting notes.
func (pt *patching) compose(conn *state.Connection, typeURL string, waiting patch.Waiting) (snap *view.Snapshot, ok bool) {
	return pt.composeBy(conn, typeURL, pt.chain(conn, typeURL), pt.made, waiting)
}

// composeBy is compose by a chain, with what there is of it.
func (pt *patching) composeBy(conn *state.Connection, typeURL string, chain []*patch.Patcher, made *patch.Made, waiting patch.Waiting) (snap *view.Snapshot, ok bool) {
	v := conn.Places.View(typeURL)
	if v == nil || v.Snapshot() == nil {
		return nil, true
	}
	if len(chain) == 0 {
		return v.Snapshot(), true
	}
	snap, ok = made.Of(v, chain, pt.made, waiting, pt.clock.Now())
	if !ok {
		pt.askPatches()
	}
	return snap, ok
}

// sweep lets go of results of patches that nothing stands on.
func (pt *patching) sweep() {
	pt.made.Sweep(func(yield func(*patch.Patcher) bool) {
		for p := range pt.roster.Patchers() {
			if !yield(p) {
				return
			}
		}
	}, func(yield func(*patch.Made) bool) {
		for _, r := range pt.roster.Rivals {
			if r.Made != nil && !yield(r.Made) {
				return
			}
		}
	})
}

// hasComposed reports whether the trial's patch, if it is one, has seen all that proxies have; what
// it has not, it is asked.
func (t *candidate) hasComposed() bool {
	if t.known.Patcher == nil {
		return true
	}
	if t.known.Patcher.Asking() || t.ts.patches.asking() {
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
			chain := ts.patches.chainBy(conn, url, ts.roster.Rivals[t.known].Rules, t.known.Patcher)
			now := ts.patches.chain(conn, url)
			if !slices.Contains(chain, t.known.Patcher) && !slices.ContainsFunc(now, func(p *patch.Patcher) bool { return p.Name == t.known.Patcher.Name }) {
				continue
			}
			if snap, ok := ts.patches.composeBy(conn, url, chain, ts.roster.Rivals[t.known].Made, waiting); ok {
				with(conn, url, snap)
			}
		}
	}
}
