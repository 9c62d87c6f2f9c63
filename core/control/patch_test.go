package control

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
)

func readyPatch() *pb.Ready {
	return &pb.Ready{Plugin: "upper", PluginVersion: "1", Types: []*pb.Type{{Url: typeT}}, Names: []string{"a*"}, Facts: []string{"scope"}}
}

// patchWorld is a generator with one proxy that wants all of typeT, and a patch named upper.
type patchWorld struct {
	*world
	upper *plugin
}

func newPatchWorld(t *testing.T, edit func(*state.Expected)) *patchWorld {
	t.Helper()
	return newPatchWorldOf(t, edit, func(*pb.Ready) {})
}

func newPatchWorldOf(t *testing.T, edit func(*state.Expected), says func(*pb.Ready)) *patchWorld {
	t.Helper()
	upper := state.Expected{Name: "upper", Kind: pb.KindPatch, Limits: state.Limits{Call: time.Second}}
	if edit != nil {
		edit(&upper)
	}
	b := newBench(t, func(cfg *Config) { cfg.Patches = func(string, *corev3.Node) []string { return []string{"upper"} } }, memory, istio, upper)
	first := readyPatch()
	says(first)
	w := &patchWorld{world: &world{bench: b}, upper: b.join("upper", first)}
	ready := readyIstio()
	ready.Types = append(ready.Types, &pb.Type{Url: typeT, Traits: &pb.Traits{Wildcard: true, FullState: true}})
	w.m, w.g = b.join("memory", readyMemory()), b.join("istio", ready)
	w.m.synced()
	w.at = w.g.state().Revision
	w.g.done(w.at)
	w.proxy = b.stream("p")
	w.proxy.Subscribe(typeT, true, nil)
	w.g.others()
	w.g.send(&pb.FromPlugin{View: &pb.View{Type: typeT, View: 1, Facts: map[string]string{"scope": "s", "zone": "z"}}}, place(w.proxy.ID(), typeT, 1, w.at))
	w.g.send(body(1, "1"), body(2, "2"), body(3, "3"),
		change(typeT, 1, w.at, &pb.Entry{Name: "a1", Body: 1}, &pb.Entry{Name: "a2", Body: 2}, &pb.Entry{Name: "b", Body: 3}),
		wanted(w.g.others()[0].Want.Id, w.at))
	return w
}

// asked returns the calls that the patch has been sent since.
func (w *patchWorld) asked() []*pb.Patch {
	w.t.Helper()
	var calls []*pb.Patch
	for _, m := range w.upper.others() {
		if m.Patch == nil {
			w.t.Fatalf("the patch was sent %v", m)
		}
		calls = append(calls, m.Patch)
	}
	return calls
}

// answer answers calls as a patch does that doubles contents and adds NAME-copy for "a2".
func (w *patchWorld) answer(calls []*pb.Patch) {
	for _, c := range calls {
		r := c.Resources[0]
		out := &pb.Patched{Id: c.Id, Resources: []*pb.Resource{{Name: r.Name, Bytes: append(r.Bytes, r.Bytes...)}}}
		if r.Name == "a2" {
			out.Resources = append(out.Resources, &pb.Resource{Name: "a2-copy", Bytes: r.Bytes})
		}
		w.upper.send(&pb.FromPlugin{Patched: out})
	}
}

func (w *patchWorld) sees(resources ...string) {
	w.t.Helper()
	got := w.proxy.names(typeT)
	if len(resources) == 0 && len(got) == 0 {
		return
	}
	if diff := cmp.Diff(resources, got); diff != "" {
		w.t.Error(diff)
	}
}

func TestPatchSeesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		w.sees()
		calls := w.asked()
		if len(calls) != 2 || calls[0].Resources[0].Name != "a1" || calls[0].Facts["scope"] != "s" || len(calls[0].Facts) != 1 {
			t.Fatalf("the patch was asked %v", calls)
		}
		w.answer(calls[:1])
		w.sees()
		w.answer(calls[1:])
		w.sees("a1=11", "a2=22", "a2-copy=2", "b=3")
	})
}

func TestPatchIsAskedOnlyWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		w.answer(w.asked())
		r := w.revise("2")
		w.g.send(body(4, "4"), change(typeT, 1, r, &pb.Entry{Name: "a1", Body: 4}))
		w.g.done(r)
		w.sees("a1=11", "a2=22", "a2-copy=2", "b=3")
		if number := w.Revision().Number; number == r.Number {
			t.Error("the revision counts as served before its patches")
		}
		calls := w.asked()
		if len(calls) != 1 || string(calls[0].Resources[0].Bytes) != "4" {
			t.Fatalf("the patch was asked %v", calls)
		}
		w.answer(calls)
		w.sees("a1=44", "a2=22", "a2-copy=2", "b=3")
		if number := w.Revision().Number; number != r.Number {
			t.Errorf("revision %d is served, not %d", number, r.Number)
		}
	})
}

func TestAddedResourceGoesWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		w.answer(w.asked())
		r := w.revise("2")
		w.g.send(&pb.FromPlugin{Change: &pb.Change{Type: typeT, View: 1, Revision: r, Removes: []string{"a2"}}})
		w.g.done(r)
		w.sees("a1=11", "b=3")
	})
}

func TestPatchThatFails(t *testing.T) {
	fail := func(w *patchWorld) {
		for _, c := range w.asked() {
			w.upper.send(&pb.FromPlugin{Patched: &pb.Patched{Id: c.Id, Error: "no"}})
		}
	}
	for name, tt := range map[string]struct {
		edit   func(*state.Expected)
		first  []string // failed from the beginning
		second []string // failed at the second version of a1
	}{
		"last good": {nil, []string{"b=3"}, []string{"a1=11", "a2=22", "a2-copy=2", "b=3"}},
		"skip":      {func(e *state.Expected) { e.Skips = true }, []string{"a1=1", "a2=2", "b=3"}, []string{"a1=4", "a2=22", "a2-copy=2", "b=3"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newPatchWorld(t, tt.edit)
				fail(w)
				w.sees(tt.first...)
			})
			synctest.Test(t, func(t *testing.T) {
				w := newPatchWorld(t, tt.edit)
				w.answer(w.asked())
				r := w.revise("2")
				w.g.send(body(4, "4"), change(typeT, 1, r, &pb.Entry{Name: "a1", Body: 4}))
				w.g.done(r)
				fail(w)
				w.sees(tt.second...)
			})
		})
	}
}

// What a patch fails at is told until it no longer does.
// TestRowsOfAPatch: when rows change that a patch reads, it is asked anew about everything.
func TestRowsOfAPatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorldOf(t, nil, func(r *pb.Ready) { r.Reads = []*pb.Read{{Table: "services"}} })
		var first []*pb.Patch
		for _, m := range w.upper.take() { // its rows, too
			if m.Patch != nil {
				first = append(first, m.Patch)
			}
		}
		w.answer(first)
		w.m.rows("services", nil, row("ns/b.com", "1"))
		time.Sleep(time.Second)
		s := w.g.state()
		if s == nil {
			t.Fatal("there is no revision")
		}
		w.g.done(s.Revision)
		again := map[string]bool{}
		for _, m := range w.upper.take() {
			if m.Patch != nil {
				again[m.Patch.Resources[0].Name] = true
			}
		}
		if !again["a1"] || !again["a2"] {
			t.Errorf("asked again: %v", again)
		}
	})
}

// TestLatePatchesAreCounted: each call that is not answered in time is a limit that was crossed.
func TestLatePatchesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		m := &crossings{}
		w.mu.Lock()
		w.counted.Metrics = m
		w.mu.Unlock()
		open := len(w.asked())
		time.Sleep(2 * time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(m.all) < open || m.all[0] != "upper call" {
			t.Errorf("of %d calls these are counted: %v", open, m.all)
		}
	})
}

// TestFaultsAreToldOnce: a resource that fails in two views for one reason is told once, for two
// reasons twice.
func TestFaultsAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		fail := func(reasons map[string]string) {
			for _, c := range w.asked() {
				w.upper.send(&pb.FromPlugin{Patched: &pb.Patched{Id: c.Id, Error: reasons[c.Resources[0].Name]}})
			}
		}
		fail(map[string]string{"a1": "no", "a2": "no"})
		q := w.stream("q")
		q.Subscribe(typeT, true, nil)
		w.g.others()
		w.g.send(&pb.FromPlugin{View: &pb.View{Type: typeT, View: 2, Facts: map[string]string{"scope": "t"}}}, place(q.ID(), typeT, 2, w.at))
		w.g.send(change(typeT, 2, w.at, &pb.Entry{Name: "a1", Body: 1}, &pb.Entry{Name: "a2", Body: 2}), wanted(w.g.others()[0].Want.Id, w.at))
		fail(map[string]string{"a1": "no", "a2": "never"})
		w.mu.Lock()
		defer w.mu.Unlock()
		var told []string
		for _, f := range w.mid.Pages.RefusedOf("upper") {
			told = append(told, f.What[len(f.What)-2:]+" "+f.Reason)
		}
		if diff := cmp.Diff([]string{"a1 no", "a2 never", "a2 no"}, told); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFailuresOfAPatchAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		for _, c := range w.asked() {
			w.upper.send(&pb.FromPlugin{Patched: &pb.Patched{Id: c.Id, Error: "no"}})
		}
		synctest.Wait()
		told := w.PluginRows()["upper"].Faults
		if len(told) != 2 || told[0].What != "patch of "+typeT+" a1" || told[0].Reason != "no" || told[0].Since.IsZero() {
			t.Errorf("told: %+v", told)
		}
		r := w.revise("2")
		w.g.send(body(4, "4"), body(5, "5"), change(typeT, 1, r, &pb.Entry{Name: "a1", Body: 4}, &pb.Entry{Name: "a2", Body: 5}))
		w.g.done(r)
		w.answer(w.asked())
		w.sees("a1=44", "a2=55", "a2-copy=5", "b=3")
		if told := w.PluginRows()["upper"].Faults; len(told) > 0 {
			t.Errorf("still told: %+v", told)
		}
	})
}

func TestPatchThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		w.answer(w.asked())
		w.upper.kill()
		w.sees("a1=11", "a2=22", "a2-copy=2", "b=3")
		r := w.revise("2")
		w.g.send(body(4, "4"), change(typeT, 1, r, &pb.Entry{Name: "a1", Body: 4}))
		w.g.done(r)
		w.upper = w.join("upper", readyPatch())
		calls := w.asked()
		if len(calls) != 1 {
			t.Fatalf("the patch was asked %v", calls)
		}
		w.answer(calls)
		w.sees("a1=44", "a2=22", "a2-copy=2", "b=3")
	})
}

func TestPatchThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		w.answer(w.asked())
		r := w.revise("2")
		w.g.send(body(4, "4"), change(typeT, 1, r, &pb.Entry{Name: "a1", Body: 4}))
		w.g.done(r)
		late := w.asked()
		time.Sleep(1100 * time.Millisecond)
		if number := w.Revision().Number; number != r.Number {
			t.Errorf("revision %d is served, not %d", number, r.Number)
		}
		w.sees("a1=11", "a2=22", "a2-copy=2", "b=3")
		w.answer(late) // too late for that call
		w.sees("a1=11", "a2=22", "a2-copy=2", "b=3")
		r = w.revise("3")
		w.g.done(r)
		w.answer(w.asked()) // asked again with the next revision
		w.sees("a1=44", "a2=22", "a2-copy=2", "b=3")
	})
}

// A patch that answers nothing is waited for half as long each time, and as long as before once it
// has answered.
func TestPatchThatHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		w.answer(w.asked())
		edit := func(n string) (r *pb.Revision) {
			r = w.revise(n)
			w.g.send(body(10+r.Number, n), change(typeT, 1, r, &pb.Entry{Name: "a1", Body: 10 + r.Number}))
			w.g.done(r)
			return r
		}
		served := func() uint64 { synctest.Wait(); return w.Revision().Number }
		for i, patience := range []time.Duration{time.Second, time.Second / 2, time.Second / 4} {
			r := edit(strconv.Itoa(100 + i))
			w.asked()
			if time.Sleep(patience * 9 / 10); served() == r.Number {
				t.Errorf("revision %d did not wait %s for the patch", r.Number, patience)
			}
			if time.Sleep(patience / 5); served() != r.Number {
				t.Errorf("revision %d waits for longer than %s", r.Number, patience)
			}
		}
		edit("x")
		w.answer(w.asked())
		r := edit("y")
		w.asked()
		if time.Sleep(time.Second * 9 / 10); served() == r.Number {
			t.Error("a patch that answers again is not waited for as before")
		}
	})
}

// What a patch got right last of a resource is that of the same view, however often it fails
// meanwhile, and though another view has one of that name.
func TestLastGoodIsOfTheView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		other := w.stream("q")
		other.Subscribe(typeT, true, nil)
		w.g.others()
		w.g.send(&pb.FromPlugin{View: &pb.View{Type: typeT, View: 2, Facts: map[string]string{"scope": "s", "zone": "y"}}}, place(other.ID(), typeT, 2, w.at))
		w.g.send(body(4, "9"), change(typeT, 2, w.at, &pb.Entry{Name: "a1", Body: 4}), wanted(w.g.others()[0].Want.Id, w.at))
		w.answer(w.asked())
		sees := func() {
			w.sees("a1=11", "a2=22", "a2-copy=2", "b=3")
			if diff := cmp.Diff([]string{"a1=99"}, other.names(typeT)); diff != "" {
				t.Error(diff)
			}
		}
		sees()
		for i := range uint64(3) {
			r := w.revise(strconv.FormatUint(i, 10))
			w.g.send(body(10+2*i, "1"+strconv.FormatUint(i, 10)), change(typeT, 1, r, &pb.Entry{Name: "a1", Body: 10 + 2*i}),
				body(11+2*i, "9"+strconv.FormatUint(i, 10)), change(typeT, 2, r, &pb.Entry{Name: "a1", Body: 11 + 2*i}))
			w.g.done(r)
			if calls := w.asked(); len(calls) != 2 {
				t.Fatalf("the patch was asked %v", calls)
			}
			time.Sleep(1100 * time.Millisecond)
			sees()
		}
	})
}

func TestNewVersionOfAPatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		w.answer(w.asked())
		w.upper.kill()
		ready := readyPatch()
		ready.PluginVersion = "2"
		w.upper = w.join("upper", ready)
		if calls := w.asked(); len(calls) != 2 {
			t.Fatalf("the new version was asked %d times, not 2", len(calls))
		}
	})
}
