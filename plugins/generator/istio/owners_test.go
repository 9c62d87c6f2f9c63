package istio

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	extensions "istio.io/api/extensions/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// owners are the objects of namespaces that a piece was made from, by kind and key.
func (w *world) owners(connection uint64, typeURL, name string, of sdk.Piece) string {
	w.t.Helper()
	rows, ok := w.e.ExplainPiece(typeURL, w.out.placed[connection][typeURL], name, of)
	if !ok {
		return "unknown"
	}
	var out []string
	for _, r := range rows {
		if strings.HasPrefix(r.Key, "demo/") || strings.HasPrefix(r.Key, "evil/") || strings.HasPrefix(r.Key, "default/") {
			out = append(out, r.Table[strings.LastIndexByte(r.Table, '/')+1:]+" "+r.Key)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestOwnersOfAVirtualHost: in route configurations that demo and evil share, each virtual host is
// made from the objects of its own namespace.
func TestOwnersOfAVirtualHost(t *testing.T) {
	w := neighbours(t)
	w.ofDemo()
	demo := sdk.Piece{Name: "hello.example:80"}
	evil := sdk.Piece{Name: "other.evil.svc.cluster.local:80"}
	is := func(connection uint64, name string, of sdk.Piece, want string) {
		t.Helper()
		if got := w.owners(connection, encode.RouteType, name, of); got != want {
			t.Errorf("%s of %s is made from %q, want %q", of.Name, name, got, want)
		}
	}
	is(1, "80", demo, "VirtualService demo/v, services demo/hello.example")
	is(1, "80", evil, "VirtualService evil/v, services evil/other.evil.svc.cluster.local")
	is(2, "http.80", demo, "Gateway default/gw, VirtualService demo/v, services demo/hello.example")
	is(2, "http.80", evil, "Gateway default/gw, VirtualService evil/v, services evil/other.evil.svc.cluster.local")
	is(1, "80", sdk.Piece{Name: "nobody:80"}, "unknown")
	is(1, "80", sdk.Piece{Name: "", FilterChain: 0}, "unknown")
	w.commit(rows(config.DestinationRules, spec(t, "evil/d", &networking.DestinationRule{}, `
host: other.evil.svc.cluster.local
trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x}}}`)))
	w.ofDemo()
	is(1, "80", demo, "VirtualService demo/v, services demo/hello.example")
	is(1, "80", evil, "DestinationRule evil/d, VirtualService evil/v, services evil/other.evil.svc.cluster.local")
	is(2, "http.80", demo, "Gateway default/gw, VirtualService demo/v, services demo/hello.example")
	is(2, "http.80", evil, "DestinationRule evil/d, Gateway default/gw, VirtualService evil/v, services evil/other.evil.svc.cluster.local")
	for _, match := range []string{`, match: {routeConfiguration: {vhost: {name: "other.evil.svc.cluster.local:80"}}}`, ""} {
		w.commit(rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, `
configPatches: [{applyTo: VIRTUAL_HOST`+match+`, patch: {operation: MERGE, value: {include_attempt_count_in_response: true}}}]`)))
		w.ofDemo()
		filter := ""
		if match == "" {
			filter = "EnvoyFilter default/f, "
		}
		is(1, "80", demo, filter+"VirtualService demo/v, services demo/hello.example")
		is(1, "80", evil, "DestinationRule evil/d, EnvoyFilter default/f, VirtualService evil/v, services evil/other.evil.svc.cluster.local")
	}
	w.commit(rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, `
configPatches: [{applyTo: VIRTUAL_HOST, match: {context: SIDECAR_OUTBOUND}, patch: {operation: ADD, value: {name: added, domains: [added.example]}}}]`)))
	w.ofDemo()
	is(1, "80", sdk.Piece{Name: "added"}, "EnvoyFilter default/f")
	is(1, "80", demo, "VirtualService demo/v, services demo/hello.example")
}

