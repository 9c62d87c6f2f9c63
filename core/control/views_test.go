package control

import (
	"fmt"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/pieces"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/revision"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/google/go-cmp/cmp"
)

// Messages of a generator.

func describe(url string, view uint64) *pb.FromPlugin {
	return &pb.FromPlugin{View: &pb.View{Type: url, View: view}}
}

func body(id uint64, content string) *pb.FromPlugin {
	return &pb.FromPlugin{Bodies: &pb.Bodies{Bodies: []*pb.Body{{Id: id, Bytes: []byte(content)}}}}
}

// cluster is a resource a of type C that says something.
func cluster(id uint64, content string) *pb.FromPlugin {
	b, _ := proto.Marshal(&clusterv3.Cluster{Name: "a", AltStatName: content})
	return body(id, string(b))
}

func change(url string, view uint64, rev *pb.Revision, entries ...*pb.Entry) *pb.FromPlugin {
	return &pb.FromPlugin{Change: &pb.Change{Type: url, View: view, Revision: rev, Upserts: entries}}
}

func place(conn uint64, url string, view uint64, rev *pb.Revision) *pb.FromPlugin {
	return &pb.FromPlugin{Place: &pb.Place{Connection: conn, Revision: rev, Placements: []*pb.Placement{{Type: url, View: view}}}}
}

func wanted(id uint64, rev *pb.Revision) *pb.FromPlugin {
	return &pb.FromPlugin{Wanted: &pb.Wanted{Id: id, Revision: rev}}
}

// world is a registry and a generator, past the first revision, with one proxy that wants all
// clusters and has one.
type world struct {
	*bench
	m, g  *plugin
	proxy *stream
	at    *pb.Revision
	// url is the type of its resources.
	url string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(newBench(t, nil, memory, istio))
}

func newWorldOf(b *bench) *world {
	b.t.Helper()
	return worldOf(b, readyIstio())
}

func worldOf(b *bench, ready *pb.Ready) *world {
	b.t.Helper()
	t, w := b.t, &world{bench: b, url: ready.Types[0].Url, m: b.join("memory", readyMemory()), g: b.join("istio", ready)}
	w.m.rows("services", nil, row("ns/a.com", "1"))
	w.m.rows("endpoints", nil, row("ns/a.com/http/1.1.1.1:80", "1"))
	w.m.synced()
	w.at = w.g.state().Revision
	w.g.done(w.at)
	w.proxy = b.stream("p")
	w.proxy.Subscribe(w.url, true, nil)
	got := w.g.others()
	if len(got) != 1 || got[0].Attach == nil {
		t.Fatalf("the generator was sent %v", got)
	}
	w.g.send(describe(w.url, 1), place(w.proxy.ID(), w.url, 1, w.at))
	want := w.g.others()
	if len(want) != 1 || want[0].Want == nil || !want[0].Want.Wildcard {
		t.Fatalf("the generator was sent %v", want)
	}
	w.g.send(w.body(1, "v1"), change(w.url, 1, w.at, &pb.Entry{Name: "a", Body: 1}), wanted(want[0].Want.Id, w.at))
	w.expect("a=v1")
	return w
}

// body is a resource a of the world's type that says something.
func (w *world) body(id uint64, content string) *pb.FromPlugin {
	if w.url == typeC || w.url == pieces.RouteConfiguration {
		return cluster(id, content)
	}
	if w.url == typeExtension {
		config, _ := anypb.New(wrapperspb.String(content))
		b, _ := proto.Marshal(&corev3.TypedExtensionConfig{Name: "a", TypedConfig: config})
		return body(id, string(b))
	}
	return body(id, content)
}

func (w *world) expect(resources ...string) {
	w.t.Helper()
	if diff := cmp.Diff(resources, w.proxy.names(w.url)); diff != "" {
		w.t.Error(diff)
	}
}

// revise makes a full revision begin and returns it.
func (w *world) revise(payload string) *pb.Revision {
	w.t.Helper()
	w.m.rows("services", nil, row("ns/a.com", payload))
	time.Sleep(150 * time.Millisecond)
	s := w.g.state()
	if s == nil {
		w.t.Fatal("no revision began")
	}
	return s.Revision
}

func TestFirstAnswerIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		two := w.stream("q")
		two.Subscribe(typeA, true, nil)
		w.g.others()
		w.g.send(describe(typeA, 2), place(two.ID(), typeA, 2, w.at))
		id := w.g.others()[0].Want.Id
		w.g.send(body(2, "x"), change(typeA, 2, w.at, &pb.Entry{Name: "a", Body: 1}))
		if two.Pull().Types[typeA].Complete() {
			t.Error("the set counts as complete before Wanted")
		}
		w.g.send(change(typeA, 2, w.at, &pb.Entry{Name: "b", Body: 2}), wanted(id, w.at))
		if s := two.Pull().Types[typeA]; !s.Complete() || len(s.Bodies()) != 2 {
			t.Errorf("complete %v with %d resources", s.Complete(), len(s.Bodies()))
		}
	})
}

func TestRevisionIsServedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.revise("2")
		w.proxy.woken = false
		w.g.send(body(2, "v2"), body(3, "b"), change(typeA, 1, r, &pb.Entry{Name: "a", Body: 2}))
		w.expect("a=v1")
		w.g.send(change(typeA, 1, r, &pb.Entry{Name: "b", Body: 3}))
		if w.expect("a=v1"); w.proxy.woken {
			t.Error("the stream was woken before the revision was served")
		}
		w.g.done(r)
		if w.expect("a=v2", "b=b"); !w.proxy.woken {
			t.Error("the stream was not woken")
		}
	})
}

func TestUnchangedViewWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.proxy.woken = false
		w.g.done(w.revise("2"))
		if w.proxy.woken {
			t.Error("a stream was woken for nothing")
		}
	})
}

func TestMoveIsCompleteWhenServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.revise("2")
		w.g.send(describe(typeA, 2), place(w.proxy.ID(), typeA, 2, r))
		got := w.g.others()
		if len(got) != 1 || got[0].Want == nil || got[0].Want.View != 2 {
			t.Fatalf("the generator was sent %v", got)
		}
		w.g.done(r)
		w.expect("a=v1")
		w.g.send(body(2, "moved"), change(typeA, 2, r, &pb.Entry{Name: "a", Body: 2}), wanted(got[0].Want.Id, r))
		w.expect("a=moved")
		drop := w.g.others()
		if len(drop) != 3 || !drop[0].Drop.Wildcard || !drop[1].Drop.All || drop[1].Drop.View != 1 || !slices.Equal(drop[2].Freed.Bodies, []uint64{1}) {
			t.Errorf("the generator was sent %v", drop)
		}
	})
}

// At rest a revision without changes does away with views that nobody is in, and another one with
// their bodies.
func TestWhatIsNotUsedGoesAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.proxy.Close()
		synctest.Wait()
		w.g.others()
		time.Sleep(serving.TidyAfter - time.Second)
		if s := w.g.state(); s != nil {
			t.Fatal("views are kept for a while")
		}
		for i := range 2 {
			time.Sleep(2 * time.Second)
			synctest.Wait()
			s := w.g.state()
			if s == nil || len(s.Tables) > 0 {
				t.Fatalf("revision %d at rest is %v", i, s)
			}
			w.g.done(s.Revision)
			time.Sleep(serving.TidyAfter - time.Second)
			synctest.Wait()
			if all, _ := operations.NewExplainer(w.Operator()).Pushes(w.at.Number); len(all) != 0 {
				t.Errorf("people are told of %+v", all)
			}
		}
		if others := w.g.others(); len(others) != 1 || others[0].Freed == nil || !slices.Equal(others[0].Freed.Bodies, []uint64{1}) {
			t.Errorf("the generator was sent %v", others)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if s := w.g.state(); s != nil {
			t.Errorf("there was nothing left to do, and there is revision %d", s.Revision.Number)
		}
	})
}

func TestEndpointsAloneDontWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.m.rows("endpoints", nil, row("ns/a.com/http/1.1.1.1:80", "2"))
		if diff := cmp.Diff([]string{"endpoints ns/a.com/http/1.1.1.1:80=2"}, keys(w.g.state())); diff != "" {
			t.Error(diff)
		}
	})
}

