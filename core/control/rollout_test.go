package control

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// routes is a table of objects that people write.
const routes = "networking.istio.io/VirtualService"

// staged is a crowd where those whose names begin with f try changes for a minute.
type staged struct {
	crowd
	*operations.Rollout
	f      *plugin
	first  *stream
	bodies uint64
}

func newStaged(t *testing.T, first ...string) *staged {
	t.Helper()
	return newStagedWith(t, remembering(t, history.Config{}), first...)
}

// inStages has a bench's pushes have stages.
func inStages(edit func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Stages = &Stages{
			First:    func(n *corev3.Node) bool { return strings.HasPrefix(n.GetId(), "f") },
			Verified: true,
			Hold:     time.Minute,
		}
		edit(c)
	}
}

func rolloutOf(t *testing.T, b *bench) *operations.Rollout {
	t.Helper()
	r, err := operations.NewRollout(b.Operator(), operations.Metric{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newStagedWith(t *testing.T, edit func(*Config), first ...string) *staged {
	t.Helper()
	b := newBench(t, inStages(edit), memory, files, istio)
	s := &staged{f: b.join("files", &pb.Ready{Publishes: []string{routes}}), bodies: 10}
	s.f.synced()
	ready := readyIstio()
	ready.Reads = append(ready.Reads, &pb.Read{Table: routes})
	s.crowd = crowd{world: worldOf(b, ready)}
	s.Rollout = rolloutOf(t, b)
	s.labelled()
	s.all = append(s.all, s.proxy)
	for _, id := range first {
		s.all = append(s.all, s.joins(id))
	}
	for _, x := range s.all {
		s.acks(x)
	}
	if len(first) > 0 {
		s.first = s.all[1]
	}
	return s
}

// edits changes a row that people write; then resource a has another content, and so have more.
func (s *staged) edits(contents ...string) {
	s.t.Helper()
	s.begins()
	s.makes(contents...)
}

func (s *staged) begins() {
	s.t.Helper()
	s.bodies++
	s.f.rows(routes, nil, row("ns/v", fmt.Sprint(s.bodies)))
	time.Sleep(150 * time.Millisecond)
	is := s.g.state()
	if is == nil {
		s.t.Fatal("no revision began")
	}
	s.at = is.Revision
}

func (s *staged) makes(contents ...string) {
	s.t.Helper()
	for i, content := range contents {
		s.bodies++
		s.g.send(body(s.bodies, content), change(typeA, 1, s.at, &pb.Entry{Name: string(rune('a' + i)), Body: s.bodies}))
	}
	s.g.done(s.at)
	s.g.others()
}

// is checks how far the stage is, and what is said of that.
func (s *staged) is(state report.StageState, words string) {
	s.t.Helper()
	synctest.Wait()
	if is := s.Rollout.Status(); is.State != state || !strings.Contains(is.Why, words) {
		s.t.Errorf("%+v; not %s, with %q", is, state, words)
	}
}

// TestStage: the first proxies try an edit, those that come too; the others have what there was
// until the first ones have acknowledged it and their time is over.
func TestStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, "f0", "f1")
		s.is(report.Idle, "")
		s.edits("v2")
		s.is(report.Staged, "2 of 2 first proxies have not acknowledged")
		s.have(s.first, "a=v2")
		s.have(s.proxy, "a=v1")
		s.have(s.joins("q"), "a=v1")
		third := s.joins("f2")
		s.have(third, "a=v2")
		s.acks(s.first)
		s.passes(time.Hour)
		s.is(report.Staged, "1 of 2 first proxies have not acknowledged") // who came since decides nothing
		s.all[2].Close()
		s.is(report.Staged, "")
		s.refuses(third, nil)
		s.is(report.Staged, "")
		s.acks(third)
		// An edit meanwhile belongs to it.
		s.passes(50 * time.Second)
		s.edits("v3")
		s.have(s.proxy, "a=v1")
		s.have(s.first, "a=v3")
		s.acks(s.first)
		s.acks(third)
		s.passes(59 * time.Second)
		s.is(report.Staged, "")
		s.have(s.proxy, "a=v1")
		s.passes(2 * time.Second)
		s.is(report.Idle, "")
		s.have(s.proxy, "a=v3")
		// What no people change reaches all at once.
		s.becomes(5, "v4")
		s.is(report.Idle, "")
		s.have(s.proxy, "a=v4")
	})
}

