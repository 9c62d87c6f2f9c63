package control

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

// partials notes whom revisions were served without.
type partials struct {
	state.NoMetrics
	plugins []string
}

func (p *partials) Partial(plugin string) { p.plugins = append(p.plugins, plugin) }

// A plugin that is late takes nothing from the time of those that come after it, and each is given
// up once, whatever else happens meanwhile.
func TestLatePluginsHaveTheirOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &partials{}
		b, f, d, g := chain(t)
		b.mu.Lock()
		b.counted.Metrics = seen
		b.mu.Unlock()
		f.rows(entryRow, nil, row("ns/a", "2"))
		f.rows("VirtualService", nil, row("ns/v", "1"))
		time.Sleep(time.Second)
		d.state()
		time.Sleep(10 * time.Second)
		if g.state() == nil {
			t.Fatal("the generator has nothing to do")
		}
		for range 5 { // each event makes the core look at the time
			f.send(&pb.FromPlugin{Log: &pb.Log{Text: "something happens"}})
		}
		if diff := cmp.Diff([]string{"serviceentry"}, seen.plugins); diff != "" {
			t.Error(diff)
		}
		before := b.Revision().Number
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"serviceentry", "istio"}, seen.plugins); diff != "" {
			t.Error(diff)
		}
		if b.Revision().Number == before {
			t.Error("the revision waits for ever")
		}
	})
}
