package envoyfilter

import (
	"strings"
	"testing"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
)

const managerType = `"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s`

// listeners to patch.
const (
	plainListener = `
name: 10.0.0.1_80
address: {socket_address: {address: 10.0.0.1, port_value: 80}}
listener_filters: [{name: tls}, {name: http}]
filter_chains:
- name: web
  filter_chain_match: {server_names: [a.example], transport_protocol: tls, application_protocols: [h2, http/1.1]}
  filters:
  - {name: first}
  - name: envoy.filters.network.http_connection_manager
    typed_config: {` + managerType + `, rds: {route_config_name: r, config_source: {ads: {}}}, http_filters: [{name: fault}, {name: cors}, {name: router}]}
default_filter_chain: {name: rest, filters: [{name: tcp}]}
`
	manyPorts = `
name: virtualInbound
address: {socket_address: {address: 0.0.0.0, port_value: 15006}}
filter_chains:
- {name: c80, filter_chain_match: {destination_port: 80}, filters: [{name: tcp}]}
- {name: c81, filter_chain_match: {destination_port: 81}, filters: [{name: tcp}]}
`
)

// shape is a listener in one line: its filters, and chains with their filters; those for requests
// in parentheses.
func shape(t *testing.T, body []byte) string {
	t.Helper()
	m := &listener.Listener{}
	if err := proto.Unmarshal(body, m); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range m.ListenerFilters {
		out = append(out, f.Name)
	}
	chains := m.FilterChains
	if m.DefaultFilterChain != nil {
		chains = append(chains, m.DefaultFilterChain)
	}
	for _, c := range chains {
		out = append(out, "|", c.Name+":")
		for _, f := range c.Filters {
			out = append(out, strings.TrimPrefix(f.Name, "envoy.filters.network."))
			h := &hcm.HttpConnectionManager{}
			if f.GetTypedConfig().UnmarshalTo(h) == nil {
				var names []string
				for _, x := range h.HttpFilters {
					names = append(names, x.Name)
				}
				out = append(out, "("+strings.Join(names, " ")+")")
			}
		}
	}
	return strings.Join(out, " ")
}

