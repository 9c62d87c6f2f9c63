package plugintest_test

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// A plugin that is back hears of proxies before it has any rows. Where it places them belongs to
// its first revision, and is said before that is done.
func TestAttachBeforeTheFirstState(t *testing.T) {
	h := plugintest.Start(t, newScripted().plugin(), nil)
	if err := h.Link().Send(t.Context(), &pb.FromCore{Attach: &pb.Attach{Connection: 1, Types: []string{eds}}}); err != nil {
		t.Fatal(err)
	}
	h.WaitDone(h.Update("endpoints", endpoints("a", "1")))
	if got := h.Placement(1)[eds]; got != 1 {
		t.Errorf("after the first revision the proxy is in view %d, want 1", got)
	}
}
