package envoyfilter

import (
	"encoding/json"
	"reflect"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

const (
	inbound  = networking.EnvoyFilter_SIDECAR_INBOUND
	outbound = networking.EnvoyFilter_SIDECAR_OUTBOUND
	gateway  = networking.EnvoyFilter_GATEWAY
)

// patches reads configPatches as YAML.
func patches(t *testing.T, text string) *Set {
	t.Helper()
	var all []*Patch
	for _, p := range configPatches(t, text) {
		read, err := Parse(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, read)
	}
	return NewSet(all)
}

func configPatches(t *testing.T, text string) []*networking.EnvoyFilter_EnvoyConfigObjectPatch {
	t.Helper()
	spec := &networking.EnvoyFilter{}
	unmarshal(t, "configPatches:\n"+text, spec)
	return spec.ConfigPatches
}

func unmarshal(t *testing.T, text string, m proto.Message) {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(b, m); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

// same compares an encoded message with YAML.
func same(t *testing.T, body []byte, m proto.Message, want string) {
	t.Helper()
	if err := proto.Unmarshal(body, m); err != nil {
		t.Fatal(err)
	}
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var got, wanted any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, wanted) {
		out, _ := yaml.Marshal(got)
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func encoded(t *testing.T, text string, m proto.Message) []byte {
	t.Helper()
	unmarshal(t, text, m)
	return encode.Wrap(m).Value
}

func TestCluster(t *testing.T) {
	const plain = "name: outbound|80|v1|a.b\nconnect_timeout: 10s\n"
	for _, c := range []struct {
		name, cluster, patch string
		side                 Context
		hosts                []string
		want                 string // empty: removed
	}{
		{"merge", plain, `- {applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 0.5s, dns_lookup_family: V4_ONLY}}}`,
			outbound, nil, "{name: outbound|80|v1|a.b, connect_timeout: 0.500s, dns_lookup_family: V4_ONLY}"},
		{"all of a match", plain, `- {applyTo: CLUSTER, match: {cluster: {service: a.b, subset: v1, portNumber: 80}}, patch: {operation: REMOVE}}`,
			outbound, nil, ""},
		{"another subset", plain, `- {applyTo: CLUSTER, match: {cluster: {service: a.b, subset: v2}}, patch: {operation: REMOVE}}`, outbound, nil, plain},
		{"another port", plain, `- {applyTo: CLUSTER, match: {cluster: {portNumber: 81}}, patch: {operation: REMOVE}}`, outbound, nil, plain},
		{"another side", plain, `- {applyTo: CLUSTER, match: {context: SIDECAR_INBOUND}, patch: {operation: REMOVE}}`, outbound, nil, plain},
		{"the name decides alone", plain, `- {applyTo: CLUSTER, match: {cluster: {name: "outbound|80|v1|a.b", portNumber: 9}}, patch: {operation: REMOVE}}`,
			outbound, nil, ""},
		{"the service behind a port", "name: inbound|80||", `- {applyTo: CLUSTER, match: {cluster: {service: a.b}}, patch: {operation: REMOVE}}`,
			inbound, []string{"x.y", "a.b"}, ""},
		{"by server name", "name: outbound_.80_.v1_.a.b", `- {applyTo: CLUSTER, match: {cluster: {service: a.b, subset: v1}}, patch: {operation: REMOVE}}`,
			gateway, nil, ""},
		{"by a name that it had", plain, `
- {applyTo: CLUSTER, patch: {operation: MERGE, value: {name: renamed}}}
- {applyTo: CLUSTER, match: {cluster: {name: "outbound|80|v1|a.b"}}, patch: {operation: REMOVE}}`, outbound, nil, "{name: renamed, connect_timeout: 10s}"},
		{"removed after it was changed", plain, `
- {applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 1s}}}
- {applyTo: CLUSTER, match: {cluster: {service: a.b}}, patch: {operation: REMOVE}}`, outbound, nil, ""},
		{"in order", plain, `
- {applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 1s}}}
- {applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 2s}}}`, outbound, nil, "{name: outbound|80|v1|a.b, connect_timeout: 2s}"},
		{"lists grow", "{name: c, filters: [{name: a}]}",
			`- {applyTo: CLUSTER, patch: {operation: MERGE, value: {filters: [{name: b}]}}}`, outbound, nil,
			"{name: c, filters: [{name: a}, {name: b}]}"},
		{"lists are replaced", "{name: c, filters: [{name: a}]}",
			`- {applyTo: CLUSTER, patch: {operation: MERGE_AND_REPLACE_LIST, value: {filters: [{name: b}]}}}`, outbound, nil,
			"{name: c, filters: [{name: b}]}"},
		{"durations are replaced", "{name: c, connect_timeout: 1.5s}",
			`- {applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 2s}}}`, outbound, nil, "{name: c, connect_timeout: 2s}"},
		{"maps gain", "{name: c, metadata: {filter_metadata: {a: {x: 1}, b: {y: 1}}}}",
			`- {applyTo: CLUSTER, patch: {operation: MERGE, value: {metadata: {filter_metadata: {b: {z: 1}, c: {}}}}}}`, outbound, nil,
			"{name: c, metadata: {filter_metadata: {a: {x: 1}, b: {z: 1}, c: {}}}}"},
		{"fields that nobody knows", plain, `- {applyTo: CLUSTER, patch: {operation: MERGE, value: {no_such_field: 1, alt_stat_name: s}}}`, outbound, nil,
			plain + "alt_stat_name: s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &cluster.Cluster{}
			body := encoded(t, c.cluster, m)
			out, kept := patches(t, c.patch).Cluster(c.side, m.Name, c.hosts, body)
			if kept != (c.want != "") {
				t.Fatalf("kept: %v", kept)
			}
			if kept {
				same(t, out, &cluster.Cluster{}, c.want)
			}
		})
	}
}

// TestSockets: a patch to a cluster's TLS reaches the settings of its sockets, and nothing else.
func TestSockets(t *testing.T) {
	const tls = `"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext`
	const patch = `
- applyTo: CLUSTER
  patch: {operation: MERGE, value: {connect_timeout: 1s, transport_socket: {name: tls, typed_config: {` + tls + `, max_session_keys: 3}}}}`
	for _, c := range []struct{ name, before, after string }{
		{"of its name", "{name: c, transport_socket: {name: tls, typed_config: {" + tls + ", sni: s}}}",
			"{name: c, transport_socket: {name: tls, typed_config: {" + tls + ", sni: s, max_session_keys: 3}}}"},
		{"of another name", "{name: c, transport_socket: {name: raw, typed_config: {" + tls + ", sni: s}}}",
			"{name: c, transport_socket: {name: tls, typed_config: {" + tls + ", max_session_keys: 3}}}"},
		{"none", "{name: c}", "{name: c, transport_socket: {name: tls, typed_config: {" + tls + ", max_session_keys: 3}}}"},
		{"by endpoint", "{name: c, transport_socket_matches: [{name: m, transport_socket: {name: tls, typed_config: {" + tls + ", sni: s}}}, {name: plain}]}",
			"{name: c, transport_socket_matches: [{name: m, transport_socket: {name: tls, typed_config: {" + tls +
				", sni: s, max_session_keys: 3}}}, {name: plain}]}"},
		{"of its name, without settings", "{name: c, transport_socket: {name: tls}}", "{name: c, transport_socket: {name: tls}}"},
		{"by endpoint, of other names", "{name: c, transport_socket_matches: [{name: m, transport_socket: {name: raw}}]}",
			"{name: c, transport_socket_matches: [{name: m, transport_socket: {name: raw}}]}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, _ := patches(t, patch).Cluster(outbound, "c", nil, encoded(t, c.before, &cluster.Cluster{}))
			same(t, out, &cluster.Cluster{}, c.after)
		})
	}
}

// TestListsInSockets: they grow.
func TestListsInSockets(t *testing.T) {
	const socket = `transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, ` +
		`common_tls_context: {alpn_protocols: `
	for _, op := range []string{"MERGE", "MERGE_AND_REPLACE_LIST"} {
		s := patches(t, `- {applyTo: CLUSTER, patch: {operation: `+op+`, value: {`+socket+`[b]}}}}}}`)
		out, _ := s.Cluster(outbound, "c", nil, encoded(t, "{name: c, "+socket+"[a]}}}}", &cluster.Cluster{}))
		same(t, out, &cluster.Cluster{}, "{name: c, "+socket+"[a, b]}}}}")
	}
}

func TestAdditions(t *testing.T) {
	s := patches(t, `
- {applyTo: CLUSTER, patch: {operation: ADD, value: {name: anywhere}}}
- {applyTo: CLUSTER, match: {context: SIDECAR_INBOUND}, patch: {operation: ADD, value: {name: in}}}
- {applyTo: LISTENER, match: {context: GATEWAY}, patch: {operation: INSERT_FIRST, value: {name: gw}}}
- {applyTo: EXTENSION_CONFIG, patch: {operation: ADD, value: {name: x}}}
- {applyTo: EXTENSION_CONFIG, patch: {operation: MERGE, value: {name: merged}}}`)
	for side, want := range map[Context]string{outbound: "anywhere ", inbound: "in ", gateway: "anywhere gw "} {
		got := ""
		for _, c := range s.Clusters(side) {
			got += c.Name + " "
		}
		for _, l := range s.Listeners(side) {
			got += l.Name + " "
		}
		if got != want {
			t.Errorf("%v: %s, want %s", side, got, want)
		}
	}
	if s.Extension("x") == nil || s.Extension("merged") != nil || s.Extension("y") != nil {
		t.Error("an extension configuration is there by its name, where a patch adds it")
	}
}

func TestRoutes(t *testing.T) {
	const base = `
name: "80"
virtual_hosts:
- name: a
  domains: [a.example]
  routes:
  - {name: one, match: {prefix: /1}, route: {cluster: x, timeout: 1s}}
  - {name: two, match: {prefix: /2}, redirect: {path_redirect: /}}
  - {name: three, match: {prefix: /3}, direct_response: {status: 200}}
`
	names := func(t *testing.T, body []byte) string {
		m := &route.RouteConfiguration{}
		if err := proto.Unmarshal(body, m); err != nil {
			t.Fatal(err)
		}
		out := ""
		for _, h := range m.VirtualHosts {
			out += h.Name + ":"
			for _, r := range h.Routes {
				out += " " + r.Name
			}
			out += "; "
		}
		return out
	}
	const added = "{name: new, match: {prefix: /new}, direct_response: {status: 200}}"
	in := func(match, op, value string) string {
		return `- {applyTo: HTTP_ROUTE, match: {routeConfiguration: {vhost: ` + match + `}}, patch: {operation: ` + op + `, value: ` + value + `}}`
	}
	for _, c := range []struct{ name, patch, want string }{
		{"add", in("{name: a}", "ADD", added), "a: one two three new; "},
		{"first", in("{name: a}", "INSERT_FIRST", added), "a: new one two three; "},
		{"before one", in("{route: {name: two}}", "INSERT_BEFORE", added), "a: one new two three; "},
		{"before none", in("{name: a}", "INSERT_BEFORE", added), "a: new one two three; "},
		{"before what isn't there", in("{route: {name: four}}", "INSERT_BEFORE", added), "a: one two three; "},
		{"after one", in("{route: {name: two}}", "INSERT_AFTER", added), "a: one two new three; "},
		{"after none", in("{name: a}", "INSERT_AFTER", added), "a: one two three new; "},
		{"first where there is one", in("{route: {name: two}}", "INSERT_FIRST", added), "a: new one two three; "},
		{"first where there isn't", in("{route: {name: four}}", "INSERT_FIRST", added), "a: one two three; "},
		{"no replacing", in("{route: {name: two}}", "REPLACE", added), "a: one two three; "},
		{"remove by action", in("{route: {action: REDIRECT}}", "REMOVE", "{}"), "a: one three; "},
		{"remove by domain and action", in("{domainName: a.example, route: {action: DIRECT_RESPONSE}}", "REMOVE", "{}"), "a: one two; "},
		{"another domain", in("{domainName: b.example, route: {action: ROUTE}}", "REMOVE", "{}"), "a: one two three; "},
		{"rename", in("{route: {name: one}}", "MERGE", "{name: new}"), "a: new two three; "},
		{"a host", `- {applyTo: VIRTUAL_HOST, patch: {operation: ADD, value: {name: b, domains: [b.example]}}}`, "a: one two three; b:; "},
		{
			"a host in no place",
			`- {applyTo: VIRTUAL_HOST, patch: {operation: INSERT_BEFORE, value: {name: b, domains: [b.example]}}}`,
			"a: one two three; b:; ",
		},
		{"another host", `- {applyTo: VIRTUAL_HOST, match: {routeConfiguration: {vhost: {name: a}}}, patch: {operation: ` +
			`REPLACE, value: {name: b, domains: [b.example], routes: [` + added + `]}}}`,
			"b: new; "},
		{"another host, then its routes", `
- {applyTo: VIRTUAL_HOST, patch: {operation: REPLACE, value: {name: b, domains: [b.example], routes: [` + added + `]}}}
- {applyTo: HTTP_ROUTE, match: {routeConfiguration: {vhost: {name: b}}}, patch: {operation: ADD, value: {name: last, match: {prefix: /}, direct_response: {status: 200}}}}`, "b: new last; "},
		{"removed, and not added again", `
- {applyTo: VIRTUAL_HOST, match: {routeConfiguration: {vhost: {name: a}}}, patch: {operation: REMOVE}}
- {applyTo: VIRTUAL_HOST, patch: {operation: ADD, value: {name: a, domains: [b.example]}}}
- {applyTo: VIRTUAL_HOST, patch: {operation: ADD, value: {name: c, domains: [c.example]}}}`, "c:; "},
		{"no host", `- {applyTo: VIRTUAL_HOST, match: {routeConfiguration: {vhost: {name: a}}}, patch: {operation: REMOVE}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := encoded(t, base, &route.RouteConfiguration{})
			if got := names(t, patches(t, c.patch).Routes(outbound, body, nil)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestRouteNames(t *testing.T) {
	for _, c := range []struct {
		side        Context
		name, match string
		ports       map[uint32][]uint32
		want        bool
	}{
		{outbound, "80", "{portNumber: 80}", nil, true},
		{outbound, "90", "{portNumber: 80}", nil, false},
		{outbound, "80", `{name: "80"}`, nil, true},
		{outbound, "80", "{gateway: a/b}", nil, true}, // only gateways are asked
		{outbound, "80", "{portName: http}", nil, true},
		{outbound, "80", "{portName: http, portNumber: 81}", nil, false},
		{outbound, "a.example:80", "{portNumber: 80}", nil, false},
		{inbound, "inbound|80||", "{portNumber: 80}", nil, true},
		{gateway, "http.8080", "{portNumber: 8080}", nil, true},
		{gateway, "http.8080", "{portNumber: 80}", map[uint32][]uint32{8080: {80, 81}}, true},
		{gateway, "http.8080", "{portNumber: 8080}", map[uint32][]uint32{8080: {80, 81}}, false},
		{gateway, "http.80", "{gateway: ns/gw}", nil, false},
		{gateway, "https.443.app.gw.ns", "{portNumber: 443, portName: app, gateway: ns/gw}", nil, true},
		{gateway, "https.443.app.gw.ns", "{portName: other}", nil, false},
		{gateway, "http.8080.10.0.0.1", "{portNumber: 8080}", nil, true},
		{gateway, "https.443.app.gw.ns.10.0.0.1", "{portNumber: 443, portName: app, gateway: ns/gw}", nil, true},
	} {
		s := patches(t,
			`- {applyTo: ROUTE_CONFIGURATION, match: {routeConfiguration: `+c.match+`}, patch: {operation: MERGE, value: {response_headers_to_remove: [x]}}}`)
		out := s.Routes(c.side, encode.Bytes(&route.RouteConfiguration{Name: c.name}), func(at uint32) []uint32 { return c.ports[at] })
		m := &route.RouteConfiguration{}
		if err := proto.Unmarshal(out, m); err != nil {
			t.Fatal(err)
		}
		if got := len(m.ResponseHeadersToRemove) > 0; got != c.want {
			t.Errorf("%s %s: %v", c.name, c.match, got)
		}
	}
}

// TestUnknownTypes: what no library here knows goes on as Envoy can read it.
func TestUnknownTypes(t *testing.T) {
	s := patches(t, `
- applyTo: EXTENSION_CONFIG
  patch:
    operation: ADD
    value: {name: x, typed_config: {"@type": type.googleapis.com/acme.Filter, level: 3, nested: [{"@type": type.googleapis.com/acme.Other, a: b}]}}`)
	same(t, encode.Bytes(s.Extension("x")), &core.TypedExtensionConfig{}, `
name: x
typed_config:
  "@type": type.googleapis.com/xds.type.v3.TypedStruct
  type_url: type.googleapis.com/acme.Filter
  value:
    level: 3
    nested: [{"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: type.googleapis.com/acme.Other, value: {a: b}}]`)
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a value of another type": `- {applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: soon}}}`,
		"nothing to add":          `- {applyTo: CLUSTER, patch: {operation: ADD}}`,
		"the bootstrap":           `- {applyTo: BOOTSTRAP, patch: {operation: MERGE, value: {}}}`,
	} {
		if _, err := Parse(configPatches(t, text)[0]); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

// TestPatchesStayAsTheyAre: what is added may be patched again, and the next resource still gets
// what was written.
func TestPatchesStayAsTheyAre(t *testing.T) {
	s := patches(t, `
- {applyTo: FILTER_CHAIN, patch: {operation: ADD, value: {name: added, filters: [{name: f}]}}}
- {applyTo: LISTENER_FILTER, patch: {operation: ADD, value: {name: lf}}}`)
	body := encode.Bytes(&listener.Listener{Name: "l"})
	first, _, _ := s.Listener(outbound, body)
	second, _, _ := s.Listener(outbound, body)
	if string(first) != string(second) {
		t.Error("patched twice, it differs")
	}
	same(t, first, &listener.Listener{}, "{name: l, filter_chains: [{name: added, filters: [{name: f}]}], listener_filters: [{name: lf}]}")
}
