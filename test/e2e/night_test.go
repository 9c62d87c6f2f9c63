package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// luaYAML is a filter that validation lets pass, whatever its code is.
const luaYAML = `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: lua, namespace: test}
spec:
  workloadSelector: {labels: {istio: ingressgateway}}
  configPatches:
  - applyTo: HTTP_FILTER
    match: {context: GATEWAY, listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}
    patch:
      operation: INSERT_FIRST
      value:
        name: lua
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code: {inline_string: "%s"}
`

// operator asks a control plane as people do.
type operator struct {
	t    *testing.T
	addr string
}

// runs runs a command and returns what it printed, and its exit code.
func (o operator) runs(args ...string) (string, int) {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "COXSWAIN_ADDR="+o.addr)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		o.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// says checks a command's exit code, and that it prints all of some words.
func (o operator) says(args string, code int, words ...string) {
	o.t.Helper()
	out, got := o.runs(strings.Fields(args)...)
	if got != code {
		o.t.Errorf("coxswain %s: exit code %d, not %d: %s", args, got, code, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			o.t.Errorf("coxswain %s: no %q in\n%s", args, w, out)
		}
	}
}

// until waits until a command prints all of some words.
func (o operator) until(args string, words ...string) {
	o.t.Helper()
	wait.For(o.t, fmt.Sprintf("coxswain %s says %q", args, words), func() error {
		out, _ := o.runs(strings.Fields(args)...)
		for _, w := range words {
			if !strings.Contains(out, w) {
				return errors.New(out)
			}
		}
		return nil
	})
}

func (w *world) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestNight is what an operator asks: why a proxy has what it has, what depends on a row, whom an
// edit has reached. Then an edit comes that Envoy refuses though validation lets it pass. It is
// held and explained; a gateway that starts then has what the others have; what changes meanwhile
// arrives; the fix clears it, and no request fails.
func TestNight(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"sotw", "delta"} {
		t.Run(protocol, func(t *testing.T) {
			w := newVerifiedWorld(t, protocol)
			gateway := func(name string) *envoy.Envoy {
				e := w.proxy(t, name, protocol, "--type", "router", "--ip", "127.0.0.21", "--labels", "istio=ingressgateway")
				e.Ready(t)
				return e
			}
			second := gateway("second")
			clients := w.traffic(t)
			o := operator{t, w.plane.HTTP}
			listener, route := fmt.Sprintf("127.0.0.1_%d", w.GatewayPort), fmt.Sprintf("http.%d.127.0.0.1", w.GatewayPort)

			o.says("explain gateway.test", 0, "RouteConfiguration", "PROXIES IN IT")
			o.says("explain gateway.test route "+route, 0, "VirtualService test/web", "routes.yaml:2:1", "acknowledged", "files")
			o.says("explain gateway.test listener "+listener+" --field name", 0, "Gateway test/gateway", "gateway.yaml:2:1", `"`+listener+`"`)
			o.says("explain gateway.test listener "+listener+" --field address.socket_address.port_value", 0,
				"THE VALUE STANDS IN", "Gateway test/gateway", "spec.servers[0].port.number")
			o.says("explain gateway.test listener "+listener+" --field traffic_direction", 0, "no object that it was made from has this value")
			o.says("explain gateway.test route nothing", 1, route)
			o.says("impact VirtualService/test/web", 0, route, "~gateway.test~", "~second.test~")
			o.says("impact ServiceEntry/test/web", 0, "by way of services test/web.example", "outbound|")
			o.says("impact VirtualService/test/none", 0, "There is no VirtualService test/none")
			o.says("impact Nonsense/test/none", 1, "VirtualService")
			o.says("wait VirtualService/test/web --for acked --timeout 30s", 0, "acked")
			o.says("wait VirtualService/test/none --timeout 1s", 4, "there is no such row")
			o.says("proxy-status", 0, "gateway.test", "second.test", "SYNCED")
			o.says("proxy-status second.test", 0, listener, "acked")
			o.says("proxies --refused -o json", 0, "{}")

			// The edit that Envoy refuses.
			w.put(t, "lua.yaml", fmt.Sprintf(luaYAML, "function envoy_on_request(h) this is not lua end"))
			o.until("config",
				"lua.yaml:2:1: EnvoyFilter test/lua: error: Listener "+listener+" (filter lua of filter chain ",
				") is refused by 2 of the 2 proxies",
				"proxies of namespace test that have not accepted it have the rest")
			o.says("wait EnvoyFilter/test/lua --timeout 30s", 3, "is refused", "script load error")
			o.says("proxies --refused", 0, "held", listener, "2 of 2 identities refuse it", "made from EnvoyFilter test/lua")
			o.says("proxy-status", 0, "ERROR", "gateway.test refused Listener")
			o.says("watch --after 0 --once", 0, "EnvoyFilter test/lua added", "responses refused")
			o.says("explain gateway.test listener "+listener, 0, "EnvoyFilter test/lua")
			third := gateway("third")
			if dump := third.ConfigDump(t); !strings.Contains(dump, listener) || strings.Contains(dump, "not lua") {
				t.Error("a gateway that starts now has not what the others have")
			}
			o.says("proxy-status third.test", 0, listener, "acked")
			o.says("proxy-status", 0, "HELD")

			// All of that can be asked of an archive, too.
			report := filepath.Join(t.TempDir(), "report.zip")
			o.says("bug-report -o "+report, 0, "pages")
			offline := operator{t, "127.0.0.1:1"}
			offline.says("explain gateway.test listener "+listener+" --from "+report, 0, "EnvoyFilter test/lua", "lua.yaml:2:1")
			offline.says("explain gateway.test listener nothing --from "+report, 1, "had no lds")
			offline.says("impact EnvoyFilter/test/lua --from "+report, 0, listener, "~second.test~")
			offline.says("config --from "+report, 0, "is refused by 2 of the 3 proxies")
			offline.says("proxy-status --from "+report, 0, "third.test", "HELD")
			offline.says("watch --once --from "+report, 0, "EnvoyFilter test/lua added")
			offline.says("plugins --from "+report, 0, "istio")
			offline.says("route --archive "+report+fmt.Sprintf(" gateway.test http://web.example:%d/api", w.GatewayPort), 0, "v1")
			offline.says("config --from "+report+"x", 1, "coxswain bug-report makes such archives")
			offline.says("config", 1, "127.0.0.1:1")

			// What changes meanwhile arrives.
			w.Weight1, w.Weight2 = 0, 100
			w.write(t, "routes.yaml")
			for _, target := range w.web("/api") {
				only(t, target, "v2-a")
			}
			o.until("config", "EnvoyFilter test/lua: error")
			metrics, err := page.Get(w.plane.Monitoring, "/metrics")
			if err != nil || !strings.Contains(metrics, `coxswain_quarantined_resources{type="envoy.config.listener.v3.Listener"} 1`) {
				t.Errorf("metrics don't say that something is held: %v", err)
			}

			// The fix.
			w.put(t, "lua.yaml", fmt.Sprintf(luaYAML, `function envoy_on_request(h) h:headers():add(\"x-lua\", \"1\") end`))
			o.until("wait EnvoyFilter/test/lua --timeout 30s", "acked")
			o.until("proxies --refused -o json", "{}")
			if out, _ := o.runs("config"); strings.Contains(out, "error") {
				t.Errorf("the reason stays: %s", out)
			}
			for _, e := range []*envoy.Envoy{w.gateway, second, third} {
				wait.For(t, e.Name+" has the filter", func() error {
					if !strings.Contains(e.ConfigDump(t), "x-lua") {
						return errors.New("it has not")
					}
					return nil
				})
			}
			for _, f := range clients {
				asked, failed := f.Stop()
				if asked == 0 || len(failed) > 0 {
					t.Errorf("%d requests, %d failed, such as %v", asked, len(failed), failed[:min(1, len(failed))])
				}
			}
		})
	}
}

