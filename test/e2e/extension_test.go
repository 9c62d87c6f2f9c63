package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const (
	// discovered has a gateway ask for two filters' configurations by ECDS.
	discovered = `---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: filters, namespace: test}
spec:
  configPatches:
  - &filter
    applyTo: HTTP_FILTER
    match: {context: GATEWAY, listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: envoy.filters.http.router}}}}}
    patch: {operation: INSERT_BEFORE, value: {name: a, config_discovery: {config_source: {ads: {}, resource_api_version: V3}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua]}}}
  - <<: *filter
    patch: {operation: INSERT_BEFORE, value: {name: b, config_discovery: {config_source: {ads: {}, resource_api_version: V3}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua]}}}
`
	script = `---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: script-%[1]s, namespace: test}
spec:
  configPatches:
  - applyTo: EXTENSION_CONFIG
    patch: {operation: ADD, value: {name: %[1]s, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: '%[2]s'}}}}
`
	// spoilt is a script that no Envoy takes, which nobody but an Envoy can know.
	spoilt = "function envoy_on_request(h"
)

// answers is the configuration of a filter that answers requests for its name with a word.
func answers(name, word string) string {
	return fmt.Sprintf(script, name,
		fmt.Sprintf(`function envoy_on_request(h) if h:headers():get(":path") == "/%s" then h:respond({[":status"] = "200"}, "%s") end end`, name, word))
}

// TestExtensionThatEnvoyRefuses: filters come by ECDS, and an Envoy refuses one of two that change
// at once. It goes on with the one that it had, the other one changes, the owner is told, and
// nobody else; so it is when something else changes. An Envoy that starts has none of it and lets
// no request pass. Once it is mended all is as it should be.
func TestExtensionThatEnvoyRefuses(t *testing.T) {
	for _, protocol := range []string{"sotw", "delta"} {
		t.Run(protocol, func(t *testing.T) { extensionRefused(t, protocol) })
	}
}

func extensionRefused(t *testing.T, protocol string) {
	envoy.Binary(t)
	dir, port := t.TempDir(), wait.Port(t)
	write := func(text ...string) {
		place(t, filepath.Join(dir, "all.yaml"), fmt.Sprintf(sharedGateway, port)+fmt.Sprintf(answering, "demo", "behind")+discovered+strings.Join(text, ""))
	}
	write(answers("a", "one"), answers("b", "one"))
	plane := mesh.Start(t, program, dir)
	plane.Ready(t)
	run := func(name, address string) *envoy.Envoy {
		admin := wait.Address(t)
		e := envoy.Start(t, name, admin, plane.Bootstrap(t, "--name", name, "--namespace", "test", "--type", "router", "--ip", address,
			"--labels", "istio=ingressgateway", "--protocol", protocol, "--admin", admin))
		e.Ready(t)
		return e
	}
	e := run("gateway", "127.0.0.21")
	at := func(path string) mesh.Target {
		return mesh.Target{Address: local(port), Host: "demo.example", Path: "/" + path}
	}
	only(t, at("a"), "one")
	only(t, at("b"), "one")
	only(t, at("else"), "behind")
	clients := mesh.NewTraffic(t, at("a"))

	write(fmt.Sprintf(script, "a", spoilt), answers("b", "two"))
	only(t, at("b"), "two")
	told := func(want bool) {
		t.Helper()
		wait.For(t, fmt.Sprintf("a is said to be refused: %t", want), func() error {
			out, err := exec.CommandContext(t.Context(), program, "proxies", "--refused", "--addr", plane.HTTP).CombinedOutput()
			if text := string(out); err != nil || strings.Contains(text, "EnvoyFilter test/script-a") != want {
				return fmt.Errorf("%v: it says %s", err, text)
			} else if strings.Contains(text, "EnvoyFilter test/script-b") {
				return fmt.Errorf("b is named: %s", text)
			}
			return nil
		})
	}
	told(true)
	write(fmt.Sprintf(script, "a", spoilt), answers("b", "three"))
	only(t, at("b"), "three")
	told(true)
	only(t, at("a"), "one")
	if asked, failed := clients.Stop(); asked == 0 || len(failed) > 0 {
		t.Errorf("of %d requests %v", asked, failed)
	}

	e.Stop()
	run("another", "127.0.0.22")
	wait.For(t, "an Envoy that starts with it lets nothing pass", func() error {
		code, body, err := at("else").Ask(context.Background())
		if err == nil && body == "behind" {
			t.Fatal("a request passed that the filter did not see")
		}
		if code != http.StatusInternalServerError {
			return fmt.Errorf("%d %q, %v", code, body, err)
		}
		return nil
	})
	write(answers("a", "four"), answers("b", "four"))
	only(t, at("a"), "four")
	only(t, at("else"), "behind")
	told(false)
}