func TestListener(t *testing.T) {
	const whole = "tls http | web: first http_connection_manager (fault cors router) | rest: tcp"
	manager := func(listener string) string {
		return strings.ReplaceAll(listener, "HCM", "envoy.filters.network.http_connection_manager")
	}
	for _, c := range []struct{ name, listener, patch, want string }{
		{"listener filter by name", plainListener, `- {applyTo: LISTENER_FILTER, match: {listener: {listenerFilter: tls}}, patch: {operation: REMOVE}}`,
			strings.TrimPrefix(whole, "tls ")},
		{"no listener filter by no name", plainListener, `- {applyTo: LISTENER_FILTER, patch: {operation: REMOVE}}`, whole},
		{
			"listener filter replaced", plainListener,
			`- {applyTo: LISTENER_FILTER, match: {listener: {listenerFilter: tls}}, patch: {operation: REPLACE, value: {name: x}}}`,
			"x" + strings.TrimPrefix(whole, "tls"),
		},
		{"listener filter first", plainListener, `- {applyTo: LISTENER_FILTER, patch: {operation: INSERT_FIRST, value: {name: x}}}`, "x " + whole},
		{"listener filter inserted, then removed", plainListener, `
- {applyTo: LISTENER_FILTER, match: {listener: {listenerFilter: http}}, patch: {operation: INSERT_BEFORE, value: {name: x}}}
- {applyTo: LISTENER_FILTER, match: {listener: {listenerFilter: x}}, patch: {operation: REMOVE}}`, whole},
		{"listener removed", plainListener, `- {applyTo: LISTENER, match: {listener: {portNumber: 80}}, patch: {operation: REMOVE}}`, ""},
		{"another port", plainListener, `- {applyTo: LISTENER, match: {listener: {portNumber: 81}}, patch: {operation: REMOVE}}`, whole},
		{"another name", plainListener, `- {applyTo: LISTENER, match: {listener: {name: x}}, patch: {operation: REMOVE}}`, whole},
		{"chain by name", plainListener, `- {applyTo: FILTER_CHAIN, match: {listener: {filterChain: {name: web}}}, patch: {operation: REMOVE}}`,
			"tls http | rest: tcp"},
		{"default chain", plainListener, `- {applyTo: FILTER_CHAIN, match: {listener: {filterChain: {name: rest}}}, patch: {operation: REMOVE}}`,
			"tls http | web: first http_connection_manager (fault cors router)"},
		{"chain by all it asks", plainListener, `
- applyTo: FILTER_CHAIN
  match: {listener: {filterChain: {sni: a.example, transportProtocol: tls, applicationProtocols: "http/1.1,h2"}}}
  patch: {operation: REMOVE}`, "tls http | rest: tcp"},
		{
			"chain by more protocols than it has", plainListener,
			`- {applyTo: FILTER_CHAIN, match: {listener: {filterChain: {applicationProtocols: "h2,h3"}}}, patch: {operation: REMOVE}}`,
			whole,
		},
		{
			"chain by another name in hellos", plainListener,
			`- {applyTo: FILTER_CHAIN, match: {listener: {filterChain: {sni: b.example}}}, patch: {operation: REMOVE}}`,
			whole,
		},
		{"one more chain", plainListener, `- {applyTo: FILTER_CHAIN, patch: {operation: ADD, value: {name: new, filters: [{name: f}]}}}`,
			"tls http | web: first http_connection_manager (fault cors router) | new: f | rest: tcp"},
		{
			"chain by protocols with a space", plainListener,
			`- {applyTo: FILTER_CHAIN, match: {listener: {filterChain: {applicationProtocols: "h2, http/1.1"}}}, patch: {operation: REMOVE}}`,
			whole,
		},
		{"one more chain, in no place", plainListener, `- {applyTo: FILTER_CHAIN, patch: {operation: INSERT_FIRST, value: {name: new, filters: [{name: f}]}}}`,
			"tls http | web: first http_connection_manager (fault cors router) | new: f | rest: tcp"},
		{"no chain without filters", plainListener, `- {applyTo: FILTER_CHAIN, patch: {operation: ADD, value: {name: new}}}`, whole},
		{"chain by port", manyPorts, `- {applyTo: FILTER_CHAIN, match: {listener: {portNumber: 80}}, patch: {operation: REMOVE}}`, "| c81: tcp"},
		{
			"chain by its own port", manyPorts,
			`- {applyTo: FILTER_CHAIN, match: {listener: {filterChain: {destinationPort: 81}}}, patch: {operation: REMOVE}}`,
			"| c80: tcp",
		},
		{
			"the listener's own port", manyPorts,
			`- {applyTo: LISTENER, match: {listener: {portNumber: 80}}, patch: {operation: REMOVE}}`,
			"| c80: tcp | c81: tcp",
		},
		{
			"network filter added", plainListener,
			`- {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {name: rest}}}, patch: {operation: ADD, value: {name: x}}}`,
			whole + " x",
		},
		{"network filter before another", plainListener, manager(
			`- {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: HCM}}}}, patch: {operation: INSERT_BEFORE, value: {name: x}}}`,
		),
			"tls http | web: first x http_connection_manager (fault cors router) | rest: tcp"},
		{
			"network filter after another", plainListener,
			`- {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: first}}}}, patch: {operation: INSERT_AFTER, value: {name: x}}}`,
			"tls http | web: first x http_connection_manager (fault cors router) | rest: tcp",
		},
		{"inserted, then removed", plainListener, `
- {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: tcp}}}}, patch: {operation: INSERT_BEFORE, value: {name: x}}}
- {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: x}}}}, patch: {operation: REMOVE}}`, whole},
		{
			"network filter replaced", plainListener,
			`- {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: tcp}}}}, patch: {operation: REPLACE, value: {name: x}}}`,
			"tls http | web: first http_connection_manager (fault cors router) | rest: x",
		},
		{"HTTP filter first, without a match", plainListener, `- {applyTo: HTTP_FILTER, patch: {operation: INSERT_FIRST, value: {name: x}}}`,
			"tls http | web: first http_connection_manager (x fault cors router) | rest: tcp"},
		{"HTTP filter before the last", plainListener, manager(`- {applyTo: HTTP_FILTER, match: {listener: ` +
			`{filterChain: {filter: {name: HCM, subFilter: {name: router}}}}}, patch: {operation: INSERT_BEFORE, value: {name: x}}}`),
			"tls http | web: first http_connection_manager (fault cors x router) | rest: tcp"},
		{"HTTP filter before what isn't there", plainListener, manager(`- {applyTo: HTTP_FILTER, match: {listener: ` +
			`{filterChain: {filter: {name: HCM, subFilter: {name: absent}}}}}, patch: {operation: INSERT_BEFORE, value: {name: x}}}`), whole},
		{"HTTP filter replaced", plainListener, manager(`- {applyTo: HTTP_FILTER, match: {listener: {filterChain: ` +
			`{filter: {name: HCM, subFilter: {name: cors}}}}}, patch: {operation: REPLACE, value: {name: x}}}`),
			"tls http | web: first http_connection_manager (fault x router) | rest: tcp"},
		{"HTTP filter added: the last, as istiod has it", plainListener, `- {applyTo: HTTP_FILTER, patch: {operation: ADD, value: {name: x}}}`,
			"tls http | web: first http_connection_manager (fault cors router x) | rest: tcp"},
		{"HTTP filter removed, then added", plainListener, manager(`
- {applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: HCM, subFilter: {name: fault}}}}}, patch: {operation: REMOVE}}
- {applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: HCM}}}}, patch: {operation: ADD, value: {name: fault}}}`),
			"tls http | web: first http_connection_manager (cors router fault) | rest: tcp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, kept, _ := patches(t, c.patch).Listener(inbound, encoded(t, c.listener, &listener.Listener{}))
			if kept != (c.want != "") {
				t.Fatalf("kept: %v", kept)
			}
			if !kept {
				return
			}
			if got := shape(t, out); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestFilterMerge: configurations merge by type.
func TestFilterMerge(t *testing.T) {
	const tcp = `"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy`
	const echo = `"@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo`
	const logs = ", access_log: [{name: a}]"
	at := func(match, op, config string) string {
		return `- {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {` + match + `}}}, patch: {operation: ` +
			op + `, value: {typed_config: {` + config + `}}}}`
	}
	for _, c := range []struct{ name, patch, want string }{
		{"of one type", at("filter: {name: t}", "MERGE", tcp+", idle_timeout: 2s"), tcp + ", stat_prefix: s, cluster: c, idle_timeout: 2s" + logs},
		{"of another type", at("filter: {name: t}", "MERGE", echo), echo},
		{"without a filter, of one type", at("name: x", "MERGE", tcp+", cluster: d"), tcp + ", stat_prefix: s, cluster: d, idle_timeout: 1s" + logs},
		{"without a filter, of another type", at("name: x", "MERGE", echo), tcp + ", stat_prefix: s, cluster: c, idle_timeout: 1s" + logs},
		{"lists grow", at("filter: {name: t}", "MERGE", tcp+", access_log: [{name: b}]"),
			tcp + ", stat_prefix: s, cluster: c, idle_timeout: 1s, access_log: [{name: a}, {name: b}]"},
		{"lists of filters can't be replaced", at("filter: {name: t}", "MERGE_AND_REPLACE_LIST", tcp+", access_log: [{name: b}]"),
			tcp + ", stat_prefix: s, cluster: c, idle_timeout: 1s" + logs},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := "{name: l, filter_chains: [{name: x, filters: [{name: t, typed_config: {" + tcp +
				", stat_prefix: s, cluster: c, idle_timeout: 1s" + logs + "}}]}]}"
			out, _, _ := patches(t, c.patch).Listener(outbound, encoded(t, before, &listener.Listener{}))
			same(t, out, &listener.Listener{}, "{name: l, filter_chains: [{name: x, filters: [{name: t, typed_config: {"+c.want+"}}]}]}")
		})
	}
}

// TestListenerFilterMerge: settings merge by the filter's name, in the order of the patches.
func TestListenerFilterMerge(t *testing.T) {
	const tls = `typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector`
	const before = "{name: l, listener_filters: [{name: a, " + tls + ", close_connection_on_client_hello_parsing_errors: true}}, {name: b, " + tls + "}}]}"
	const value = "{name: x, " + tls + ", initial_read_buffer_size: 512}}"
	for _, c := range []struct{ name, patch, want string }{
		{"by name", `- {applyTo: LISTENER_FILTER, match: {listener: {listenerFilter: a}}, patch: {operation: MERGE, value: ` + value + `}}`,
			"{name: l, listener_filters: [{name: a, " + tls +
				", close_connection_on_client_hello_parsing_errors: true, initial_read_buffer_size: 512}}, {name: b, " +
				tls + "}}]}"},
		{"by no name", `- {applyTo: LISTENER_FILTER, patch: {operation: MERGE, value: ` + value + `}}`, before},
		{"before it is there", `
- {applyTo: LISTENER_FILTER, match: {listener: {listenerFilter: c}}, patch: {operation: MERGE, value: ` + value + `}}
- {applyTo: LISTENER_FILTER, patch: {operation: ADD, value: {name: c, ` + tls + `}}}}`,
			strings.TrimSuffix(before, "]}") + ", {name: c, " + tls + "}}]}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, _, _ := patches(t, c.patch).Listener(inbound, encoded(t, before, &listener.Listener{}))
			same(t, out, &listener.Listener{}, c.want)
		})
	}
}

