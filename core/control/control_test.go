package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

var (
	files    = state.Expected{Name: "files", Kind: pb.KindConfig}
	memory   = state.Expected{Name: "memory", Kind: pb.KindRegistry}
	entries  = state.Expected{Name: "serviceentry", Kind: pb.KindRegistry}
	istio    = state.Expected{Name: "istio", Kind: pb.KindGenerator}
	entryRow = "ServiceEntry"
)

func readyFiles() *pb.Ready { return &pb.Ready{Publishes: []string{"ServiceEntry", "VirtualService"}} }

func readyMemory() *pb.Ready {
	return &pb.Ready{Publishes: []string{"services", "endpoints", "workloads"}}
}

func readyEntries() *pb.Ready {
	return &pb.Ready{Derives: true, Reads: []*pb.Read{{Table: "ServiceEntry"}}, Publishes: []string{"services", "endpoints"}}
}

func readyIstio() *pb.Ready {
	return &pb.Ready{
		Reads: []*pb.Read{{Table: "services"}, {Table: "endpoints"}, {Table: "VirtualService"}},
		Types: []*pb.Type{{Url: typeA}, {Url: typeB}},
	}
}

// chain is files -> serviceentry -> istio, past its first revision, with one ServiceEntry.
func chain(t *testing.T) (b *bench, f, d, g *plugin) {
	b = newBench(t, nil, files, entries, istio)
	f, d, g = b.join("files", readyFiles()), b.join("serviceentry", readyEntries()), b.join("istio", readyIstio())
	f.rows(entryRow, nil, row("ns/a", "1"))
	f.synced()
	s := d.state()
	d.rows("services", s.Revision, row("ns/a.com", "from 1"))
	d.done(s.Revision)
	g.done(g.state().Revision)
	if reasons := b.Ready(); len(reasons) > 0 {
		t.Fatalf("not ready: %v", reasons)
	}
	return b, f, d, g
}

func TestFirstRevisionIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, files, entries, istio)
		notReady := func(want string) {
			t.Helper()
			if got := strings.Join(b.Ready(), "; "); !strings.Contains(got, want) {
				t.Errorf("ready says %q, want %q in it", got, want)
			}
			if _, err := b.Connect(t.Context(), peer("p"), func(xds.Wake) {}); err == nil {
				t.Error("a stream was taken")
			}
		}
		notReady("plugin files has not started")
		g, d, f := b.join("istio", readyIstio()), b.join("serviceentry", readyEntries()), b.join("files", readyFiles())
		f.rows(entryRow, nil, row("ns/a", "1"))
		notReady("plugin files has not synced")
		if s := d.state(); s != nil {
			t.Errorf("the deriver got revision %d before the sources were in", s.Revision.Number)
		}
		f.synced()
		s := d.state()
		if diff := cmp.Diff([]string{"ServiceEntry ns/a=1"}, keys(s)); diff != "" || !s.Whole {
			t.Errorf("whole %v: %s", s.Whole, diff)
		}
		d.rows("services", s.Revision, row("ns/a.com", "from 1"))
		if s := g.state(); s != nil {
			t.Error("the generator got the revision before the deriver was done")
		}
		d.done(s.Revision)
		got := g.state()
		if diff := cmp.Diff([]string{"services ns/a.com=from 1"}, keys(got)); diff != "" || got.Revision.Number != s.Revision.Number {
			t.Errorf("revision %d: %s", got.Revision.Number, diff)
		}
		notReady("the first revision is being made by istio")
		g.done(got.Revision)
		if reasons := b.Ready(); len(reasons) > 0 {
			t.Errorf("not ready: %v", reasons)
		}
	})
}

func TestChangesWaitForQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f, d, _ := chain(t)
		f.rows(entryRow, nil, row("ns/a", "2"))
		time.Sleep(60 * time.Millisecond)
		f.rows(entryRow, nil, row("ns/b", "1"))
		time.Sleep(60 * time.Millisecond)
		if s := d.state(); s != nil {
			t.Error("the first change did not wait for the second")
		}
		time.Sleep(60 * time.Millisecond)
		if diff := cmp.Diff([]string{"ServiceEntry ns/a=2", "ServiceEntry ns/b=1"}, keys(d.state())); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEqualRowsMakeNoRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f, d, g := chain(t)
		before := b.Revision()
		f.rows(entryRow, nil, row("ns/a", "1"))
		time.Sleep(time.Second)
		if d.state() != nil || g.state() != nil || b.Revision().Number != before.Number {
			t.Error("something was made of a row that did not change")
		}
	})
}

func TestOneRevisionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f, d, _ := chain(t)
		f.rows(entryRow, nil, row("ns/a", "2"))
		time.Sleep(time.Second)
		first := d.state()
		f.rows(entryRow, nil, row("ns/a", "3"), row("ns/b", "1"))
		time.Sleep(time.Second)
		f.rows(entryRow, nil, row("ns/a", "4"))
		time.Sleep(time.Second)
		if s := d.state(); s != nil {
			t.Fatalf("revision %d began before %d was served", s.Revision.Number, first.Revision.Number)
		}
		d.done(first.Revision) // nothing derived: no generator is concerned
		if diff := cmp.Diff([]string{"ServiceEntry ns/a=4", "ServiceEntry ns/b=1"}, keys(d.state())); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLatePluginMakesPartialRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f, d, g := chain(t)
		f.rows(entryRow, nil, row("ns/a", "2"))
		f.rows("VirtualService", nil, row("ns/v", "1"))
		time.Sleep(time.Second)
		late := d.state()
		time.Sleep(10 * time.Second)
		s := g.state()
		if diff := cmp.Diff([]string{"VirtualService ns/v=1"}, keys(s)); diff != "" {
			t.Fatal(diff)
		}
		g.done(s.Revision)
		if diff := cmp.Diff([]string{"serviceentry"}, b.Revision().Partial); diff != "" {
			t.Error(diff)
		}
		d.rows("services", late.Revision, row("ns/a.com", "from 2"))
		d.done(late.Revision)
		time.Sleep(time.Second)
		s = g.state()
		if diff := cmp.Diff([]string{"services ns/a.com=from 2"}, keys(s)); diff != "" {
			t.Error(diff)
		}
		g.done(s.Revision)
		if got := b.Revision(); len(got.Partial) != 0 || got.Number != s.Revision.Number {
			t.Errorf("served is %+v", got)
		}
	})
}

func TestDeriverThatDiesInARevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f, d, g := chain(t)
		f.rows(entryRow, nil, row("ns/a", "2"))
		time.Sleep(time.Second)
		s := d.state()
		d.rows("services", s.Revision, row("ns/a.com", "half"))
		d.kill()
		time.Sleep(time.Second)
		if s := g.state(); s != nil {
			t.Fatalf("half of a revision got out: %v", keys(s))
		}
		if st := b.PluginRows()["serviceentry"].Stale; st.Why != "away" || time.Since(st.Since) < time.Second {
			t.Errorf("its shard is marked stale as %v", st)
		}
		d = b.join("serviceentry", readyEntries())
		s = d.state()
		if diff := cmp.Diff([]string{"ServiceEntry ns/a=2"}, keys(s)); diff != "" || !s.Whole {
			t.Errorf("whole %v: %s", s.Whole, diff)
		}
		d.rows("services", s.Revision, row("ns/a.com", "from 2"))
		d.done(s.Revision)
		if diff := cmp.Diff([]string{"services ns/a.com=from 2"}, keys(g.state())); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSourceThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f, d, _ := chain(t)
		f.rows(entryRow, nil, row("ns/b", "1"))
		time.Sleep(time.Second)
		d.done(d.state().Revision)
		f.kill()
		time.Sleep(time.Second)
		if s := d.state(); s != nil {
			t.Fatal("rows went with their plugin")
		}
		f = b.join("files", readyFiles())
		f.rows(entryRow, nil, row("ns/a", "1"), row("ns/c", "1"))
		time.Sleep(time.Second)
		if s := d.state(); s != nil {
			t.Fatal("rows counted before the list was complete")
		}
		f.synced()
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"ServiceEntry -ns/b", "ServiceEntry ns/c=1"}, keys(d.state())); diff != "" {
			t.Error(diff)
		}
	})
}

func TestUndeclaredTableEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f, _, _ := chain(t)
		f.rows("secrets", nil, row("a", "1"))
		if err := <-f.end; err == nil || !strings.Contains(err.Error(), `table "secrets", which its Ready doesn't declare`) {
			t.Errorf("the session ended with %v", err)
		}
	})
}

func TestRowThatKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f, d, g := chain(t)
		f.rows(entryRow, nil, row("ns/a", "poison"), row("ns/b", "1"))
		time.Sleep(time.Second)
		for range 3 {
			if diff := cmp.Diff("ServiceEntry ns/a=poison", keys(d.state())[0]); diff != "" {
				t.Fatal(diff)
			}
			d.kill()
			d = b.join("serviceentry", readyEntries())
		}
		s := d.state()
		if diff := cmp.Diff([]string{"ServiceEntry ns/a=1"}, keys(s)); diff != "" {
			t.Fatalf("after three deaths: %s", diff)
		}
		d.rows("services", s.Revision, row("ns/a.com", "from 1"))
		d.done(s.Revision)
		if s := g.state(); s != nil {
			t.Errorf("the generator was sent %v, though nothing changed", keys(s))
		}
		if diff := cmp.Diff([]string{"ServiceEntry ns/a", "ServiceEntry ns/b"}, b.PluginRows()["serviceentry"].Withheld); diff != "" {
			t.Error(diff)
		}
		// A row that changes gets a new chance.
		f.rows(entryRow, nil, row("ns/a", "3"))
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"ServiceEntry ns/a=3"}, keys(d.state())); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"ServiceEntry ns/b"}, b.PluginRows()["serviceentry"].Withheld); diff != "" {
			t.Error(diff)
		}
	})
}
