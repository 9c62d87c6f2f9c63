package sidecars

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/simulator"
	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/scenario"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestScenarios plays scenarios on pods and on the simulator, one after the other, in a mesh whose
// sidecars have certificates.
func TestScenarios(t *testing.T) {
	all := scenario.Load(t, "testdata/scenarios/*.yaml")
	w := newWorld(t, settings{protocol: "delta", authority: authority.New(t)})
	played := 0
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			w.write(t, "scenario.yaml", s.Config)
			for i, c := range s.Calls {
				what := fmt.Sprintf("call %d, %s at %s", i+1, cmp.Or(c.Get, "bytes"), c.At)
				wait.For(t, what+", is on the simulator as wanted", func() error { return w.simulate(t, c) })
				wait.For(t, what+", is as wanted", func() error { return w.play(t, c) })
				played++
			}
		})
	}
	t.Logf("%d calls are played on pods and on the simulator", played)
	w.explained(t)
	w.happy(t)
}

// explained: `coxswain route` says of a connected sidecar where a request goes.
func (w *world) explained(t *testing.T) {
	t.Helper()
	w.write(t, "scenario.yaml", "")
	wait.For(t, "coxswain route names the cluster", func() error {
		out, err := exec.Command(program, "route", "--addr", w.plane.HTTP, "client.shop", "http://web.shop/").CombinedOutput()
		if err == nil && !strings.Contains(string(out), "100.0 %  outbound|80||"+web) {
			err = fmt.Errorf("coxswain route: %s", out)
		}
		return err
	})
}

func (w *world) pod(name string) *netns.Pod {
	return map[string]*netns.Pod{"": w.client, "client": w.client, "server": w.server, "stranger": w.stranger}[name]
}

// play makes a call in pods and checks what comes of it.
func (w *world) play(t *testing.T, c scenario.Call) error {
	t.Helper()
	before := w.taken(t, c.Clusters)
	a, s, err := exchange(w.pod(c.Pod), c.Ask)
	if !c.Refused && err == nil {
		err = cmp.Or(c.Check(a), known(c.Identity, s.Identity))
	} else if c.Refused {
		err = refusal(err)
	}
	if err != nil {
		return err
	}
	after := w.taken(t, c.Clusters)
	for _, pod := range slices.Sorted(maps.Keys(c.Clusters)) {
		if after[pod] == before[pod] {
			return fmt.Errorf("%s's sidecar sent nothing to %s", pod, c.Clusters[pod])
		}
	}
	return nil
}

// refusal is wrong if there was none.
func refusal(err error) error {
	if err == nil {
		return errors.New("it is answered")
	}
	return nil
}

// known reports whether a sidecar tells its server who the client is, as X-Forwarded-Client-Cert
// has it.
func known(want, got string) error {
	switch {
	case want == "", want == "none" && got == "", want != "none" && strings.Contains(got, "URI="+spiffe(want)):
		return nil
	}
	return fmt.Errorf("the server knows its client as %q, not %s", got, want)
}

// taken counts what sidecars sent to clusters, or wanted to, once the simulator has played the
// call.
func (w *world) taken(t *testing.T, clusters map[string]string) map[string]int {
	t.Helper()
	n := map[string]int{}
	for pod, cluster := range clusters {
		name := "cluster." + statistic(w.walked[w.pod(pod)], cluster) + "."
		for _, suffix := range []string{"upstream_rq_total", "upstream_cx_total", "upstream_cx_none_healthy"} {
			n[pod] += w.count(t, w.pod(pod), name, "."+suffix)
		}
	}
	return n
}

// statistic is the name of a cluster in statistics.
func statistic(config *simulator.Config, name string) string {
	for _, c := range config.Clusters {
		if c.Name == name {
			return cmp.Or(c.AltStatName, name)
		}
	}
	return name
}

// answered is what a workload's answer looks like to a scenario.
func answered(status int, h http.Header, body string) scenario.Answer {
	return scenario.Answer{Status: status, Header: h, Body: body}
}
