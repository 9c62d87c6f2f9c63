package control

import (
	"iter"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/outbox"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// newPatcher returns a plugin's patch, of which nothing is known yet.
func (pt *patching) newPatcher(k *known) *patch.Patcher {
	p := patch.New(k.patches(pt.patience))
	p.Describes(k.ready)
	return p
}

func (k *known) patches(patience time.Duration) patch.Settings {
	return patch.Settings{Name: k.Name(), Skips: k.Expected.Skips, Call: k.Expected.Limits.Call, Patience: patience}
}

// patcher is that of a plugin that is served; nil: it is no patch.
func (r *roster) patcher(name string) *patch.Patcher {
	if k := r.known[name]; k != nil {
		return k.patcher
	}
	return nil
}

// patchers yields those that are served.
func (r *roster) patchers() iter.Seq[*patch.Patcher] {
	return func(yield func(*patch.Patcher) bool) {
		for _, k := range r.known {
			if k.patcher != nil && !yield(k.patcher) {
				return
			}
		}
	}
}

// allPatchers yields those that are served and those that are tried, and their sessions; nil: there is none.
func (pt *patching) allPatchers() iter.Seq2[*patch.Patcher, *session] {
	return func(yield func(*patch.Patcher, *session) bool) {
		for _, k := range pt.roster.known {
			if k.patcher != nil && !yield(k.patcher, k.session) {
				return
			}
		}
		for k := range pt.roster.rivals {
			if k.patcher != nil && k.session != nil && !yield(k.patcher, k.session) {
				return
			}
		}
	}
}

// askPatches sends patches what they are to be asked.
func (pt *patching) askPatches() {
	for p, s := range pt.allPatchers() {
		for _, call := range p.Calls() {
			call.Revision = &pb.Revision{Epoch: pt.course.epoch, Number: s.State.Sent}
			s.out.State(&outbox.Job{Call: &pb.FromCore{Patch: call}})
		}
	}
}

// takePatched takes an answer. Late answers, and those to unknown calls, harm nobody.
func (rs *results) takePatched(s *session, m *pb.Patched) error {
	p := s.plugin.patcher
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
	if rs.course.flight != nil && rs.course.flight.Patching() {
		rs.pipeline.advance(rs.clock.Now())
		return
	}
	rs.screen.settle()
}

// overdue fails calls that were not answered in time.
func (rs *results) overdue(now time.Time, at func(time.Time)) {
	for p, s := range rs.patches.allPatchers() {
		late := p.Late(now, rs.roster.patcher(p.Name) == p, at)
		if late.First {
			r := late.Results[0]
			rs.log.Warn("a patch did not answer in time", "plugin", p.Name, "type", r.Type(), "resource", r.Name(), "limit", p.Call)
		}
		if late.Hangs != nil {
			s.cancel(late.Hangs)
		}
		for _, r := range late.Results {
			rs.metrics.Crossed(p.Name, "call")
			rs.answered(p, r)
		}
	}
}

// retryLate makes live patches be asked again about what they did not answer in time.
func (v *screen) retryLate() {
	for p := range v.roster.patchers() {
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
	for p := range pt.roster.patchers() {
		if p.Asking() {
			return true
		}
	}
	return false
}

// chain returns the patches for a connection's type, in order. The first revision waits for all that aren't optional.
func (pt *patching) chain(conn *connection, typeURL string) []*patch.Patcher {
	return pt.chainBy(conn, typeURL, pt.roster.rules, nil)
}

// chainBy is chain by other rules, with another patch in the place of the one of its name.
func (pt *patching) chainBy(conn *connection, typeURL string, rules Rules, instead *patch.Patcher) []*patch.Patcher {
	if !pt.roster.hasPatches() || rules.Patches == nil || pt.roster.traits(conn.generator[typeURL], typeURL).BodyType != "" {
		return nil
	}
	var chain []*patch.Patcher
	for _, name := range rules.Patches(typeURL, conn.peer.Node) {
		p := pt.roster.patcher(name)
		if instead != nil && instead.Name == name {
			p = instead
		}
		if p != nil && p.Offers(typeURL) {
			chain = append(chain, p)
		}
	}
	return chain
}

// hasPatches reports whether any plugin that is served is a patch.
func (r *roster) hasPatches() bool {
	for range r.patchers() {
		return true
	}
	return false
}

// compose returns what the connection's view looks like after its patches; ok is false while
// patches are being asked, which waiting notes.
func (pt *patching) compose(conn *connection, typeURL string, waiting patch.Waiting) (snap *view.Snapshot, ok bool) {
	return pt.composeBy(conn, typeURL, pt.chain(conn, typeURL), pt.made, waiting)
}

// composeBy is compose by a chain, with what there is of it.
func (pt *patching) composeBy(conn *connection, typeURL string, chain []*patch.Patcher, made *patch.Made, waiting patch.Waiting) (snap *view.Snapshot, ok bool) {
	v := conn.places.View(typeURL)
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
		for p := range pt.roster.patchers() {
			if !yield(p) {
				return
			}
		}
	}, func(yield func(*patch.Made) bool) {
		for _, r := range pt.roster.rivals {
			if r.made != nil && !yield(r.made) {
				return
			}
		}
	})
}

// hasComposed reports whether the trial's patch, if it is one, has seen all that proxies have; what
// it has not, it is asked.
func (t *candidate) hasComposed() bool {
	if t.known.patcher == nil {
		return true
	}
	if t.known.patcher.Asking() || t.ts.patches.asking() {
		return false
	}
	waiting := patch.Waiting{}
	t.compose(waiting, func(*connection, string, *view.Snapshot) {})
	return len(waiting) == 0
}

// compose calls with what each connection would have of each type that the patch concerns, before
// or after; what is not known yet is noted.
func (t *candidate) compose(waiting patch.Waiting, with func(*connection, string, *view.Snapshot)) {
	ts := t.ts
	for _, conn := range ts.conns.sorted() {
		for url := range conn.places.All() {
			chain := ts.patches.chainBy(conn, url, ts.roster.rivals[t.known].rules, t.known.patcher)
			now := ts.patches.chain(conn, url)
			if !slices.Contains(chain, t.known.patcher) && !slices.ContainsFunc(now, func(p *patch.Patcher) bool { return p.Name == t.known.patcher.Name }) {
				continue
			}
			if snap, ok := ts.patches.composeBy(conn, url, chain, ts.roster.rivals[t.known].made, waiting); ok {
				with(conn, url, snap)
			}
		}
	}
}
