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
