package control

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestPairs: what is known of two resources counts at once, what is not is left open.
func TestPairs(t *testing.T) {
	made := func(text string) *view.Body { return view.NewBody(typeA, "a", []byte(text), 0) }
	same, other, open := pair{typeA, made("1"), made("2")}, pair{typeA, made("1"), made("3")}, pair{typeA, made("1"), made("4")}
	w := &comparison{t: &Trial{c: &Control{}, memo: map[pair]bool{same: true, other: false}}, same: map[*view.Body]*view.Body{}}
	d := &TypeDifference{Type: typeA}
	w.pair(same, d)
	if d.Rewritten != 1 || w.same[same.now] != same.old || len(w.open) > 0 {
		t.Errorf("of one that means the same: %+v", d)
	}
	w.pair(other, d)
	if d.Rewritten != 1 || w.same[other.now] != nil || len(w.open) > 0 {
		t.Errorf("of one that means something else: %+v", d)
	}
	w.pair(open, d)
	if d.Rewritten != 1 || len(w.open) != 1 || w.open[0] != open {
		t.Errorf("of one that is not known: %+v, open %v", d, w.open)
	}
}

// TestFaultsOfARevision: what a plugin could not do with a revision is shown until it says otherwise.
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
