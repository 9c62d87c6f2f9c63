package kube_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

const luaFilter = `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: lua, namespace: shop}
spec:
  workloadSelector: {labels: {app: edge}}
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

// refusedIs returns what finds whether the condition of the EnvoyFilter is so, and says some words.
func refusedIs(t *testing.T, c *kube.Cluster, want, words string) func() error {
	return func() error {
		var o struct {
			Status struct {
				Conditions []struct {
					Type, Status, Message string
					ObservedGeneration    int64
				}
			}
		}
		if err := json.Unmarshal([]byte(c.Kubectl(t, "get", "envoyfilter", "lua", "-n", "shop", "-o", "json")), &o); err != nil {
			return err
		}
		for _, s := range o.Status.Conditions {
			if s.Type == "Refused" && s.Status == want && strings.Contains(s.Message, words) && s.ObservedGeneration > 0 {
				return nil
			}
		}
		return fmt.Errorf("%+v", o)
	}
}

// TestRefusedObject: an object that the API server takes and an Envoy refuses says so in an Event
// and in its status, until it is mended. Requests are answered all the time.
func TestRefusedObject(t *testing.T) {
	envoy.Binary(t) // or skip
	crds, c := definitions(t), kube.Start(t)
	edge, _, _ := strings.Cut(gateway, "---")
	c.Apply(t, documents(namespace, crds["Gateway"], crds["VirtualService"], crds["EnvoyFilter"]))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(edge, route("web", `"*"`, "", direct("one"))))
	w := newVerifiedPlane(t, c, t.TempDir(), "{name: crds, kind: config, builtin: config/kubernetes, config: {kubeconfig: %q, status: true}}")
	w.answers(t, http.StatusOK, "one")
	stop := w.traffic(t)

	status := func(want, words string) {
		t.Helper()
		wait.For(t, "the status says "+want, refusedIs(t, c, want, words))
	}
	says := func(kind, reason, words string, count int) {
		t.Helper()
		wait.For(t, fmt.Sprintf("%d Events %s say %q", count, reason, words), func() error {
			n, all := 0, events(t, c)
			for _, e := range all {
				if e.Type == kind && e.Reason == reason && e.InvolvedObject.Kind == "EnvoyFilter" &&
					e.InvolvedObject.Name == "lua" && strings.Contains(e.Message, words) {
					n += max(e.Count, 1)
				}
			}
			if n != count {
				return fmt.Errorf("they are %d: %+v", n, all)
			}
			return nil
		})
	}
	c.Apply(t, fmt.Sprintf(luaFilter, "this is not lua"))
	says("Warning", "Refused", "script load error", 1)
	status("True", "script load error")
	status("True", " of Listener ") // which part of it
	c.Apply(t, fmt.Sprintf(luaFilter, "function envoy_on_request(h) end"))
	says("Normal", "Taken", "no proxy refuses", 1)
	status("False", "no proxy refuses")
	says("Warning", "Refused", "", 1)
	stop()
}

// TestRefusedIsTakenBack: what a control plane has said of an object that ends meanwhile, the next
// one takes back; one whose proxies refuse it says it again.
func TestRefusedIsTakenBack(t *testing.T) {
	need.All(t)
	envoy.Binary(t) // or skip
	crds, c := definitions(t), kube.Start(t)
	edge, _, _ := strings.Cut(gateway, "---")
	c.Apply(t, documents(namespace, crds["Gateway"], crds["VirtualService"], crds["EnvoyFilter"]))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(edge, route("web", `"*"`, "", direct("one"))))
	const entry = "{name: crds, kind: config, builtin: config/kubernetes, config: {kubeconfig: %q, status: true}}"
	w := newVerifiedPlane(t, c, t.TempDir(), entry)
	w.answers(t, http.StatusOK, "one")
	c.Apply(t, fmt.Sprintf(luaFilter, "this is not lua"))
	wait.For(t, "the status says it", refusedIs(t, c, "True", "script load error"))

	c.Kubectl(t, "patch", "envoyfilter", "lua", "-n", "shop", "--subresource", "status", "--type", "merge", "-p",
		`{"status": {"conditions": [{"type": "Refused", "status": "False", "reason": "Taken", "message": "says another", "observedGeneration": 1}]}}`)
	wait.For(t, "the control plane says it again", refusedIs(t, c, "True", "script load error"))

	w.plane.Kill()
	if err := refusedIs(t, c, "True", "script load error")(); err != nil {
		t.Error(err)
	}
	startPlane(t, c, t.TempDir(), entry)
	wait.For(t, "the next one takes it back", refusedIs(t, c, "False", "no proxy refuses"))
}
