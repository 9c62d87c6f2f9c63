package control

import (
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestFaultsOfARevision: what a plugin could not do with a revision is shown until it says
// otherwise.
func TestFaultsOfARevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i, faults := range [][]*pb.Fault{{{What: "cluster a", Reason: "no endpoints"}}, nil} {
			w.m.rows("services", nil, row("ns/b.com", []string{"1", "2"}[i]))
			time.Sleep(time.Second)
			at := w.g.state().Revision
			w.g.send(&pb.FromPlugin{Done: &pb.Done{Revision: at, Faults: faults}})
			time.Sleep(time.Second)
			synctest.Wait()
			got := w.PluginRows()["istio"].Faults
			if len(got) != len(faults) || len(got) > 0 && (got[0].What != "cluster a" || got[0].Reason != "no endpoints") {
				t.Errorf("shown: %+v, said: %v", got, faults)
			}
		}
	})
}

// TestFaultsOfASource: a source may say what it can't publish, which is shown until it says
// otherwise, and nothing of it is left in a session that has nothing to say.
func TestFaultsOfASource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, memory, files)
		m, f := b.join("memory", readyMemory()), b.join("files", readyFiles())
		shown := func(what string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			got := ""
			for _, fault := range b.PluginRows()["memory"].Faults {
				got += fault.What
			}
			if got != what || len(m.end) > 0 {
				t.Errorf("shown: %q, want %q; the session has ended: %v", got, what, len(m.end) > 0)
			}
		}
		say := func(faults ...*pb.Fault) {
			m.send(&pb.FromPlugin{Done: &pb.Done{Revision: &pb.Revision{}, Faults: faults}})
		}
		large := &pb.Fault{What: "row a", Reason: "too large", Rows: []*pb.RowName{{Table: "services", Key: "a"}}}
		say(large)
		m.rows("services", nil, row("b", "1"))
		m.synced()
		f.synced()
		shown("row a")
		m.rows("services", nil, row("b", "2"))
		shown("row a")
		say()
		shown("")
		say(large)
		shown("row a")
		_ = m.kill()
		m = b.join("memory", readyMemory())
		m.rows("services", nil, row("b", "2"))
		m.synced()
		shown("")
	})
}
