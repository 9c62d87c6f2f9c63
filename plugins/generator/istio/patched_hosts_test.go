package istio

import (
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestAPatchSpoilsItsOwnPiece: of a route configuration that patches spoil, the virtual host that
// Envoy would refuse keeps what it was, or is as it is without patches; those of others have their
// next edit, and nobody is told but the patch's owner.
func TestAPatchSpoilsItsOwnPiece(t *testing.T) {
	const evil, demo = "other.evil.svc.cluster.local:80", "hello.example:80"
	to := func(host, value string) string {
		return `
configPatches: [{applyTo: VIRTUAL_HOST, match: {context: ANY, routeConfiguration: {vhost: {name: "` + host + `"}}}, ` +
			`patch: {operation: MERGE, value: {request_headers_to_add: [{header: {key: x-patched, value: "` + value + `"}}]}}}]`
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
configPatches: [{applyTo: VIRTUAL_HOST, match: {context: ANY, routeConfiguration: {vhost: {name: "` + evil + `"}}}, ` +
			`patch: {operation: MERGE, value: {domains: [hello.example]}}}]`, map[string]string{evil: "plain", demo: "plain"}, demo},
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
// Envoy takes, it alone stays as it was, or is closed where proxies had none; others have their
// next edit, and so have proxies that come later.
func TestAPatchThatDecides(t *testing.T) {
	const evil, demo = "other.evil.svc.cluster.local:80", "hello.example:80"
	hosts := func(w *world, connection uint64, name string) map[string]*routev3.VirtualHost {
		out := map[string]*routev3.VirtualHost{}
		for _, h := range w.takenRoutes(connection, name).VirtualHosts {
			out[h.Name] = h
		}
		return out
	}
	for name, patch := range map[string]string{
		"of a virtual host": `{applyTo: VIRTUAL_HOST, match: {routeConfiguration: {vhost: {name: "` + evil +
			`"}}}, patch: {operation: MERGE, value: {require_tls: ALL, request_headers_to_add: [{header: {key: x, value: "%NOPE%"}}]}}}`,
		"of all settings": `{applyTo: ROUTE_CONFIGURATION, patch: {operation: MERGE, value: {request_headers_to_add: [{header: {key: x, value: "%NOPE%"}}]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := neighbours(t)
			w.ofDemo()
			before := hosts(w, 1, "80")[evil]
			w.commit(rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, "configPatches: ["+patch+"]")))
			w.ofDemo()
			if told := w.out.since(); !strings.Contains(told, "NOPE") || !strings.Contains(told, "default/f") ||
				strings.Contains(told, " demo/") || strings.Contains(told, " evil/") {
				t.Errorf("told %q", told)
			}
			w.commit(demoRoute(t, "2"), rows(state.Services, serviceOf("new.evil.svc.cluster.local", "evil", "10.96.0.30")))
			for connection, name := range map[uint64]string{1: "80", 2: "http.80"} {
				if now := hosts(w, connection, name)[demo]; !strings.Contains(now.String(), `"2"`) {
					t.Errorf("demo's edit doesn't arrive in %s: %v", name, now)
				}
			}
			now := hosts(w, 1, "80")
			if !proto.Equal(now[evil], before) {
				t.Errorf("it is no longer what it was: %v", now[evil])
			}
			if len(now["new.evil.svc.cluster.local:80"].GetRoutes()) == 0 {
				t.Error("a host that comes later is closed, though no patch is for it")
			}
			w.attach(3, proxy(sidecarID, nil, nil)) // it comes while it is so
			if late := hosts(w, 3, "80")[evil]; !proto.Equal(late, before) {
				t.Errorf("one that comes later has %v", late)
			}
			w.out.since()
			w.commit(&pb.TableRows{Table: config.EnvoyFilters, Deletes: []string{"default/f"}})
			w.ofDemo()
			if now := hosts(w, 1, "80")[evil]; !proto.Equal(now, before) || w.out.since() != "" {
				t.Errorf("without the patch it is %v", now)
			}
		})
	}
}

// TestAHostThatComesToAPatchThatDecides: a virtual host that was not there before is closed, and
// what asks for it isn't led anywhere else.
func TestAHostThatComesToAPatchThatDecides(t *testing.T) {
	w := neighbours(t)
	w.ofDemo()
	w.commit(rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, `
configPatches: [{applyTo: VIRTUAL_HOST, match: {routeConfiguration: {vhost: {name: "new.evil.svc.cluster.local:80"}}}, patch: {operation: MERGE, value: {require_tls: ALL, request_headers_to_add: [{header: {key: x, value: "%NOPE%"}}]}}}]`)))
	w.ofDemo()
	w.commit(rows(state.Services, serviceOf("new.evil.svc.cluster.local", "evil", "10.96.0.30")))
	found := false
	for _, h := range w.takenRoutes(1, "80").VirtualHosts {
		if h.Name == "new.evil.svc.cluster.local:80" {
			if found = true; len(h.Routes) > 0 || !slices.Contains(h.Domains, "new.evil.svc.cluster.local") {
				t.Errorf("it is %v", h)
			}
		}
	}
	if !found {
		t.Error("it is not there: requests for it go elsewhere")
	}
}

// TestAPatchSpoilsItsOwnChain: of a listener that several Gateways share a patch spoils one filter
// chain, or the settings beside them: it stays as it was, or is closed where it is new; the chains
// of others have their next edit, and their objects aren't named.
func TestAPatchSpoilsItsOwnChain(t *testing.T) {
	gateway := func(key, host, credential string) *pb.TableRows {
		return rows(config.Gateways, spec(t, key, &networking.Gateway{}, `
selector: {istio: gateway}
servers: [{port: {number: 443, name: https, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: `+credential+`}, hosts: [`+host+`]}]`))
	}
	patch := func(more string) *pb.TableRows {
		return rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, `
configPatches: [`+more+`]`))
	}
	const (
		chainOf = `match: {context: GATEWAY, listener: {filterChain: {sni: b.example}}}`
		timeout = `{applyTo: FILTER_CHAIN, ` + chainOf + `, patch: {operation: MERGE, value: {transport_socket_connect_timeout: -1s}}}`
		filter  = `{applyTo: HTTP_FILTER, ` + chainOf + `, patch: {operation: INSERT_FIRST, value: {name: x, ` +
			`typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC, rules: {policies: ` +
			`{a: {}}}}}}}`
		twice = `{applyTo: FILTER_CHAIN, ` + chainOf + `, patch: {operation: MERGE, value: {filter_chain_match: {server_names: [a.example]}}}}`
		added = `{applyTo: FILTER_CHAIN, match: {context: GATEWAY}, patch: {operation: ADD, value: {name: added, ` +
			`filter_chain_match: {server_names: [c.example]}, transport_socket_connect_timeout: -1s, filters: [{name: ` +
			`envoy.filters.network.echo, typed_config: {"@type": ` +
			`type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}]}}}`
		rest = `{applyTo: LISTENER, match: {context: GATEWAY}, patch: {operation: MERGE, value: {listener_filters_timeout: -1s}}}`
	)
	for _, c := range []struct {
		name, patch string
		// new: b.example comes after the patch; added: the patch's own chain is there, closed.
		new, added bool
		why        string
	}{
		{"a field", timeout, false, false, "a duration of -1 seconds"},
		{"a filter that decides", filter, false, false, "Policy.Permissions"},
		{"connections of another", twice, false, false, "asks for the same connections"},
		{"a chain that comes later", timeout, true, false, "a duration of -1 seconds"},
		{"one that is added", added, false, true, "a duration of -1 seconds"},
		{"settings beside the chains", rest, false, false, "a duration of -1 seconds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.commit(gateway("demo/gw", "a.example", "one"))
			if !c.new {
				w.commit(gateway("evil/gw", "b.example", "two"))
			}
			w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"istio": "gateway"}}))
			chains := func(connection uint64) map[string]*listenerv3.FilterChain {
				l := read(t, w.get(connection, encode.ListenerType)["0.0.0.0_443"], &listenerv3.Listener{})
				if err := envoyrules.CheckAll(l); err != nil || l.GetAddress() == nil {
					t.Errorf("the listener: %v, %v", err, l.GetAddress())
				}
				out := map[string]*listenerv3.FilterChain{}
				for _, c := range l.FilterChains {
					out[strings.Join(c.GetFilterChainMatch().GetServerNames(), " ")] = c
				}
				return out
			}
			before := chains(2)
			w.commit(patch(c.patch))
			chains(2)
			told := w.out.since()
			if c.new {
				w.commit(gateway("evil/gw", "b.example", "two"))
				chains(2)
				told = w.out.since()
			}
			if !strings.Contains(told, c.why) || !strings.Contains(told, "default/f") || strings.Contains(told, " demo/") || strings.Contains(told, " evil/") {
				t.Errorf("told %q, want %q of default/f", told, c.why)
			}
			w.commit(gateway("demo/gw", "a.example", "another"))
			w.attach(3, proxy("router~10.9.9.7~gw2.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"istio": "gateway"}}))
			for _, connection := range []uint64{2, 3} {
				now := chains(connection)
				if !strings.Contains(now["a.example"].String(), "another") {
					t.Errorf("demo's edit doesn't arrive at %d: %v", connection, now["a.example"])
				}
				switch b := now["b.example"]; {
				case b == nil:
					t.Error("the patch's chain is gone: its connections go elsewhere")
				case c.new && len(b.Filters) > 0:
					t.Errorf("it is open, and never was good: %v", b)
				case !c.new && !proto.Equal(b, before["b.example"]):
					t.Errorf("it is no longer what it was: %v", b)
				}
				if own := now["c.example"]; c.added && (own == nil || len(own.Filters) > 0) {
					t.Errorf("the chain that is added is %v, want it closed", own)
				}
			}
			w.out.since()
			w.commit(&pb.TableRows{Table: config.EnvoyFilters, Deletes: []string{"default/f"}})
			if now := chains(2); len(now["b.example"].GetFilters()) == 0 || w.out.since() != "" || now["c.example"] != nil {
				t.Errorf("without the patch: %v", now)
			}
		})
	}
}

// TestAChainWithoutABefore: where nothing is known of what proxies had, as after a start, a chain
// that patches spoil is closed, and others are served; a listener whose settings they spoil isn't
// there.
func TestAChainWithoutABefore(t *testing.T) {
	for patch, want := range map[string]bool{
		`{applyTo: FILTER_CHAIN, match: {context: GATEWAY, listener: {filterChain: {sni: b.example}}}, patch: ` +
			`{operation: MERGE, value: {transport_socket_connect_timeout: -1s}}}`: true,
		`{applyTo: LISTENER, match: {context: GATEWAY}, patch: {operation: MERGE, value: {listener_filters_timeout: -1s}}}`: false,
	} {
		w := newWorld(t)
		w.commit(rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, "configPatches: ["+patch+"]")),
			rows(config.Gateways, spec(t, "demo/gw", &networking.Gateway{}, `
selector: {istio: gateway}
servers:
- {port: {number: 443, name: a, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: one}, hosts: [a.example]}
- {port: {number: 443, name: b, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: two}, hosts: [b.example]}`)))
		w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"istio": "gateway"}}))
		body := w.get(2, encode.ListenerType)["0.0.0.0_443"]
		if (body != nil) != want {
			t.Errorf("%s: it is there: %v", patch, body != nil)
		}
		if !want {
			continue
		}
		for _, c := range read(t, body, &listenerv3.Listener{}).FilterChains {
			if spoilt := slices.Contains(c.GetFilterChainMatch().GetServerNames(), "b.example"); spoilt != (len(c.Filters) == 0) {
				t.Errorf("%v has %d filters", c.FilterChainMatch, len(c.Filters))
			}
		}
	}
}

// TestHostsWithoutABefore is the same for virtual hosts: where patches spoil all of them nothing is
// served, for proxies that run have what was there before a start.
func TestHostsWithoutABefore(t *testing.T) {
	for match, want := range map[string]bool{`{routeConfiguration: {vhost: {name: "other.evil.svc.cluster.local:80"}}}`: true, "{context: ANY}": false} {
		w := newWorld(t)
		w.commit(rows(state.Services, serviceOf("hello.example", "demo", "10.96.0.1"), serviceOf("other.evil.svc.cluster.local", "evil", "10.96.0.2")),
			rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, `
configPatches: [{applyTo: VIRTUAL_HOST, match: `+match+`, patch: {operation: MERGE, value: {require_tls: ALL, `+
				`request_headers_to_add: [{header: {key: x, value: "%NOPE%"}}]}}}]`)))
		w.attach(1, proxy(sidecarID, nil, nil))
		body := w.get(1, encode.RouteType, "80")["80"]
		if (body != nil) != want {
			t.Errorf("%s: it is there: %v", match, body != nil)
		}
		if !want {
			continue
		}
		for _, h := range read(t, body, &routev3.RouteConfiguration{}).VirtualHosts {
			if spoilt := strings.HasPrefix(h.Name, "other.evil"); spoilt != (len(h.Routes) == 0) {
				t.Errorf("%s has %d routes", h.Name, len(h.Routes))
			}
		}
	}
}
