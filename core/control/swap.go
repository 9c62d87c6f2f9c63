package control

import (
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/stage"
	"github.com/coxswain-mesh/coxswain/core/trial"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// swap lets the trial's session be served in place of the other, which becomes the trial's. It is a revision of its own.
func (ts *trials) swap(t *candidate, rules Rules, same map[*view.Body]*view.Body) error {
	if t.key != t.known.Name() {
		return fmt.Errorf("plugin %s was swapped a moment ago, and what had its place is kept warm", t.known.Name())
	}
	now := ts.clock.Now()
	name := t.known.Name()
	last, next := ts.roster.session(name), t.known.session
	shadow := next.shadow
	before := ts.env.Shard(t.known.shard)

	delete(ts.roster.rivals, t.known)
	ts.roster.known[name], t.known = t.known, ts.roster.known[name]
	ts.roster.rivals[t.known] = &rival{rules: ts.roster.rules, warm: true}
	ts.roster.rules, next.shadow = rules, nil
	if last != nil {
		last.shadow = newShadow(before)
	}
	delete(ts.course.forced, name)
	k := ts.roster.known[name]
	k.shard.Derived = k.ready.Derives
	if levels, err := stage.Levels(ts.roster.stagePlugins(name, k.ready)); err == nil { // it was checked when the session joined
		for n, level := range levels {
			ts.roster.known[n].level = level
		}
	}
	ts.course.moved.Merge(ts.env.Prioritize(k.shard, k.Expected.Priority))
	if k.succeeds(next); !k.absence.over(now) {
		ts.course.moved.Merge(ts.env.SetAside(k.shard, false))
	}
	ts.env.Drop(k.shard)
	ts.losses.holds.Drop(name)
	ts.losses.holds.ApproveNext(false) // it was judged before
	ts.env.Replace(k.shard, shadow.Rows())
	switch k.Kind() {
	case pb.KindGenerator:
		next.Maker.Views.Adopt(same)
		next.Maker.Views.Publish()
		ts.streams.exchange(name, last, shadow)
	case pb.KindPatch:
		k.patcher.Succeeds(t.known.patcher, same)
		ts.roster.rivals[t.known].made = patch.NewMade()
		ts.screen.spoilAll()
	}
	t.memo = trial.Memo{}
	t.countRefusals()
	ts.pipeline.begin("swap", ts.env.Of(k.shard), true, now)
	ts.roster.serving(name)
	ts.intake.touched(name, now)
	return nil
}

// exchange gives each connection the new generator's views; the old one keeps its own.
func (st *streams) exchange(name string, last *session, shadow *shadow) {
	next := st.roster.session(name)
	for _, conn := range st.conns.sorted() {
		had := conn.generator
		st.roster.assign(conn)
		before, after := typesOf(had, name), conn.servedBy(name)
		if last != nil && conn.attached[name] {
			last.shadow.Attach(conn, before)
		}
		if why := shadow.Refused(conn); why != "" {
			conn.refuse(name, why)
		}
		for _, url := range slices.Compact(slices.Sorted(slices.Values(append(before, after...)))) {
			if n, ok := conn.places.Drop(url, next); ok && n.View != nil {
				st.placer.unwant(n.Session, n.View, conn.subs[url], true)
			}
			switch to := shadow.View(conn, url); {
			case slices.Contains(after, url) && to != nil:
				st.takeOver(next, conn, url, to)
			case !slices.Contains(after, url) && conn.generator[url] == "":
				st.placer.move(next, conn, url, nil)
			}
		}
		if conn.attached[name] = shadow.Attached(conn); !conn.attached[name] {
			st.placer.introduce(conn, name, false)
		}
		st.reattach(conn, had, name)
	}
}

// takeOver makes a placement of the new generator the served one. Its wishes are counted already.
func (st *streams) takeOver(next *session, conn *connection, url string, to *view.View) {
	if conn.places.View(url) == to {
		return
	}
	st.placer.move(next, conn, url, to)
}

// reattach tells other generators which types of a connection are theirs now.
func (st *streams) reattach(conn *connection, had map[string]string, except string) {
	for _, k := range st.roster.sorted() {
		s := st.roster.session(k.Name())
		before, after := typesOf(had, k.Name()), conn.servedBy(k.Name())
		if k.Name() == except || s == nil || !s.generates() || slices.Equal(before, after) {
			continue
		}
		switch {
		case len(after) == 0 && conn.attached[k.Name()]:
			delete(conn.attached, k.Name())
			s.detach(conn)
		case conn.attached[k.Name()]:
			s.attach(conn, after)
		default:
			st.placer.introduce(conn, k.Name(), false)
		}
	}
}