// TestStageIsRefused: what one of the first refuses is taken from all, and stays so when something
// else is changed. What mends it is tried without what was refused being shown again.
func TestStageIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, "f0", "f1")
		good := s.proxy.Pull().Types[typeA].Get("a")
		all := func(want string) {
			t.Helper()
			for _, x := range s.all {
				s.have(x, want)
			}
		}
		s.edits("bad")
		s.refuses(s.first, good)
		s.is(report.Withdrawn, "f0 refused A of revision")
		all("a=v1")
		s.refuses(s.all[2], good) // it had that already
		s.is(report.Withdrawn, "f0 refused A of revision")
		s.passes(time.Hour)
		all("a=v1")
		s.have(s.joins("f2"), "a=v1")

		// Another edit, with which what is refused is there still.
		s.begins()
		all("a=v1")
		s.makes("bad", "more")
		s.is(report.Withdrawn, "refuses a: a: it is bad")
		all("a=v1")

		// The mend.
		s.begins()
		all("a=v1")
		s.makes("good", "more")
		s.is(report.Staged, "")
		if got := s.first.names(typeA); fmt.Sprint(got) != "[a=good b=more]" {
			t.Error(got)
		}
		s.have(s.proxy, "a=v1")
		for _, x := range s.all {
			s.acks(x)
		}
		s.is(report.Staged, "")
		if err := s.promotes(); err != nil {
			t.Error(err)
		}
		if got := s.proxy.names(typeA); fmt.Sprint(got) != "[a=good b=more]" {
			t.Error(got)
		}
	})
}

// passes lets time go by; the generator makes nothing of what it is given meanwhile.
func (s *staged) passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	if is := s.g.state(); is != nil {
		s.g.done(is.Revision)
	}
}

func (s *staged) promotes() error { _, err := s.Promote(); return err }

// TestStageOfStrangers: who has no verified identity, came after the stage began or never accepted
// anything neither ends a stage nor keeps it from ending; where the first proxies are named by what
// they say of themselves, no identity does so alone.
func TestStageOfStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, "f0")
		good := s.proxy.Pull().Types[typeA].Get("a")
		plain, silent := s.joinsAs("f-plain"), s.joins("f-silent")
		s.acks(plain)
		s.edits("v2")
		s.is(report.Staged, "1 of 1 first proxies have not acknowledged")
		late := s.joins("f-late")
		for _, x := range []*stream{plain, silent, late} {
			s.have(x, "a=v2")
			s.refuses(x, good)
		}
		s.is(report.Staged, "1 of 1 first proxies have not acknowledged")
		s.acks(s.first)
		s.passes(2 * time.Minute)
		s.is(report.Idle, "")
		s.have(s.proxy, "a=v2")
	})
	synctest.Test(t, func(t *testing.T) {
		s := newStagedWith(t, func(c *Config) { c.Stages.Verified = false }, "f0", "f1", "f2")
		good := s.proxy.Pull().Types[typeA].Get("a")
		s.edits("v2")
		s.refuses(s.all[1], good)
		s.is(report.Staged, "")
		s.acks(s.all[2])
		s.refuses(s.all[3], good)
		s.is(report.Withdrawn, "f2 refused")
		s.edits("v3")
		s.acks(s.all[1])
		s.acks(s.all[2]) // and the third is silent
		s.passes(2 * time.Minute)
		s.is(report.Idle, "")
	})
}

