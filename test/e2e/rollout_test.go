package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
)

// everywhereYAML is a filter of gateways and sidecars that validation lets pass, whatever its code
// is.
const everywhereYAML = `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: lua, namespace: test}
spec:
  configPatches:
  - applyTo: HTTP_FILTER
    match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}
    patch:
      operation: INSERT_FIRST
      value:
        name: lua
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code: {inline_string: "%s"}
`

// prometheus answers as a Prometheus server would that has read Envoys' statistics: how often
// Lua code fails in them in a fifth of a second.
type prometheus struct {
	*httptest.Server
	of   atomic.Pointer[[]*envoy.Envoy]
	away atomic.Bool
}

func newPrometheus(t *testing.T) *prometheus {
	p := &prometheus{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := p.of.Load()
		if e == nil || p.away.Load() || r.FormValue("query") != "increase(lua_errors[200ms])" {
			http.Error(w, "it is away", http.StatusServiceUnavailable)
			return
		}
		before, err := luaErrors(*e)
		<-time.After(200 * time.Millisecond)
		now, again := luaErrors(*e)
		if err = errors.Join(err, again); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1435781451.781,"%d"]}]}}`, now-before)
	}))
	t.Cleanup(p.Close)
	return p
}

// luaErrors returns how often Lua code has failed in Envoys.
func luaErrors(all []*envoy.Envoy) (sum int, err error) {
	for _, e := range all {
		text, wrong := page.Get(e.Admin, "/stats?filter=lua.errors")
		err = errors.Join(err, wrong)
		for line := range strings.Lines(text) {
			_, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			n, wrong := strconv.Atoi(value)
			sum, err = sum+n, errors.Join(err, wrong)
		}
	}
	return sum, err
}

// TestRollout: the gateway tries edits before the sidecar gets them. One that Envoy refuses though
// validation lets it pass, and one that fails as a metric shows, end there, by themselves, also for
// a core that is killed meanwhile; a good one reaches all. People end stages as well. No request
// fails.
func TestRollout(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"sotw", "delta"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			p, state := newPrometheus(t), t.TempDir()
			w := newWorldOf(t, func(t testing.TB, binary, dir string, args ...string) *mesh.Plane {
				return mesh.Start(t, binary, dir, append(args, "--stateDir", state, "--rolloutFirst", "namespace=test,id=router~*", "--rolloutHold", "1s",
					"--rolloutMetricURL", p.URL, "--rolloutMetricQuery", "increase(lua_errors[200ms])", "--rolloutMetricInterval", "1s")...)
			}, protocol, newIssuer(t))
			p.of.Store(&[]*envoy.Envoy{w.gateway})
			o := operator{t, w.plane.HTTP}
			clients := w.traffic(t)
			gateway, sidecar := w.web("/api")[0], w.web("/api")[1]
			lua := func(code string) { w.put(t, "lua.yaml", fmt.Sprintf(everywhereYAML, code)) }
			o.says("rollout status", 0, "no stage is under way")
			const changes = "listener_manager.listener_modified"
			before := w.client.Stats(t)[changes]

			// An edit that Envoy refuses.
			lua("function envoy_on_request(h) this is not lua end")
			o.until("rollout status", "withdrawn", "refused Listener", "script load error")
			o.says("proxy-status", 0, "(rollout)")
			o.until("config", "EnvoyFilter test/lua: error")

			// The core dies, and another one goes on: also a proxy that comes gets what there was
			// before.
			w.plane.Kill()
			w.plane = w.plane.Again(t)
			w.plane.Ready(t)
			o.until("proxies", "gateway.test", "client.test")
			third := w.proxy(t, "third", protocol, "--type", "router", "--ip", "127.0.0.21", "--labels", "istio=ingressgateway")
			third.Ready(t)
			o.until("rollout status -o wide", "withdrawn", "script load error", "gateway.test", "client.test", "third.test")
			has(t, third, "web.example", "not lua")
			p.of.Store(&[]*envoy.Envoy{w.gateway, third})

			// It is mended so far that Envoy takes it, but it fails when it runs.
			lua("function envoy_on_request(h) local none = nil; none:fails() end")
			o.until("rollout status", "withdrawn", "the metric is ", ", more than 0")
			for _, e := range []*envoy.Envoy{w.gateway, third} {
				has(t, e, "web.example", "none:fails") // also on connections that are drained
			}
			if now := w.client.Stats(t)[changes]; now != before || strings.Contains(w.client.ConfigDump(t), "envoy_on_request") {
				t.Errorf("the sidecar got what was taken back: its listeners were changed %d times, and before that %d times", now, before)
			}

			// It works.
			lua(`function envoy_on_request(h) h:headers():add(\"x-lua\", \"1\") end`)
			has(t, w.gateway, "x-lua", "")
			has(t, w.client, "x-lua", "")
			if now := w.client.Stats(t)[changes]; now <= before {
				t.Errorf("%s is %d, and was %d before: this test sees no changes", changes, now, before)
			}
			o.until("rollout status", "no stage is under way")

			// People decide, while the metric can't be read.
			p.away.Store(true)
			w.Weight1, w.Weight2 = 0, 100
			w.write(t, "routes.yaml")
			only(t, gateway, "v2-a")
			o.until("rollout status -o yaml", "state: staged", "503")
			only(t, sidecar, "v1-a", "v1-b", "v2-a")
			o.says("rollout status -o wide", 0, "client.test", "RouteConfiguration")
			o.says("explain client.test", 0, "coxswain rollout status")
			o.says("config", 0, "1 proxy is not served what has changed since revision")
			metrics, err := page.Get(w.plane.Monitoring, "/metrics")
			if err != nil || !strings.Contains(metrics, `coxswain_rollout_state{state="staged"} 1`) ||
				!strings.Contains(metrics, "coxswain_rollout_held_proxies 1") {
				t.Errorf("metrics don't say that a change is staged: %v", err)
			}
			o.says("rollout abort --why late", 0, "withdrawn", "because", "late")
			only(t, gateway, "v1-a", "v1-b", "v2-a")
			o.says("rollout abort", 1, "no stage is under way")
			w.Weight1, w.Weight2 = 100, 0
			w.write(t, "routes.yaml")
			only(t, gateway, "v1-a", "v1-b")
			only(t, sidecar, "v1-a", "v1-b", "v2-a")
			o.says("rollout promote", 0, "no stage is under way")
			only(t, sidecar, "v1-a", "v1-b")
			o.says("rollout promote", 1, "no stage is under way")
			o.says("proxy-status -o json", 0, "client.test")

			offline := operator{t, "127.0.0.1:1"}
			offline.says("rollout status", 1, "127.0.0.1:1")
			offline.says("rollout promote", 2, "no control plane of this user has a port at 127.0.0.1:1")
			for _, f := range clients {
				asked, failed := f.Stop()
				if asked == 0 || len(failed) > 0 {
					t.Errorf("%d requests, %d failed, such as %v", asked, len(failed), failed[:min(1, len(failed))])
				}
			}
			for _, line := range w.client.Unhappy(t) {
				t.Error(line)
			}
		})
	}
}