// TestInlineRoutes: routes to the workload stand in its listener.
func TestInlineRoutes(t *testing.T) {
	at := func(host string) string {
		return `{name: virtualInbound, filter_chains: [{filters: [{name: envoy.filters.network.http_connection_manager, typed_config: {` + managerType +
			`, route_config: {name: "inbound|80||", virtual_hosts: [` + host + `]}}}]}]}`
	}
	s := patches(t,
		`- {applyTo: VIRTUAL_HOST, match: {context: SIDECAR_INBOUND, routeConfiguration: {portNumber: 80}}, patch: {operation: MERGE, value: {domains: [b]}}}`)
	for side, want := range map[Context]string{inbound: `{name: v, domains: [a, b]}`, outbound: `{name: v, domains: [a]}`} {
		out, _, _ := s.Listener(side, encoded(t, at(`{name: v, domains: [a]}`), &listener.Listener{}))
		same(t, out, &listener.Listener{}, at(want))
	}
}

// TestHTTPFilterMerge: the settings of a filter for requests merge with those of a patch.
func TestHTTPFilterMerge(t *testing.T) {
	const router = `"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router`
	text := func(config string) string {
		return "{name: l, filter_chains: [{name: x, filters: [{name: envoy.filters.network.http_connection_manager, typed_config: {" + managerType +
			", rds: {route_config_name: r, config_source: {ads: {}}}, http_filters: [{name: r, typed_config: {" + router + config + "}}]}}]}]}"
	}
	set := patches(t, "- {applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: "+
		"envoy.filters.network.http_connection_manager, subFilter: {name: r}}}}}, patch: {operation: MERGE, value: "+
		"{name: r, typed_config: {"+router+", dynamic_stats: true}}}}")
	out, _, _ := set.Listener(outbound, encoded(t, text(", suppress_envoy_headers: true"), &listener.Listener{}))
	same(t, out, &listener.Listener{}, text(", suppress_envoy_headers: true, dynamic_stats: true"))
}