// TestStageIsTakenBack: who wrote the edit deletes it again, before or after it was refused. There
// is nothing to try then.
func TestStageIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, "f0")
		good := s.proxy.Pull().Types[typeA].Get("a")
		for _, refused := range []bool{false, true} {
			s.edits("bad")
			if refused {
				s.refuses(s.first, good)
				s.is(report.Withdrawn, "refused")
			}
			s.edits("v1")
			s.is(report.Idle, "")
			s.have(s.first, "a=v1")
			s.have(s.proxy, "a=v1")
			s.acks(s.first)
		}
	})
}

// TestStageOfAllRefusing: the quarantine holds what all who were sent it refuse; that is a refusal
// all the same. So is what a proxy leaves out of what it acknowledges.
func TestStageOfAllRefusing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, "f0")
		good := s.proxy.Pull().Types[typeA].Get("a")
		s.proxy.Close()
		s.edits("bad")
		s.refuses(s.first, good)
		s.held("a by 1, 1 of 1 votes, held false")
		s.is(report.Withdrawn, "it is bad")
		s.edits("better")
		s.held()
		s.is(report.Staged, "")
		served := s.first.Pull()
		s.first.Report(xds.Outcome{Type: typeA, Version: "v", Number: served.Number, Left: "c: a patch made it bad", Answered: served.Number})
		s.is(report.Withdrawn, "c: a patch made it bad")
		s.have(s.first, "a=v1")
	})
}

// TestStageOrders: people end a stage. Those whom they have pinned are not among the first.
func TestStageOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, "f0")
		if err := s.promotes(); !errors.Is(err, operations.ErrNoStage) {
			t.Error(err)
		}
		p := s.past()
		before := s.at.Number
		s.edits("v2")
		if is, err := s.Abort("it is late"); err != nil || is.State != report.Withdrawn || is.Why != "it is late" {
			t.Errorf("%+v %v", is, err)
		}
		s.have(s.first, "a=v1")
		if _, err := s.Abort("again"); !errors.Is(err, operations.ErrNoStage) {
			t.Error(err)
		}
		if err := s.promotes(); err != nil {
			t.Error(err)
		}
		s.have(s.first, "a=v2")
		s.have(s.proxy, "a=v2")

		pins(t, p, before, "id=f0", false)
		s.edits("v3")
		s.is(report.Staged, "none of the first proxies is connected that has a verified identity")
		s.have(s.first, "a=v1")
		s.have(s.proxy, "a=v2")
		if got := p.Pins(); len(got) != 1 || len(got[0].Pinned) != 1 {
			t.Errorf("%+v", got)
		}
		if _, err := p.Unpin("id=f0", false); err != nil {
			t.Error(err)
		}
		s.have(s.first, "a=v3")
		s.acks(s.first)
		s.is(report.Staged, "")
		s.passes(time.Hour)
		s.is(report.Idle, "")
		s.have(s.proxy, "a=v3")

		off := rolloutOf(t, newBench(t, nil, memory, istio))
		if _, err := off.Abort("it is late"); !errors.Is(err, operations.ErrNoStages) || off.Shown().State != report.Off {
			t.Errorf("%v, %+v", err, off.Shown())
		}
	})
}

// TestStageOutlivesASwap: another generator takes its place during a stage; the others stay with
// what they had.
func TestStageOutlivesASwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, "f0")
		s.edits("v2")
		trial := s.try(istio)
		ready := readyIstio()
		ready.Reads = append(ready.Reads, &pb.Read{Table: routes})
		next := s.candidate("istio", ready)
		at := next.state().Revision
		next.send(described(typeA), body(1, "swapped"), change(typeA, 1, at, &pb.Entry{Name: "a", Body: 1}))
		for _, x := range s.all {
			next.send(place(x.ID(), typeA, 1, at))
		}
		next.done(at)
		for _, m := range next.others() {
			if m.Want != nil {
				next.send(wanted(m.Want.Id, at))
			}
		}
		if _, err := trial.Compare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := trial.Switch(t.Context(), s.mid.State.Roster.Rules, anyway); err != nil {
			t.Fatal(err)
		}
		s.have(s.first, "a=swapped")
		s.have(s.proxy, "a=v1")
		s.is(report.Staged, "")
		if err := s.promotes(); err != nil {
			t.Error(err)
		}
		s.have(s.proxy, "a=swapped")
	})
}

