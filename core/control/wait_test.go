package control

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestNobodyWaitsForACandidate: who asks whether a candidate is ready may stop asking, and says
// why.
func TestNobodyWaitsForACandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		trial := w.try(state.Expected{Name: "istio", Kind: pb.KindGenerator})
		defer trial.End()
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the operator went home")
		ready := began(func() error { return trial.Ready(ctx) })
		time.Sleep(time.Second)
		cancel(why)
		synctest.Wait()
		if err := <-ready; !errors.Is(err, why) {
			t.Error(err)
		}
		if why := w.Ready(); len(why) > 0 { // and nothing stands still
			t.Error(why)
		}
	})
}

// TestReports: a generator hears what its proxies say if it asks for that, and otherwise not.
func TestReports(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.mu.Lock()
			w.mid.State.Roster.Session("istio").Plugin.Ready.Reports = wanted
			w.mu.Unlock()
			w.g.take()
			w.proxy.Report(xds.Outcome{Type: typeA})
			heard := false
			for _, m := range w.g.take() {
				heard = heard || m.Report != nil
			}
			if heard != wanted {
				t.Errorf("it wanted reports: %v; it heard one: %v", wanted, heard)
			}
		})
	}
}
