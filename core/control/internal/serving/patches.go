package serving

import (
	"iter"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/outbox"
	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Patches is what patches make of views.
type Patches struct {
	state *state.State
	// Patience is how long a patch is waited for.
	Patience time.Duration
	made     *patch.Made
}

// NewPatcher returns a plugin's patch, of which nothing is known yet.
func (pt *Patches) NewPatcher(k *state.Plugin) *patch.Patcher {
	p := patch.New(k.PatchSettings(pt.Patience))
	p.Describes(k.Ready)
	return p
}

// AllPatchers yields those that are served and those that are tried, and their sessions; nil: there
// is none.
func (pt *Patches) AllPatchers() iter.Seq2[*patch.Patcher, *state.Session] {
	return func(yield func(*patch.Patcher, *state.Session) bool) {
		for _, k := range pt.state.Roster.Plugins {
			if k.Patcher != nil && !yield(k.Patcher, k.Session) {
				return
			}
		}
		for k := range pt.state.Roster.Rivals {
			if k.Patcher != nil && k.Session != nil && !yield(k.Patcher, k.Session) {
				return
			}
		}
	}
}

// AskPatches sends patches what they are to be asked.
func (pt *Patches) AskPatches() {
	for p, s := range pt.AllPatchers() {
		for _, call := range p.Calls() {
			call.Revision = &pb.Revision{Epoch: pt.state.Course.Epoch, Number: s.State.Sent}
			s.Out.State(&outbox.Job{Call: &pb.FromCore{Patch: call}})
		}
	}
}

// Asking reports whether patches owe answers.
func (pt *Patches) Asking() bool {
	for p := range pt.state.Roster.Patchers() {
		if p.Asking() {
			return true
		}
	}
	return false
}

// Chain returns the patches for a connection's type, in order. The first revision waits for all
// that aren't optional.
func (pt *Patches) Chain(conn *state.Connection, typeURL string) []*patch.Patcher {
	return pt.ChainBy(conn, typeURL, pt.state.Roster.Rules, nil)
}

// ChainBy is chain by other rules, with another patch in the place of the one of its name.
func (pt *Patches) ChainBy(conn *state.Connection, typeURL string, rules state.Rules, instead *patch.Patcher) []*patch.Patcher {
	if !pt.state.Roster.HasPatches() || rules.Patches == nil || pt.state.Roster.Traits(conn.Generators[typeURL], typeURL).BodyType != "" {
		return nil
	}
	var chain []*patch.Patcher
	for _, name := range rules.Patches(typeURL, conn.Peer.Node) {
		p := pt.state.Roster.Patcher(name)
		if instead != nil && instead.Name == name {
			p = instead
		}
		if p != nil && p.Offers(typeURL) {
			chain = append(chain, p)
		}
	}
	return chain
}

// names are the patches for a connection's type (patch.Names).
func (pt *Patches) names(conn *state.Connection, typeURL string) string {
	return patch.Names(pt.Chain(conn, typeURL))
}

// compose returns what the connection's view looks like after its patches; ok is false while
// patches are being asked, which waiting notes.
func (pt *Patches) compose(conn *state.Connection, typeURL string, waiting patch.Waiting) (snap *view.Snapshot, ok bool) {
	return pt.ComposeBy(conn, typeURL, pt.Chain(conn, typeURL), pt.made, waiting)
}

// ComposeBy is compose by a chain, with what there is of it.
func (pt *Patches) ComposeBy(conn *state.Connection, typeURL string, chain []*patch.Patcher, made *patch.Made,
	waiting patch.Waiting) (snap *view.Snapshot, ok bool) {
	v := conn.Places.View(typeURL)
	if v == nil || v.Snapshot() == nil {
		return nil, true
	}
	if len(chain) == 0 {
		return v.Snapshot(), true
	}
	snap, ok = made.Of(v, chain, pt.made, waiting, pt.state.Clock.Now())
	if !ok {
		pt.AskPatches()
	}
	return snap, ok
}

// sweep lets go of results of patches that nothing stands on.
func (pt *Patches) sweep() {
	pt.made.Sweep(func(yield func(*patch.Patcher) bool) {
		for p := range pt.state.Roster.Patchers() {
			if !yield(p) {
				return
			}
		}
	}, func(yield func(*patch.Made) bool) {
		for _, r := range pt.state.Roster.Rivals {
			if r.Made != nil && !yield(r.Made) {
				return
			}
		}
	})
}
