package control

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/placement"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

// keeping is a world whose views outlive their connections.
func keeping(t *testing.T, r placement.Retention) *world {
	t.Helper()
	return newWorldOf(newBench(t, func(c *Config) { c.Retention = r }, memory, istio))
}

// drops returns what the generator was told to drop, and forgets other messages.
func (w *world) drops() (out []*pb.Drop) {
	w.t.Helper()
	for _, m := range w.g.others() {
		if m.Drop != nil {
			out = append(out, m.Drop)
		}
	}
	return out
}

// tidied answers the revisions that the core makes at rest.
func (w *world) tidied(d time.Duration) {
	w.t.Helper()
	for range d / time.Second {
		time.Sleep(time.Second)
		if s := w.g.state(); s != nil {
			w.g.done(s.Revision)
		}
	}
	synctest.Wait()
}

// back connects the proxy again, as a generator that knows its node places it.
func (w *world) back(view uint64) {
	w.t.Helper()
	w.proxy = w.stream("p")
	w.proxy.Subscribe(typeA, true, nil)
	w.g.send(place(w.proxy.ID(), typeA, view, w.at))
}

// TestWhoIsBackFindsItsView: the last proxy of a view leaves, something changes, and it is back.
// The generator was told of the change and nothing else, and is not asked for anything.
func TestWhoIsBackFindsItsView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := keeping(t, placement.Retention{For: time.Minute})
		w.proxy.Close()
		if drops := w.drops(); drops != nil {
			t.Fatalf("the generator was told to drop %v", drops)
		}
		w.tidied(20 * time.Second)
		r := w.revise("2")
		w.g.send(body(2, "v2"), change(typeA, 1, r, &pb.Entry{Name: "a", Body: 2}))
		w.g.done(r)
		w.at = r
		w.tidied(30 * time.Second)
		w.g.others()
		w.back(1)
		w.expect("a=v2")
		if got := w.g.others(); len(got) != 1 || got[0].Attach == nil {
			t.Errorf("the generator was sent %v", got)
		}
		// It stays for as long as it likes, and the time begins again when it leaves.
		w.tidied(2 * time.Minute)
		w.expect("a=v2")
		w.proxy.Close()
		w.tidied(59 * time.Second)
		if drops := w.drops(); drops != nil {
			t.Errorf("the generator was told to drop %v", drops)
		}
		w.tidied(2 * time.Second)
		if drops := w.drops(); len(drops) != 2 || !drops[0].Wildcard || !drops[1].All {
			t.Errorf("the generator was told to drop %v", drops)
		}
	})
}

// TestNothingIsKeptAfterItsTime: views, bodies, wishes and what is counted of them are gone.
func TestNothingIsKeptAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := keeping(t, placement.Retention{For: time.Minute})
		w.proxy.Close()
		w.tidied(59 * time.Second)
		if views, _, bytes := w.kept(); views != 1 || bytes == 0 {
			t.Fatalf("%d views, and %d bytes are counted", views, bytes)
		}
		w.tidied(time.Minute)
		w.nothingLeft()
		if views, bodies, _ := w.kept(); views != 0 || bodies != 0 {
			t.Errorf("%d views and %d bodies are left", views, bodies)
		}
	})
}

// viewCost and nameCost are what a view and a name count beside what is in them (core/placement).
const viewCost, nameCost = 4 << 10, 512

// kept returns how many views and bodies the generator's session has, and what is counted of those
// that nobody is in.
func (w *world) kept() (views, bodies int, bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.mid.State.Roster.Session("istio")
	bodies, _ = s.Maker.Bodies.Len()
	_, bytes = w.mid.State.Connections.Left.Kept()
	return len(s.Maker.Views.All()), bodies, bytes
}

func (w *world) nothingLeft() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if views, bytes := w.mid.State.Connections.Left.Kept(); views != 0 || bytes != 0 {
		w.t.Errorf("%d views and %d bytes are left", views, bytes)
	}
}