// TestOwnersOfAFilterChain: of a listener that Gateways share, each chain is made from its own.
func TestOwnersOfAFilterChain(t *testing.T) {
	w := newWorld(t)
	gw := func(key, server string) {
		w.commit(rows(config.Gateways, spec(t, key, &networking.Gateway{}, `{selector: {istio: gateway}, servers: [`+server+`]}`)))
	}
	w.commit(rows(state.Services, serviceOf("hello.example", "demo", "10.96.0.1"), serviceOf("b.evil.svc.cluster.local", "evil", "10.96.0.2")))
	gw("demo/gw", `{port: {number: 443, name: https, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: c}, hosts: [a.example]}`)
	gw("evil/gw", `{port: {number: 443, name: https, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: c}, hosts: [b.example]}`)
	gw("evil/tls", `{port: {number: 443, name: tls, protocol: TLS}, tls: {mode: PASSTHROUGH}, hosts: [c.example]}`)
	w.commit(rows(config.VirtualServices, spec(t, "evil/v", &networking.VirtualService{}, `
hosts: [c.example]
gateways: [evil/tls]
tls: [{match: [{sniHosts: [c.example]}], route: [{destination: {host: b.evil.svc.cluster.local}}]}]`)))
	w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"istio": "gateway"}}))
	l := read(t, w.get(2, encode.ListenerType)["0.0.0.0_443"], &listenerv3.Listener{})
	got := map[string]string{}
	for i, c := range l.FilterChains {
		got[fmt.Sprint(c.FilterChainMatch.ServerNames)] = w.owners(2, encode.ListenerType, l.Name, sdk.Piece{FilterChain: i + 1})
	}
	want := map[string]string{
		"[a.example]": "Gateway demo/gw", "[b.example]": "Gateway evil/gw",
		"[c.example]": "Gateway evil/tls, VirtualService evil/v, services evil/b.evil.svc.cluster.local",
	}
	for names, w := range want {
		if got[names] != w {
			t.Errorf("the chain for %s is made from %q, want %q", names, got[names], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("chains: %v", got)
	}
	for _, place := range []int{len(l.FilterChains) + 1, len(l.FilterChains) + 2, 1 << 40, -1} {
		if o := w.owners(2, encode.ListenerType, l.Name, sdk.Piece{FilterChain: place}); o != "unknown" {
			t.Errorf("chain %d is made from %s", place, o)
		}
	}
}

// TestOwnersOfAFilter: a filter that an EnvoyFilter adds, or a TrafficExtension is, has that alone
// for its owner.
func TestOwnersOfAFilter(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.commit(rows(config.EnvoyFilters,
		spec(t, "default/lua", &networking.EnvoyFilter{}, `
configPatches: [{applyTo: HTTP_FILTER, match: {context: SIDECAR_OUTBOUND}, patch: {operation: INSERT_FIRST, value: {name: evil.lua, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: "("}}}}}]`),
		spec(t, "default/other", &networking.EnvoyFilter{}, `
configPatches: [{applyTo: HTTP_FILTER, match: {context: SIDECAR_OUTBOUND}, patch: {operation: INSERT_FIRST, value: {name: other.lua, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: ""}}}}}]`)))
	w.attach(1, proxy(sidecarID, nil, nil))
	l := read(t, w.get(1, encode.ListenerType)["0.0.0.0_80"], &listenerv3.Listener{})
	if l.DefaultFilterChain == nil && len(l.FilterChains) == 0 {
		t.Fatal("it has no chain")
	}
	for name, want := range map[string]string{
		"evil.lua": "EnvoyFilter default/lua", "other.lua": "EnvoyFilter default/other",
		"envoy.filters.http.router": "unknown",
	} {
		if got := w.owners(1, encode.ListenerType, l.Name, sdk.Piece{Name: name, FilterChain: 1}); got != want {
			t.Errorf("%s is made from %q, want %q", name, got, want)
		}
	}
}

// TestOwnersOfAnExtension: a configuration that proxies ask for has the one object for its owner
// that it is of, not the others that count for the same proxies.
func TestOwnersOfAnExtension(t *testing.T) {
	w := newWorld(t)
	text := `{url: "oci://r/p:1", selector: {matchLabels: {app: a}}}`
	patch := func(name string) string {
		return `{configPatches: [{applyTo: EXTENSION_CONFIG, patch: {operation: ADD, value: {name: ` + name +
			`, typed_config: {"@type": type.googleapis.com/google.protobuf.Empty}}}}]}`
	}
	w.commit(rows(config.WasmPlugins, spec(t, "default/p", &extensions.WasmPlugin{}, text), spec(t, "default/q", &extensions.WasmPlugin{}, text)),
		rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, patch("mine")),
			spec(t, "default/g", &networking.EnvoyFilter{}, patch("others"))))
	w.attach(1, proxy(sidecarID, nil, map[string]any{"LABELS": map[string]any{"app": "a"}}))
	w.get(1, encode.ExtensionType, pluginName, "mine")
	for name, want := range map[string]string{
		pluginName: "[{extensions.istio.io/WasmPlugin default/p}]",
		"mine":     "[{networking.istio.io/EnvoyFilter default/f}]",
	} {
		rows, _, err := w.e.Explain(encode.ExtensionType, w.out.placed[1][encode.ExtensionType], name)
		rows = slices.DeleteFunc(rows, func(r state.Name) bool { return !strings.HasPrefix(r.Key, "default/") })
		if got := fmt.Sprint(rows); err != nil || got != want {
			t.Errorf("%s is made from %s, want %s; %v", name, got, want, err)
		}
	}
}
