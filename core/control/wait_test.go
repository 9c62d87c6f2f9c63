package control

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
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