// TestNightInPlainText: without identities each proxy decides for itself. What it refuses of a
// listener, and that alone, is left out for it, also where it starts anew; nobody's object is said
// to be held, edits arrive, and no request fails.
func TestNightInPlainText(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"sotw", "delta"} {
		t.Run(protocol, func(t *testing.T) {
			w := newWorld(t, protocol)
			clients := w.traffic(t)
			o := operator{t, w.plane.HTTP}
			listener := fmt.Sprintf("127.0.0.1_%d", w.GatewayPort)
			w.put(t, "lua.yaml", fmt.Sprintf(luaYAML, "function envoy_on_request(h) this is not lua end"))
			o.until("proxies --refused", listener, "what they refuse of it: filter lua of filter chain ", "counts for themselves alone")
			o.until("config", "1 resource is refused by proxies that speak for themselves alone")
			o.says("wait EnvoyFilter/test/lua --timeout 30s", 3, "is refused", "script load error")
			if out, _ := o.runs("config"); strings.Contains(out, "held") {
				t.Errorf("an object is said to be held: %s", out)
			}
			third := w.proxy(t, "third", protocol, "--type", "router", "--ip", "127.0.0.21", "--labels", "istio=ingressgateway")
			third.Ready(t)
			wait.For(t, "a gateway that starts now has all but the filter", func() error {
				if dump := third.ConfigDump(t); !strings.Contains(dump, listener) || strings.Contains(dump, "not lua") {
					return errors.New("it has not")
				}
				return nil
			})
			w.Weight1, w.Weight2 = 0, 100
			w.write(t, "routes.yaml")
			for _, target := range w.web("/api") {
				only(t, target, "v2-a")
			}
			w.put(t, "lua.yaml", fmt.Sprintf(luaYAML, `function envoy_on_request(h) h:headers():add(\"x-lua\", \"1\") end`))
			o.until("proxies --refused -o json", "{}")
			for _, e := range []*envoy.Envoy{w.gateway, third} {
				wait.For(t, e.Name+" has the filter", func() error {
					if !strings.Contains(e.ConfigDump(t), "x-lua") {
						return errors.New("it has not")
					}
					return nil
				})
			}
			for _, f := range clients {
				asked, failed := f.Stop()
				if asked == 0 || len(failed) > 0 {
					t.Errorf("%d requests, %d failed, such as %v", asked, len(failed), failed[:min(1, len(failed))])
				}
			}
		})
	}
}
