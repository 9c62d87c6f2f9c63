package control

import (
	"fmt"
	"slices"

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
	ts.losses.holds.Drop(name)
	ts.losses.holds.ApproveNext(false) // it was judged before
	ts.env.Replace(k.Shard, shadow.Rows())
	switch k.Kind() {
	case pb.KindGenerator:
		next.Maker.Views.Adopt(same)
		next.Maker.Views.Publish()
		ts.streams.exchange(name, last, shadow)
	case pb.KindPatch:
		k.Patcher.Succeeds(t.known.Patcher, same)
		ts.roster.Rivals[t.known].Made = patch.NewMade()
		ts.screen.spoilAll()
	}
	t.memo = trial.Memo{}
	t.countRefusals()
	ts.pipeline.begin("swap", ts.env.Of(k.Shard), true, now)
	ts.roster.Serving(name)
	ts.intake.touched(name, now)
	return nil
}

// exchange gives each connection the new generator's views; the old one keeps its own.
func (st *streams) exchange(name string, last *state.Session, shadow *state.Shadow) {
	next := st.roster.Session(name)
	for _, conn := range st.conns.Sorted() {
		had := conn.Generators
		st.roster.Assign(conn)
		before, after := state.TypesOf(had, name), conn.ServedBy(name)
		if last != nil && conn.Attached[name] {
			last.Shadow.Attach(conn, before)
		}
		if why := shadow.Refused(conn); why != "" {
			conn.Refuse(name, why)
		}
		for _, url := range slices.Compact(slices.Sorted(slices.Values(append(before, after...)))) {
			if n, ok := conn.Places.Drop(url, next); ok && n.View != nil {
				st.placer.unwant(n.Session, n.View, conn.Subs[url], true)
			}
			switch to := shadow.View(conn, url); {
			case slices.Contains(after, url) && to != nil:
				st.takeOver(next, conn, url, to)
			case !slices.Contains(after, url) && conn.Generators[url] == "":
				st.placer.move(next, conn, url, nil)
			}
		}
		if conn.Attached[name] = shadow.Attached(conn); !conn.Attached[name] {
			st.placer.introduce(conn, name, false)
		}
		st.reattach(conn, had, name)
	}
}

// takeOver makes a placement of the new generator the served one. Its wishes are counted already.
func (st *streams) takeOver(next *state.Session, conn *state.Connection, url string, to *view.View) {
	if conn.Places.View(url) == to {
		return
	}
	st.placer.move(next, conn, url, to)
}

// reattach tells other generators which types of a connection are theirs now.
func (st *streams) reattach(conn *state.Connection, had map[string]string, except string) {
	for _, k := range st.roster.Sorted() {
		s := st.roster.Session(k.Name())
		before, after := state.TypesOf(had, k.Name()), conn.ServedBy(k.Name())
		if k.Name() == except || s == nil || !s.Generates() || slices.Equal(before, after) {
			continue
		}
		switch {
		case len(after) == 0 && conn.Attached[k.Name()]:
			delete(conn.Attached, k.Name())
			s.Detach(conn)
		case conn.Attached[k.Name()]:
			s.Attach(conn, after)
		default:
			st.placer.introduce(conn, k.Name(), false)
		}
	}
}
