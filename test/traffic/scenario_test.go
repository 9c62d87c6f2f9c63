package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/scenario"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestScenarios plays all scenarios on gateways, and those that a walk through configuration can
// decide on the simulator.
func TestScenarios(t *testing.T) {
	module := module(t)
	all := playable(t, scenario.Load(t, "testdata/*.yaml"), module)
	w := newWorld(t, all, module)
	walked, left := 0, map[string]int{}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			for i, c := range s.Calls {
				w.both(t, i+1, c)
				if c.Envoys == "" {
					walked++
				} else {
					left[c.Envoys]++
				}
			}
		})
	}
	t.Log(tally(walked, left))
	for _, e := range []*envoy.Envoy{w.gateway, w.second, w.edge, w.ingress} {
		for _, line := range e.Unhappy(t) {
			t.Error(line)
		}
	}
}

// both plays a call on the gateway and on the simulator.
func (w *world) both(t *testing.T, n int, c scenario.Call) {
	t.Helper()
	check := func() error {
		if err := w.play(c); err != nil {
			return fmt.Errorf("call %d, %s: %w", n, c.Get, err)
		}
		return nil
	}
	if c.Eventually {
		wait.For(t, c.Get+" is as wanted", check)
	} else if err := check(); err != nil {
		t.Error(err)
	}
	if c.Envoys != "" {
		return
	}
	if err := w.simulate(c); err != nil {
		t.Errorf("call %d, %s, on the simulator: %v", n, c.Get, err)
	}
}

// tally says what is played where.
func tally(walked int, left map[string]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls are played on Envoys and on the simulator", walked)
	for _, why := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(&b, "\n%d on Envoys alone: %s", left[why], why)
	}
	return b.String()
}
