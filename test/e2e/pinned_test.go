package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// newest returns the newest revision that is kept.
func (o operator) newest() uint64 {
	o.t.Helper()
	out, code := o.runs("history", "-o", "json")
	var h report.History
	if err := json.Unmarshal([]byte(out), &h); err != nil || code != 0 {
		o.t.Fatalf("%s: %v", out, err)
	}
	last := uint64(0)
	for _, r := range h.Revisions {
		if r.Kept {
			last = r.Push.Revision
		}
	}
	return last
}

// has waits until an Envoy's configuration has some words, and lacks others.
func has(t *testing.T, e *envoy.Envoy, words, lacks string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("%s has %q and not %q", e.Name, words, lacks), func() error {
		if dump := e.ConfigDump(t); !strings.Contains(dump, words) || lacks != "" && strings.Contains(dump, lacks) {
			return errors.New("it has not")
		}
		return nil
	})
}

// TestPinned: an edit is regretted, and the gateway alone is pinned to the revision before. The pin
// outlives another edit, a new generator, and a core that is killed; a gateway that comes then is
// among the pinned. Endpoints that go are gone for pinned proxies as well. Once unpinned they have
// what is live; no request failed.
func TestPinned(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"sotw", "delta"} {
		t.Run(protocol, func(t *testing.T) {
			state := t.TempDir()
			w := newWorldOn(t, func(t testing.TB, binary, dir string, args ...string) *mesh.Plane {
				return mesh.Start(t, binary, dir, append(args, "--stateDir", state)...)
			}, protocol)
			o := operator{t, w.plane.HTTP}
			w.Weight1, w.Weight2 = 100, 0
			w.write(t, "routes.yaml")
			gateway, sidecar := w.web("/api")[0], w.web("/api")[1]
			only(t, gateway, "v1-a", "v1-b")
			only(t, sidecar, "v1-a", "v1-b")
			clients := w.traffic(t)
			good := o.newest()

			// The edit, and its end for the gateway.
			w.Weight1, w.Weight2 = 0, 100
			w.write(t, "routes.yaml")
			only(t, gateway, "v2-a")
			only(t, sidecar, "v2-a")
			bad := o.newest()
			o.says("history", 0, "VirtualService test/web changed", filepath.Join(state, "history.db"))
			o.says(fmt.Sprintf("diff --from %d --to %d --proxy gateway.test --exit-code", good, bad), 3,
				"RouteConfiguration", "1 proxy", "~gateway.test~", "weight")
			o.says(fmt.Sprintf("diff --from %d --to %d", good, good), 0, "2 proxies compared", "they had the same")
			o.says("pin 999999", 1, "there is no revision 999999 yet")
			o.says("pin", 0, "no proxies are pinned")
			o.says(fmt.Sprintf("pin %d --proxies metadata.NAMESPACE=test,id=router~*", good), 0, "gateway.test", "RouteConfiguration")
			only(t, gateway, "v1-a", "v1-b")
			only(t, sidecar, "v2-a")
			o.says("proxy-status", 0, "PINNED", fmt.Sprint(good))
			o.says("explain gateway.test", 0, fmt.Sprintf("it is pinned to revision %d", good))
			route := fmt.Sprintf("http.%d.127.0.0.1", w.GatewayPort)
			o.says("explain gateway.test route "+route, 0, fmt.Sprintf("it is of revision %d, to which the proxy is pinned", good))
			metrics, err := page.Get(w.plane.Monitoring, "/metrics")
			if err != nil || !strings.Contains(metrics, "coxswain_pinned_proxies 1") || !strings.Contains(metrics, "coxswain_pins 1") {
				t.Errorf("metrics don't say that a proxy is pinned: %v", err)
			}
			if !strings.Contains(w.plane.Log(), "proxies are pinned") {
				t.Error("the log does not say that proxies are pinned")
			}

			// What comes meanwhile: a filter, a new generator, and the end of a backend.
			w.put(t, "lua.yaml", fmt.Sprintf(luaYAML, `function envoy_on_request(h) h:headers():add(\"x-lua\", \"1\") end`))
			o.until("config", "test/lua")
			o.says("plugins restart istio", 0)
			w.V1 = w.V1[:1]
			w.write(t, "web.yaml")
			only(t, gateway, "v1-a")
			only(t, sidecar, "v2-a")
			has(t, w.gateway, route, "x-lua")

			// The core dies, and another one goes on.
			w.plane.Kill()
			w.plane = w.plane.Again(t)
			w.plane.Ready(t)
			third := w.proxy(t, "third", protocol, "--type", "router", "--ip", "127.0.0.21", "--labels", "istio=ingressgateway")
			third.Ready(t)
			o.until("proxy-status", "gateway.test", "client.test", "third.test")
			o.until("pin", "gateway.test", "third.test", fmt.Sprint(good))
			if newest := o.newest(); newest <= bad {
				t.Errorf("revision %d comes after %d", newest, bad)
			}
			only(t, gateway, "v1-a")
			only(t, sidecar, "v2-a")
			has(t, w.gateway, route, "x-lua")
			o.says(fmt.Sprintf("diff --from %d --to %d --proxy gateway.test", good, bad), 0, "weight")

			// The end of the pin.
			o.says("unpin --proxies namespace=other", 1, "there are pins of")
			o.says("unpin", 0, "are served what is live again")
			only(t, gateway, "v2-a")
			has(t, w.gateway, "x-lua", "")
			has(t, third, "x-lua", "")
			o.says("unpin", 1, "no proxies are pinned")
			offline := operator{t, "127.0.0.1:1"}
			offline.says("history", 1, "127.0.0.1:1")
			offline.says("diff --from 1 --to 2", 1, "127.0.0.1:1")
			offline.says("unpin", 2, "no control plane of this user has a port at 127.0.0.1:1")
			w.finish(t, clients)
		})
	}
}