// TestStageWithoutHistory: a stage needs no history, and its proxies may be no longer there.
func TestStageWithoutHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStagedWith(t, func(*Config) {}, "f0", "f1")
		s.edits("v2")
		s.have(s.proxy, "a=v1")
		s.acks(s.first)
		for _, f := range s.all[1:] {
			f.Close()
		}
		s.passes(time.Hour)
		s.is(report.Staged, "none of the first proxies is connected that has a verified identity")
		if is := s.Rollout.Shown(); len(is.Held) != 1 || is.Held[0].Node != "p" || is.Held[0].Types[typeA] != "own" {
			t.Errorf("%+v", is.Held)
		}
		back := s.joins("f0")
		s.have(back, "a=v2")
		s.is(report.Staged, "none of the first proxies is connected that has a verified identity")
		s.acks(back)
		s.passes(2 * time.Minute)
		s.is(report.Idle, "")
		s.have(s.proxy, "a=v2")
	})
}

// TestStageLosesMuch: an edit that takes much away is held by the guards as ever, at once or when
// the stage is over.
func TestStageLosesMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, "f0", "q0", "q1")
		s.edits("v1", "b", "c", "d", "e")
		s.acks(s.first)
		s.passes(2 * time.Minute)
		s.is(report.Idle, "")
		all := fmt.Sprint(s.first.names(typeA))
		removes := func() {
			t.Helper()
			time.Sleep(150 * time.Millisecond)
			s.at = s.g.state().Revision
			s.g.send(&pb.FromPlugin{Change: &pb.Change{Revision: s.at, Type: typeA, View: 1, Removes: []string{"b", "c", "d", "e"}}})
			s.g.done(s.at)
		}
		s.f.send(deletes(routes, "ns/v"))
		removes()
		time.Sleep(150 * time.Millisecond)
		s.at = s.g.state().Revision // the row is back
		s.makes("v1", "b", "c", "d", "e")
		if held := s.Holds(); len(held) != 1 || held[0].Plugin != "files" {
			t.Errorf("%+v", held)
		}
		s.is(report.Idle, "")
		if got := fmt.Sprint(s.first.names(typeA), s.proxy.names(typeA)); got != all+" "+all {
			t.Error(got)
		}

		if err := s.ApplyHold("files"); err != nil {
			t.Error(err)
		}
		removes()
		s.have(s.first, "a=v1")
		if got := fmt.Sprint(s.proxy.names(typeA)); got != all {
			t.Error(got)
		}
		s.acks(s.first)
		s.passes(2 * time.Minute)
		s.is(report.Idle, "")
		if got := fmt.Sprint(s.proxy.names(typeA)); got != all || len(s.Holds()) != 1 {
			t.Errorf("%s, %+v", got, s.Holds())
		}
		if err := s.ApplyHold("istio"); err != nil {
			t.Error(err)
		}
		s.have(s.proxy, "a=v1")
	})
}

