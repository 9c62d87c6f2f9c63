package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

var protocols = []string{"sotw", "delta"}

func TestEnvoysTakeEverything(t *testing.T) {
	envoy.Binary(t) // or skip
	judgeAll(t, cases(t))
}

func TestEnvoysTakeOurOwnCases(t *testing.T) {
	envoy.Binary(t) // or skip
	judgeAll(t, ownCases(t))
}

func judgeAll(t *testing.T, dirs []string) {
	t.Helper()
	certificate := newCertificate(t)
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			c := readCase(t, dir)
			plane := c.serve(t)
			for _, p := range c.proxies {
				for _, protocol := range protocols {
					t.Run(p.name+"/"+protocol, func(t *testing.T) {
						began := time.Now()
						judge(t, plane, p, protocol, certificate)
						t.Log(time.Since(began))
					})
				}
			}
			refusals(t, plane)
		})
	}
}

// judge lets an Envoy take all that a proxy gets.
func judge(t *testing.T, plane *mesh.Plane, p recordedProxy, protocol string, c certificate) {
	t.Helper()
	dir, err := os.MkdirTemp("", "live-") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, admin := filepath.Join(dir, "agent"), filepath.Join(dir, "admin")
	a := startAgent(t, socket, plane.XDS, c)
	e := envoy.Isolated(t, p.name, "unix:"+admin, bootstrap(t, plane, p.node, protocol, admin, socket))
	e.Ready(t)
	wait.For(t, "all that "+p.name+" asks for is answered", a.settled)
	for _, line := range a.refusals() {
		t.Errorf("refused: %s", line)
	}
	for _, line := range unhappy(e.Stats(t)) {
		t.Error(line)
	}
	if len(p.says) > 0 {
		dump := strings.Join(strings.Fields(e.ConfigDump(t)), "")
		for _, part := range p.says {
			if !strings.Contains(dump, strings.Join(strings.Fields(part), "")) {
				t.Errorf("its configuration has no %s", part)
			}
		}
	}
}

// unhappy are the statistics that should be otherwise.
func unhappy(stats map[string]int) []string {
	var bad []string
	for name, n := range stats {
		for _, suffix := range []string{
			".update_rejected", ".init_fetch_timeout", ".config_fail", ".config_conflict", ".listener_create_failure", ".total_listeners_warming",
			".warming_clusters",
		} {
			if n > 0 && strings.HasSuffix(name, suffix) {
				bad = append(bad, fmt.Sprintf("%s is %d", name, n))
			}
		}
	}
	if stats["listener_manager.workers_started"] != 1 {
		bad = append(bad, "workers are not started")
	}
	return bad
}

// refusals are those that the control plane has counted.
func refusals(t *testing.T, plane *mesh.Plane) {
	t.Helper()
	metrics, err := page.Get(plane.Monitoring, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "pilot_total_xds_rejects") && !strings.HasSuffix(line, " 0\n") {
			t.Errorf("the control plane counts %s", line)
		}
	}
}
