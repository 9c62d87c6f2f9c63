package control

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/feed"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

// A generator that is late with half of a revision said: nothing of it is served until it says that
// it is done.
func TestLateGeneratorHasSaidHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		before := w.proxy.names(typeA)
		w.m.rows("services", nil, row("ns/b.com", "1"))
		time.Sleep(time.Second)
		at := w.g.state().Revision
		w.g.send(body(7, "half"), change(typeA, 1, at, &pb.Entry{Name: "half", Body: 7}))
		time.Sleep(11 * time.Second) // longer than HoldMax
		synctest.Wait()
		if diff := cmp.Diff([]string{"istio"}, w.Revision().Partial); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(before, w.proxy.names(typeA)); diff != "" {
			t.Errorf("half of a revision is served:\n%s", diff)
		}
		w.g.done(at)
		time.Sleep(time.Second)
		synctest.Wait()
		if diff := cmp.Diff(append(before, "half=half"), w.proxy.names(typeA)); diff != "" {
			t.Errorf("what it has said by now is not served:\n%s", diff)
		}
	})
}

// A revision that begins while a deriver is down for a moment waits for it, as one does that it
// dies in.
func TestDeriverThatDiedBeforeTheRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f, d, g := chain(t)
		d.kill()
		time.Sleep(time.Second)
		f.rows(entryRow, nil, row("ns/a", "2"))
		f.rows("VirtualService", nil, row("ns/v", "to a as of 2"))
		time.Sleep(5 * time.Second)
		if s := g.state(); s != nil {
			t.Fatalf("the generator has a revision without what is derived from it: %v", keys(s))
		}
		d = b.join("serviceentry", readyEntries())
		s := d.state()
		d.rows("services", s.Revision, row("ns/a.com", "from 2"))
		d.done(s.Revision)
		if diff := cmp.Diff([]string{"VirtualService ns/v=to a as of 2", "services ns/a.com=from 2"}, keys(g.state())); diff != "" {
			t.Error(diff)
		}
	})
}

// A plugin that dies while it has nothing to do dies over no row: only deaths with a revision in
// hand count.
func TestDeathsAtRestBlameNoRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f, d, _ := chain(t)
		d.kill() // at rest
		f.rows(entryRow, nil, row("ns/a", "2"))
		for range feed.MaxDeaths - 1 {
			d = b.join("serviceentry", readyEntries())
			time.Sleep(time.Second)
			if diff := cmp.Diff([]string{"ServiceEntry ns/a=2"}, keys(d.state())); diff != "" {
				t.Fatal(diff)
			}
			d.kill()
		}
		d = b.join("serviceentry", readyEntries())
		if diff := cmp.Diff([]string{"ServiceEntry ns/a=2"}, keys(d.state())); diff != "" {
			t.Error(diff)
		}
		if got := b.PluginRows()["serviceentry"].Withheld; len(got) > 0 {
			t.Errorf("%v is withheld after %d deaths over it", got, feed.MaxDeaths-1)
		}
	})
}
