package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// A candidate whose work fails each time, or hangs, ends soon, and says why.
func TestCandidateThatGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(g *plugin)
		want string
		most time.Duration
	}{
		"fails": {func(g *plugin) {
			g.send(&pb.FromPlugin{
				Log: &pb.Log{Level: pb.LogLevelError, Text: "the plugin could not answer", Fields: map[string]string{"error": "no such file"}},
			})
		}, "it said: the plugin could not answer, error: no such file", 20 * time.Second},
		"hangs": {func(*plugin) {}, "for limits.revision, 30s", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				e := istio
				e.Limits = state.Limits{Revision: 30 * time.Second, Progress: 30 * time.Second}
				trial, err := w.Operator().Try(e, w.cfg.Rules)
				if err != nil {
					t.Fatal(err)
				}
				defer trial.End()
				g := w.candidate("istio", readyIstio())
				r := g.state().Revision
				g.done(r)
				g.send(describe(typeA, 1), place(w.proxy.ID(), typeA, 1, r))
				c.do(g)
				began := time.Now()
				if err := <-g.end; err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("it ended with %v", err)
				}
				if took := time.Since(began); took > c.most {
					t.Errorf("it ended after %s", took)
				}
				if len(w.g.end) > 0 {
					t.Error("the one that is served ended")
				}
			})
		})
	}
}