// TestOldestViewsGoFirst: of many proxies with views of their own that come and go, those stay for
// which there is room.
func TestOldestViewsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room, size = 20, 10_000
		w := keeping(t, placement.Retention{For: time.Hour, Bytes: room * size})
		content := make([]byte, size-viewCost-nameCost-500)
		var dropped []uint64
		for i := range uint64(500) {
			view := 100 + i
			p := w.stream(fmt.Sprint("churn", i))
			p.Subscribe(typeA, true, nil)
			w.g.others()
			w.g.send(describe(typeA, view), place(p.ID(), typeA, view, w.at))
			want := w.g.others()
			w.g.send(body(view, string(content)+fmt.Sprint(i)), change(typeA, view, w.at, &pb.Entry{Name: "a", Body: view}), wanted(want[0].Want.Id, w.at))
			if len(p.names(typeA)) != 1 {
				t.Fatal("the proxy has nothing")
			}
			p.Close()
			time.Sleep(time.Millisecond)
			for _, d := range w.drops() {
				if d.All {
					dropped = append(dropped, d.View)
				}
			}
			if _, _, bytes := w.kept(); bytes > room*size {
				t.Fatalf("%d bytes are kept", bytes)
			}
		}
		if !slices.IsSorted(dropped) || len(dropped) < 500-room-2 || len(dropped) > 500-room+2 {
			t.Errorf("%d views were dropped, in order: %v", len(dropped), slices.IsSorted(dropped))
		}
		w.tidied(time.Minute)
		if n, _, _ := w.kept(); n > room+2 {
			t.Errorf("%d views are kept, for %d there is room", n, room)
		}
		w.expect("a=v1")
	})
}

// TestShortOfMemory: of what is kept the oldest goes first, as much as has to, and what nobody uses
// then is gone within seconds, not after the time that proxies may take to be back.
func TestShortOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 10_000
		w := keeping(t, placement.Retention{For: time.Hour})
		for view := uint64(10); view < 20; view++ {
			p := w.stream(fmt.Sprint(view))
			p.Subscribe(typeA, true, nil)
			w.g.others()
			w.g.send(describe(typeA, view), place(p.ID(), typeA, view, w.at))
			want := w.g.others()
			w.g.send(body(view, fmt.Sprint(view)+string(make([]byte, size))),
				change(typeA, view, w.at, &pb.Entry{Name: "a", Body: view}), wanted(want[0].Want.Id, w.at))
			p.Close()
		}
		w.drops()
		w.LetGo(2*size + 100)
		var dropped []uint64
		for _, d := range w.drops() {
			if d.All {
				dropped = append(dropped, d.View)
			}
		}
		if !slices.Equal(dropped, []uint64{10, 11}) {
			t.Errorf("views %v were dropped", dropped)
		}
		w.LetGo(1 << 62)
		w.tidied(4 * time.Second)
		w.nothingLeft()
		if views, bodies, _ := w.kept(); views != 1 || bodies != 1 {
			t.Errorf("%d views and %d bodies are left", views, bodies)
		}
		w.expect("a=v1")
	})
}

// TestSharedSetsAreCountedOnce: views that share what they are made of take no more room than one.
func TestSharedSetsAreCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := keeping(t, placement.Retention{For: time.Minute})
		const size = 100_000
		w.g.send(body(2, string(make([]byte, size))), &pb.FromPlugin{Part: &pb.Part{
			Part: 1, Type: typeA, Revision: w.at, Upserts: []*pb.Entry{{Name: "b", Body: 2}},
		}})
		for view := uint64(10); view < 20; view++ {
			p := w.stream(fmt.Sprint(view))
			p.Subscribe(typeA, true, nil)
			w.g.others()
			w.g.send(describe(typeA, view), place(p.ID(), typeA, view, w.at))
			want := w.g.others()
			w.g.send(&pb.FromPlugin{Change: &pb.Change{Type: typeA, View: view, Revision: w.at, SetParts: true, Parts: []uint64{1}}},
				wanted(want[0].Want.Id, w.at))
			p.Close()
		}
		if _, _, got := w.kept(); got < size || got > size+10*viewCost+2000 {
			t.Errorf("10 views of one part of %d bytes count %d", size, got)
		}
		w.tidied(2 * time.Minute)
		w.nothingLeft()
	})
}