// TestStageOfAViewThatChanges: an edit changes what a view is told apart by; who comes meanwhile
// has what others of its view had all the same.
func TestStageOfAViewThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, "f0")
		s.begins()
		s.g.send(&pb.FromPlugin{View: &pb.View{Type: typeA, View: 2, Label: "proxies, patched"}})
		for _, x := range s.all {
			s.g.send(place(x.ID(), typeA, 2, s.at))
		}
		s.bodies++
		s.g.send(body(s.bodies, "bad"), change(typeA, 2, s.at, &pb.Entry{Name: "a", Body: s.bodies}))
		for _, m := range s.g.others() {
			if m.Want != nil {
				s.g.send(wanted(m.Want.Id, s.at))
			}
		}
		s.g.done(s.at)
		s.is(report.Staged, "")
		s.have(s.first, "a=bad")
		s.have(s.proxy, "a=v1")
		third := s.stream("q")
		third.Subscribe(typeA, true, nil)
		s.g.send(place(third.ID(), typeA, 2, s.at))
		for _, m := range s.g.others() {
			if m.Want != nil {
				s.g.send(wanted(m.Want.Id, s.at))
			}
		}
		s.have(third, "a=v1")
	})
}

// TestStageOutlivesARestart: what was withdrawn stays so, and who waited for a stage goes on to
// wait, where the history is on disk; without rolloutFirst all are served what is live.
func TestStageOutlivesARestart(t *testing.T) {
	for name, c := range map[string]struct {
		refused bool
		off     bool
		want    map[string]string // who is served what afterwards
		then    report.StageState
	}{
		"withdrawn": {refused: true, want: map[string]string{"p": "a=v1", "f0": "a=v1", "pnew": "a=v1"}, then: report.Withdrawn},
		"staged":    {want: map[string]string{"p": "a=v1", "f0": "a=bad", "pnew": "a=v1"}, then: report.Staged},
		"off":       {refused: true, off: true, want: map[string]string{"p": "a=bad", "f0": "a=bad", "pnew": "a=bad"}, then: report.Off},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				keep := remembering(t, history.Config{Dir: dir})
				s := newStagedWith(t, keep, "f0")
				good := s.proxy.Pull().Types[typeA].Get("a")
				s.edits("bad")
				if c.refused {
					s.refuses(s.first, good)
				}
				closeHistory(t, keep)
			})
			synctest.Test(t, func(t *testing.T) {
				keep := remembering(t, history.Config{Dir: dir})
				edit := inStages(keep)
				if c.off {
					edit = keep
				}
				b := newBench(t, edit, memory, files, istio)
				ready := readyIstio()
				ready.Reads = append(ready.Reads, &pb.Read{Table: routes})
				w := &world{bench: b, url: typeA, m: b.join("memory", readyMemory())}
				f := b.join("files", &pb.Ready{Publishes: []string{routes}})
				w.g = b.join("istio", ready)
				w.m.rows("services", nil, row("ns/a.com", "1"))
				w.m.synced()
				f.rows(routes, nil, row("ns/v", "bad"))
				f.synced()
				w.at = w.g.state().Revision
				w.g.send(described(typeA), body(1, "bad"), change(typeA, 1, w.at, &pb.Entry{Name: "a", Body: 1}))
				w.g.done(w.at)
				all := &staged{crowd: crowd{world: w}, Rollout: rolloutOf(t, b), f: f, bodies: 10}
				streams := map[string]*stream{}
				for id := range c.want {
					x := all.stream(id)
					x.Subscribe(typeA, true, nil)
					w.g.send(place(x.ID(), typeA, 1, w.at))
					for _, m := range w.g.others() {
						if m.Want != nil {
							w.g.send(wanted(m.Want.Id, w.at))
						}
					}
					streams[id] = x
				}
				for id, want := range c.want {
					all.have(streams[id], want)
				}
				all.is(c.then, "")
				switch c.then {
				case report.Withdrawn: // what mends it is tried
					all.edits("better")
					all.have(streams["f0"], "a=better")
					all.have(streams["p"], "a=v1")
					all.acks(streams["f0"])
					all.passes(2 * time.Minute)
					all.is(report.Idle, "")
					all.have(streams["p"], "a=better")
				case report.Staged: // it goes on
					all.acks(streams["f0"])
					all.passes(2 * time.Minute)
					all.is(report.Idle, "")
					all.have(streams["p"], "a=bad")
				}
				closeHistory(t, keep)
			})
		})
	}
}
