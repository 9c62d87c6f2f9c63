package control

import (
	"fmt"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/stage"
	"github.com/coxswain-mesh/coxswain/core/trial"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// swap lets the trial's session be served in place of the other, which becomes the trial's. It is a revision of its own.
func (ts *trials) swap(t *candidate, rules state.Rules, same map[*view.Body]*view.Body) error {
	if t.key != t.known.Name() {
		return fmt.Errorf("plugin %s was swapped a moment ago, and what had its place is kept warm", t.known.Name())
	}
	now := ts.clock.Now()
	name := t.known.Name()
	last, next := ts.roster.Session(name), t.known.Session
	shadow := next.Shadow
	before := ts.env.Shard(t.known.Shard)

	delete(ts.roster.Rivals, t.known)
	ts.roster.Plugins[name], t.known = t.known, ts.roster.Plugins[name]
	ts.roster.Rivals[t.known] = &state.Rival{Rules: ts.roster.Rules, Warm: true}
	ts.roster.Rules, next.Shadow = rules, nil
	if last != nil {
		last.Shadow = state.NewShadow(before)
	}
	delete(ts.course.Forced, name)
	k := ts.roster.Plugins[name]
	k.Shard.Derived = k.Ready.Derives
	if levels, err := stage.Levels(ts.roster.StagePlugins(name, k.Ready)); err == nil { // it was checked when the session joined
		for n, level := range levels {
			ts.roster.Plugins[n].Level = level
		}
	}
	ts.course.Moved.Merge(ts.env.Prioritize(k.Shard, k.Expected.Priority))
	if k.Succeeds(next); !k.Absence.Over(now) {
		ts.course.Moved.Merge(ts.env.SetAside(k.Shard, false))
	}
	ts.env.Drop(k.Shard)
	ts.losses.Holds.Drop(name)
	ts.losses.Holds.ApproveNext(false) // it was judged before
	ts.env.Replace(k.Shard, shadow.Rows())
	switch k.Kind() {
	case pb.KindGenerator:
		next.Maker.Views.Adopt(same)
		next.Maker.Views.Publish()
		ts.streams.Exchange(name, last, shadow)
	case pb.KindPatch:
		k.Patcher.Succeeds(t.known.Patcher, same)
		ts.roster.Rivals[t.known].Made = patch.NewMade()
		ts.screen.SpoilAll()
	}
	t.memo = trial.Memo{}
	t.countRefusals()
	ts.pipeline.Begin("swap", ts.env.Of(k.Shard), true, now)
	ts.roster.Serving(name)
	ts.intake.Touched(name, now)
	return nil
}
