package istio

import (
	"bytes"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// TestAPatchSpoilsItsOwnPiece: of a route configuration that patches spoil, the virtual host that
// Envoy would refuse keeps what it was, or is as it is without patches; those of others have their
// next edit, and nobody is told but the patch's owner.
func TestAPatchSpoilsItsOwnPiece(t *testing.T) {
	const evil, demo = "other.evil.svc.cluster.local:80", "hello.example:80"
	to := func(host, value string) string {
		return `
configPatches: [{applyTo: VIRTUAL_HOST, match: {context: ANY, routeConfiguration: {vhost: {name: "` + host + `"}}}, patch: {operation: MERGE, value: {request_headers_to_add: [{header: {key: x-patched, value: "` + value + `"}}]}}}]`
	}
	added := func(name, domain string) string {
		return `
configPatches: [{applyTo: VIRTUAL_HOST, match: {context: ANY}, patch: {operation: ADD, value: {name: ` + name + `, domains: ["` + domain + `"]}}}]`
	}
	patched := func(h *routev3.VirtualHost) string {
		if h == nil {
			return "gone"
		}
		if len(h.Routes) == 0 {
			return "closed"
		}
		for _, o := range h.RequestHeadersToAdd {
			return o.Header.Value
		}
		return "plain"
	}
	for name, c := range map[string]struct {
		before, spec string
		want         map[string]string
		told         string
	}{
		"it was good before":      {to(evil, "1"), to(evil, "%NOPE%"), map[string]string{evil: "1", demo: "plain"}, "NOPE"},
		"it never was":            {"", to(evil, "%NOPE%"), map[string]string{evil: "plain", demo: "plain"}, "NOPE"},
		"one that is added":       {"", added("new", "a.other"), map[string]string{evil: "plain", demo: "plain", "new": "closed"}, ""},
		"somebody else's domain":  {"", added("new", "Hello.Example"), map[string]string{evil: "plain", demo: "plain", "new": "gone"}, demo},
		"the same name once more": {"", added(`"`+demo+`"`, "z.example"), map[string]string{evil: "plain", demo: "plain"}, "that of another"},
		"a domain that it takes": {"", `
configPatches: [{applyTo: VIRTUAL_HOST, match: {context: ANY, routeConfiguration: {vhost: {name: "` + evil + `"}}}, patch: {operation: MERGE, value: {domains: [hello.example]}}}]`, map[string]string{evil: "plain", demo: "plain"}, demo},
	} {
		t.Run(name, func(t *testing.T) {
			w := neighbours(t)
			commit := func(text string) {
				w.commit(rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, text)))
			}
			w.ofDemo()
			if c.before != "" {
				commit(c.before)
				w.ofDemo()
			}
			commit(c.spec)
			w.commit(demoRoute(t, "2"))
			for connection, name := range map[uint64]string{1: "80", 2: "http.80"} {
				m := w.takenRoutes(connection, name)
				got := map[string]*routev3.VirtualHost{}
				for _, h := range m.VirtualHosts {
					got[h.Name] = h
				}
				for host, want := range c.want {
					if patched(got[host]) != want {
						t.Errorf("%s of %s is %s, want %s", host, name, patched(got[host]), want)
					}
				}
				if !strings.Contains(got[demo].String(), "x-demo") || !strings.Contains(got[demo].String(), `"2"`) {
					t.Errorf("demo's edit doesn't arrive in %s: %v", name, got[demo])
				}
			}
			told := w.out.since()
			if c.told == "" && told != "" || !strings.Contains(told, c.told) || strings.Contains(told, " demo/") || strings.Contains(told, " evil/") {
				t.Errorf("told %q, want %q", told, c.told)
			}
			commit(to(evil, "3"))
			w.ofDemo()
			for _, h := range w.takenRoutes(1, "80").VirtualHosts {
				if h.Name == evil && patched(h) != "3" {
					t.Errorf("once it is mended it is %s", patched(h))
				}
			}
		})
	}
}

// TestAPatchThatDecides: where patches say of a virtual host who gets in, and it never was what
// Envoy takes, nobody gets in without them: all of the configuration stays as it was.
func TestAPatchThatDecides(t *testing.T) {
	w := neighbours(t)
	w.ofDemo()
	before := w.get(1, encode.RouteType, "80")["80"]
	w.commit(rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, `
configPatches: [{applyTo: VIRTUAL_HOST, match: {routeConfiguration: {vhost: {name: "other.evil.svc.cluster.local:80"}}}, patch: {operation: MERGE, value: {require_tls: ALL, request_headers_to_add: [{header: {key: x, value: "%NOPE%"}}]}}}]`)))
	if now := w.get(1, encode.RouteType, "80")["80"]; !bytes.Equal(now, before) {
		t.Error("it is no longer what it was")
	}
	if told := w.out.since(); !strings.Contains(told, "NOPE") || !strings.Contains(told, "default/f") || strings.Contains(told, " demo/") || strings.Contains(told, " evil/") {
		t.Errorf("told %q", told)
	}
}