// TestNamesOfThoseWhoLeft: names that only one connection wanted stay wanted in a view that others
// are in, as long as after the last who wanted them; what a connection unsubscribes from does not.
func TestNamesOfThoseWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := keeping(t, placement.Retention{For: time.Minute})
		two := w.stream("q")
		w.g.send(describe(typeB, 7), place(w.proxy.ID(), typeB, 7, w.at), place(two.ID(), typeB, 7, w.at))
		w.proxy.Subscribe(typeB, false, []string{"a", "b"})
		two.Subscribe(typeB, false, []string{"b", "c", "d"})
		two.Subscribe(typeB, false, []string{"b", "c"})
		if drops := w.drops(); len(drops) != 1 || !slices.Equal(drops[0].Names, []string{"d"}) {
			t.Errorf("the generator was told to drop %v", drops)
		}
		two.Close()
		w.tidied(50 * time.Second)
		two = w.stream("q")
		two.Subscribe(typeB, false, []string{"b", "c"})
		w.g.send(place(two.ID(), typeB, 7, w.at))
		for _, m := range w.g.others() {
			if m.Want != nil || m.Drop != nil {
				t.Errorf("the generator was sent %v", m)
			}
		}
		two.Close()
		w.tidied(59 * time.Second)
		if drops := w.drops(); drops != nil {
			t.Errorf("the generator was told to drop %v", drops)
		}
		w.tidied(2 * time.Second)
		var names []string
		for _, d := range w.drops() {
			names = append(names, d.Names...)
		}
		if diff := cmp.Diff([]string{"c"}, names); diff != "" {
			t.Error(diff)
		}
	})
}

// TestLateAnswersAreForgotten: what a generator says of names that nobody wants any more, because
// it had not read that yet, goes once it has, with nothing changed meanwhile, though others are in
// the view; what is wanted again is asked for again, and stays.
func TestLateAnswersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := keeping(t, placement.Retention{})
		w.proxy.Subscribe(typeB, false, []string{"a"})
		w.g.send(describe(typeB, 7), place(w.proxy.ID(), typeB, 7, w.at))
		others := w.g.others()
		want := others[len(others)-1].Want
		w.g.send(body(2, "a"), change(typeB, 7, w.at, &pb.Entry{Name: "a", Body: 2}), wanted(want.Id, w.at))
		two := w.stream("q")
		two.Subscribe(typeB, false, []string{"b", "c"})
		w.g.others()
		w.g.send(place(two.ID(), typeB, 7, w.at))
		others = w.g.others()
		want = others[len(others)-1].Want
		two.Close()
		w.proxy.Subscribe(typeB, false, []string{"a", "c"})
		w.g.send(body(3, "b"), body(4, "c"), change(typeB, 7, w.at, &pb.Entry{Name: "b", Body: 3}, &pb.Entry{Name: "c", Body: 4}), wanted(want.Id, w.at))
		if _, bodies, _ := w.kept(); bodies != 4 {
			t.Fatalf("%d bodies are there", bodies)
		}
		w.tidied(time.Minute)
		if _, bodies, _ := w.kept(); bodies != 3 {
			t.Errorf("%d bodies are kept", bodies)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		s := w.mid.State.Roster.Session("istio").Maker.Views.Get(typeB, 7).Snapshot()
		if s.Get("a") == nil || s.Get("b") != nil || s.Get("c") == nil {
			t.Errorf("the view has %v", s.Bodies())
		}
	})
}

// TestNothingIsKeptOfASessionThatEnded: its views are nobody's any more.
func TestNothingIsKeptOfASessionThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := keeping(t, placement.Retention{For: time.Minute})
		w.proxy.Close()
		if views, _, bytes := w.kept(); views != 1 || bytes == 0 {
			t.Fatalf("%d views, and %d bytes are counted", views, bytes)
		}
		w.g.kill()
		w.nothingLeft()
		w.g = w.join("istio", readyIstio())
		s := w.g.state()
		w.g.done(s.Revision)
		w.at = s.Revision
		w.g.send(describe(typeA, 1))
		w.back(1)
		if want := w.g.others(); len(want) != 2 || want[1].Want == nil {
			t.Errorf("the generator was sent %v", want)
		}
		w.tidied(2 * time.Minute)
	})
}