// TestDiscoveredFilters: a listener waits two seconds at most for the configuration of a filter
// that nobody has, and as long as it takes for one that a patch brings.
func TestDiscoveredFilters(t *testing.T) {
	const bare = "{name: l, filter_chains: [{name: x, filters: [{name: envoy.filters.network.http_connection_manager, typed_config: {" + managerType +
		", rds: {route_config_name: r, config_source: {ads: {}}}"
	const match = "match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}"
	filter := func(source, timeout string) string {
		if timeout != "" {
			timeout = ", initial_fetch_timeout: " + timeout
		}
		return "{name: found, config_discovery: {config_source: {" + source + timeout + "}, type_urls: [x]}}"
	}
	const brought = "\n- {applyTo: EXTENSION_CONFIG, patch: {operation: ADD, value: {name: found, typed_config: " +
		`{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}}}`
	for _, c := range []struct{ source, timeout, more, want string }{
		{"ads: {}", "", "", "2s"},
		{"ads: {}", "0s", "", "2s"},
		{"ads: {}", "30s", "", "2s"},
		{"ads: {}", "1s", "", "1s"},
		{"ads: {}", "0s", brought, "0s"},
		{"path_config_source: {path: /f}", "", "", ""},
	} {
		set := patches(t, "- {applyTo: HTTP_FILTER, "+match+", patch: {operation: INSERT_FIRST, value: "+filter(c.source, c.timeout)+"}}"+c.more)
		out, _, _ := set.Listener(outbound, encoded(t, bare+"}}]}]}", &listener.Listener{}))
		same(t, out, &listener.Listener{}, bare+", http_filters: ["+filter(c.source, c.want)+"]}}]}]}")
	}
}