// TestEndpointsThatChangeAllTheTimeAreGathered: after the first ones at once a pause lies between
// revisions of endpoints, as long as there are connections; a rest ends it.
func TestEndpointsThatChangeAllTheTimeAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(newBench(t, func(c *Config) { c.EndpointPause = 400 * time.Millisecond }, memory, istio)) // one connection
		change := func(i int) (revisions int) {
			w.m.rows("endpoints", nil, row("ns/a.com/http/1.1.1.1:80", fmt.Sprint("round ", i)))
			time.Sleep(time.Millisecond)
			for s := w.g.state(); s != nil; s = w.g.state() {
				w.g.done(s.Revision)
				revisions++
			}
			return revisions
		}
		first := 0
		for i := range 2 * revision.Burst {
			first += change(i)
		}
		if first != revision.Burst {
			t.Errorf("%d revisions at once", first)
		}
		later := 0
		for i := range 2000 {
			later += change(2*revision.Burst + i)
		}
		if later < 4 || later > 6 {
			t.Errorf("%d revisions in two seconds", later)
		}
		time.Sleep(500 * time.Millisecond)
		s := w.g.state()
		if diff := cmp.Diff([]string{"endpoints ns/a.com/http/1.1.1.1:80=round 2199"}, keys(s)); diff != "" {
			t.Fatal(diff)
		}
		w.g.done(s.Revision)
		time.Sleep(time.Second)
		if n := change(3000); n != 1 {
			t.Errorf("after a rest there were %d revisions at once", n)
		}
	})
}

// TestEndpointsThatCameWithMoreCount: a revision of services that brings endpoints, too, counts as
// one of theirs.
func TestEndpointsThatCameWithMoreCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(newBench(t, func(c *Config) { c.EndpointPause = 400 * time.Millisecond }, memory, istio))
		change := func(i int) {
			w.m.rows("endpoints", nil, row("ns/a.com/http/1.1.1.1:80", fmt.Sprint("round ", i)))
		}
		for i := range revision.Burst {
			change(i)
			w.g.done(w.g.state().Revision)
		}
		for i := range 5 { // each within a pause of the one before
			change(revision.Burst + i)
			w.m.rows("services", nil, row("ns/b.com", fmt.Sprint(i)))
			time.Sleep(150 * time.Millisecond)
			s := w.g.state()
			if diff := cmp.Diff([]string{fmt.Sprint("endpoints ns/a.com/http/1.1.1.1:80=round ", revision.Burst+i), fmt.Sprint("services ns/b.com=", i)},
				keys(s)); diff != "" {
				t.Fatal(diff)
			}
			w.g.done(s.Revision)
		}
		change(1000)
		time.Sleep(300 * time.Millisecond) // 350 ms after the last one, that is a second after the burst
		if s := w.g.state(); s != nil {
			t.Errorf("endpoints did not wait: %v", keys(s))
		}
		time.Sleep(100 * time.Millisecond)
		if diff := cmp.Diff([]string{"endpoints ns/a.com/http/1.1.1.1:80=round 1000"}, keys(w.g.state())); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWorkloadsThatCameWithEndpointsKeepTheirPace: pods that are replaced all the time are gathered
// as their endpoints are; anything else brings them along at once.
func TestWorkloadsThatCameWithEndpointsKeepTheirPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(newBench(t, func(c *Config) { c.EndpointPause = 400 * time.Millisecond }, memory, istio))
		change := func(i int) {
			w.m.rows("endpoints", nil, row("ns/a.com/http/1.1.1.1:80", fmt.Sprint("round ", i)))
			w.m.rows("workloads", nil, row("c/pod/ns/a", fmt.Sprint("round ", i)))
		}
		revisions := func() (n int) {
			for s := w.g.state(); s != nil; s = w.g.state() {
				w.g.done(s.Revision)
				n++
			}
			return n
		}
		for i := range revision.Burst { // what may come at once is used up
			w.m.rows("endpoints", nil, row("ns/a.com/http/1.1.1.1:80", fmt.Sprint("round ", i)))
			revisions()
		}
		n := 0
		for i := range 40 { // six seconds
			change(1000 + i)
			time.Sleep(150 * time.Millisecond)
			n += revisions()
		}
		if n < 12 || n > 16 {
			t.Errorf("%d revisions in six seconds", n)
		}
		change(2000)
		w.m.rows("services", nil, row("ns/b.com", "1"))
		time.Sleep(150 * time.Millisecond)
		if n := revisions(); n != 1 {
			t.Errorf("%d revisions of a service beside them", n)
		}
	})
}

func TestEndpointsOvertakeALongGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.revise("2")
		w.m.rows("endpoints", nil, row("ns/a.com/http/1.1.1.1:80", "2"))
		if s := w.g.state(); s != nil {
			t.Fatal("endpoints did not wait at all")
		}
		time.Sleep(200 * time.Millisecond)
		s := w.g.state()
		if diff := cmp.Diff([]string{"endpoints ns/a.com/http/1.1.1.1:80=2"}, keys(s)); diff != "" || !s.Overtakes || s.Revision.Number <= r.Number {
			t.Fatalf("overtakes %v at %d over %d: %s", s.Overtakes, s.Revision.Number, r.Number, diff)
		}
		// The revision that is overtaken has said this much, from the old endpoints.
		w.g.send(body(2, "old endpoints, new services"), change(typeA, 1, r, &pb.Entry{Name: "a", Body: 2}))
		w.g.send(body(3, "new endpoints"), change(typeA, 1, s.Revision, &pb.Entry{Name: "a", Body: 3}))
		w.expect("a=v1")
		w.g.done(s.Revision)
		w.expect("a=new endpoints")
		w.g.done(r)
		w.expect("a=new endpoints") // never back to the old ones
	})
}

// TestEndpointsOvertakeOneAtATime: while a generator works on endpoints that overtook, later ones
// wait for it.
func TestEndpointsOvertakeOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.revise("2")
		endpoint := func(payload string) {
			w.m.rows("endpoints", nil, row("ns/a.com/http/1.1.1.1:80", payload))
			time.Sleep(300 * time.Millisecond)
		}
		endpoint("2")
		first := w.g.state()
		if first == nil || !first.Overtakes {
			t.Fatalf("nothing overtook: %v", first)
		}
		endpoint("3")
		if s := w.g.state(); s != nil {
			t.Fatalf("before the first ones are done it was sent %v", keys(s))
		}
		w.g.done(first.Revision)
		time.Sleep(300 * time.Millisecond)
		if diff := cmp.Diff([]string{"endpoints ns/a.com/http/1.1.1.1:80=3"}, keys(w.g.state())); diff != "" {
			t.Error(diff)
		}
	})
}

func TestGeneratorThatDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.g.kill()
		w.expect("a=v1")
		w.m.rows("services", nil, row("ns/a.com", "meanwhile"))
		time.Sleep(time.Second)
		w.g = w.join("istio", readyIstio())
		s := w.g.state()
		if diff := cmp.Diff([]string{"endpoints ns/a.com/http/1.1.1.1:80=1", "services ns/a.com=meanwhile"}, keys(s)); diff != "" || !s.Whole {
			t.Fatalf("whole %v: %s", s.Whole, diff)
		}
		if got := w.g.others(); len(got) != 1 || got[0].Attach == nil || got[0].Attach.Connection != w.proxy.ID() {
			t.Fatalf("the generator was sent %v", got)
		}
		w.proxy.woken = false
		w.g.send(describe(typeA, 1), place(w.proxy.ID(), typeA, 1, s.Revision))
		id := w.g.others()[0].Want.Id
		w.g.send(body(1, "v1"), change(typeA, 1, s.Revision, &pb.Entry{Name: "a", Body: 1}), wanted(id, s.Revision))
		if w.expect("a=v1"); w.proxy.woken {
			t.Error("the new session's answers counted before its Done")
		}
		w.g.done(s.Revision)
		w.expect("a=v1")
	})
}

func TestNamesAreWantedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		two := w.stream("q")
		w.g.others()
		w.g.send(describe(typeB, 7), place(w.proxy.ID(), typeB, 7, w.at), place(two.ID(), typeB, 7, w.at))
		w.proxy.Subscribe(typeB, false, []string{"a", "b"})
		two.Subscribe(typeB, false, []string{"b", "c"})
		var names []string
		for _, m := range w.g.others() {
			if m.Want != nil { // the other is an Attach: two asks for the first time
				names = append(names, m.Want.Names...)
			}
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
			t.Error(diff)
		}
		w.proxy.Subscribe(typeB, false, nil)
		got := w.g.others()
		if len(got) != 1 || got[0].Drop == nil || strings.Join(got[0].Drop.Names, " ") != "a" {
			t.Errorf("the generator was sent %v", got)
		}
		two.Close()
		got = w.g.others()
		if len(got) != 2 || got[0].Detach == nil || got[1].Drop == nil || strings.Join(got[1].Drop.Names, " ") != "b c" {
			t.Errorf("the generator was sent %v", got)
		}
	})
}

func TestNodeThatAGeneratorRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.g.send(&pb.FromPlugin{Place: &pb.Place{Connection: w.proxy.ID(), Revision: w.at, Refused: "missing parts in the service node"}})
		if err := w.proxy.Pull().Err; err == nil || !strings.Contains(err.Error(), "InvalidArgument desc = missing parts in the service node") {
			t.Errorf("error %v", err)
		}
	})
}

func TestHungGeneratorIsEnded(t *testing.T) {
	for limit, c := range map[string]struct {
		limits state.Limits
		want   string
	}{
		"revision": {state.Limits{Revision: 5 * time.Second, Progress: time.Minute}, "limits.revision, 5s"},
		"progress": {state.Limits{Revision: time.Minute, Progress: 5 * time.Second}, "limits.progress, 5s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			slow := istio
			slow.Limits = c.limits
			b := newBench(t, nil, memory, slow)
			m, g := b.join("memory", readyMemory()), b.join("istio", readyIstio())
			m.rows("services", nil, row("ns/a.com", "1"))
			m.synced()
			g.state()
			time.Sleep(6 * time.Second)
			err := <-g.end
			if err == nil || !strings.Contains(err.Error(), c.want) || carrier.CrossedLimit(err) != limit {
				t.Errorf("%s: the session ended with %v", limit, err)
			}
			if len(m.end) > 0 {
				t.Errorf("%s: the other one ended, too", limit)
			}
		})
	}
}

func TestNothingIsLeftOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.proxy.Close()
		w.g.others()
		w.g.done(w.revise("2"))
		w.g.done(w.revise("3"))
		if n := len(w.Control.mid.State.Connections.All); n != 0 {
			t.Errorf("%d connections are left", n)
		}
		s := w.mid.State.Roster.Session("istio")
		if bodies, _ := s.Maker.Bodies.Len(); len(s.Maker.Views.All()) != 0 || bodies != 0 || s.Maker.Asked.Len() != 0 {
			t.Errorf("%d views, %d bodies and %d wishes are left", len(s.Maker.Views.All()), bodies, s.Maker.Asked.Len())
		}
	})
}

// TestPlaceThatCrossesADrop: the last connection leaves a view while the generator places another
// into it.
func TestPlaceThatCrossesADrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		two := w.stream("q")
		two.Subscribe(typeA, true, nil)
		w.proxy.Close()
		w.g.send(place(two.ID(), typeA, 1, w.at))
		var wish *pb.Want
		for _, m := range w.g.others() {
			if m.Want != nil {
				wish = m.Want
			}
		}
		if wish == nil || wish.View != 1 || !wish.Wildcard {
			t.Fatalf("the generator was sent the wish %v", wish)
		}
		w.g.send(change(typeA, 1, w.at, &pb.Entry{Name: "a", Body: 1}), wanted(wish.Id, w.at))
		if diff := cmp.Diff([]string{"a=v1"}, two.names(typeA)); diff != "" {
			t.Error(diff)
		}
		w.g.done(w.revise("2"))
		w.g.done(w.revise("3"))
		if diff := cmp.Diff([]string{"a=v1"}, two.names(typeA)); diff != "" {
			t.Error(diff)
		}
	})
}
