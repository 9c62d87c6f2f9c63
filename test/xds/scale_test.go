package xds_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestConformance: config/xds is a config source as any other.
func TestConformance(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	plugintest.Conform(t, plugintest.Suite{
		Kind: "config", Config: fmt.Sprintf(`{"address": %q}`, s.XDS), BadConfigs: []any{`{}`, `{"address": "x"}`}, Many: 3000,
		Source: func(rows int) error {
			var text strings.Builder
			text.WriteString("# a folder\n")
			for i := range rows {
				text.WriteString(entry(fmt.Sprintf("entry-%d", i), fmt.Sprintf("entry-%d", i)))
			}
			s.put(t, "all.yaml", text.String())
			s.says(t, rows)
			return nil
		},
	}, plugin("config/xds"))
}

// TestManyAndSwaps: 10,000 objects, and the plugin is swapped while they change: nothing is lost,
// and what changed arrives.
func TestManyAndSwaps(t *testing.T) {
	need.All(t)
	t.Parallel()
	const many = 10_000
	s := newServer(t, nil)
	var far strings.Builder // what the proxy that is asked doesn't see
	for i := range many - 2 {
		far.WriteString(strings.Replace(strings.Replace(entry(fmt.Sprintf("entry-%d", i), fmt.Sprintf("host-%d", i)), "namespace: shop", "namespace: far", 1),
			"{hosts", "{exportTo: [\".\"], hosts", 1))
	}
	s.put(t, "far.yaml", far.String())
	s.put(t, "stays.yaml", entry("stays", "stays"))
	s.put(t, "changing.yaml", entry("changing", "changing-0"))
	wait.For(t, "the server has all", func() error {
		if rows := s.Plugins(t)["files"].Rows; rows != many {
			return fmt.Errorf("%d rows", rows)
		}
		return nil
	})
	plugins := set(t, source(fmt.Sprintf("address: %q, maxRetry: 1s", s.XDS)))
	began := time.Now()
	p := plane(t, plugins)
	p.Ready(t)
	t.Logf("ready with %d objects after %v", many, time.Since(began))
	whole := func(when string) {
		t.Helper()
		if rows := p.Plugins(t)["source"].Rows; rows != many {
			t.Fatalf("%d rows %s", rows, when)
		}
		hasCluster(t, p, "stays", true)
	}
	whole("at the start")
	for version := 1; version <= 3; version++ {
		s.put(t, "changing.yaml", entry("changing", fmt.Sprintf("changing-%d", version)))
		if out, err := exec.Command(program, "plugins", "restart", "source", "--addr", p.HTTP).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		whole("after a swap")
		hasCluster(t, p, fmt.Sprintf("changing-%d", version), true)
	}
	// A swap by the file, to a source that has less to say, is refused, and the old one goes on.
	text, err := os.ReadFile(plugins)
	if err != nil {
		t.Fatal(err)
	}
	write(t, plugins, strings.Replace(string(text), "maxRetry: 1s", "maxRetry: 1s, types: [networking.istio.io/v1/VirtualService]", 1))
	logged(t, p, "plugin change refused")
	whole("after a swap that was refused")
	s.put(t, "changing.yaml", entry("changing", "changing-4"))
	hasCluster(t, p, "changing-4", true)
}
