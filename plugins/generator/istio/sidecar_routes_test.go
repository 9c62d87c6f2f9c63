package istio

import (
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/nametables"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// jsonRow is a resource from JSON.
func jsonRow[M proto.Message](t *testing.T, key, text string, into M) *pb.Row {
	t.Helper()
	if err := protojson.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return resource(key, into)
}

func routeRow(t *testing.T, key, text string) *pb.TableRows {
	t.Helper()
	return rows(config.VirtualServices, jsonRow(t, key, text, &networking.VirtualService{}))
}

func sidecarRow(t *testing.T, text string) *pb.TableRows {
	t.Helper()
	return rows(config.Sidecars, jsonRow(t, "default/s", text, &networking.Sidecar{}))
}

func serviceIn(namespace, host string, ports ...*sdk.Port) *pb.TableRows {
	s := service(host, ports...)
	s.Namespace, s.Addresses = namespace, nil
	return rows(state.Services, sdk.ServiceRow(s))
}

// hostsOfRoute are the virtual hosts of a route configuration: the name of the first route, the
// cluster and the domains of each.
func hostsOfRoute(w *world, name string) map[string]string {
	out := map[string]string{}
	for _, h := range w.routes(1, name).VirtualHosts {
		out[h.Name] = strings.Join(append([]string{h.Routes[0].Name, h.Routes[0].GetRoute().GetCluster()}, h.Domains...), " ")
	}
	return out
}

const toWeb = `"route": [{"destination": {"host": "web.default.svc.cluster.local"}}]`

// TestWhichVirtualServiceRoutes: what a namespace has for itself comes before what was given to it
// by name, and that before what is everybody's; one without routes for the client leaves them to
// the next.
func TestWhichVirtualServiceRoutes(t *testing.T) {
	spec := func(more string) string { return `{"hosts": ["web.default.svc.cluster.local"], ` + more + `}` }
	for _, c := range []struct {
		name, want string
		routes     map[string]string
	}{
		{"by name", "a", map[string]string{
			"other/a": spec(`"http": [{"name": "a", ` + toWeb + `}]`), "other/b": spec(`"http": [{"name": "b", ` + toWeb + `}]`)}},
		{"the own namespace's", "c", map[string]string{
			"other/a":   spec(`"http": [{"name": "a", ` + toWeb + `}]`),
			"other/b":   spec(`"exportTo": ["default"], "http": [{"name": "b", ` + toWeb + `}]`),
			"default/c": spec(`"exportTo": ["."], "http": [{"name": "c", ` + toWeb + `}]`)}},
		{"given by name", "b", map[string]string{
			"other/a": spec(`"http": [{"name": "a", ` + toWeb + `}]`),
			"other/b": spec(`"exportTo": ["default"], "http": [{"name": "b", ` + toWeb + `}]`)}},
		{"without routes for the client", "b", map[string]string{
			"other/a": spec(`"http": [{"name": "a", "match": [{"sourceNamespace": "other"}], ` + toWeb + `}]`),
			"other/b": spec(`"http": [{"name": "b", ` + toWeb + `}]`)}},
		{"wildcards only where nobody names the host", "default", map[string]string{
			"other/a": spec(`"http": [{"name": "a", "match": [{"port": 81}], ` + toWeb + `}]`),
			"other/b": `{"hosts": ["*.default.svc.cluster.local"], "http": [{"name": "b", ` + toWeb + `}]}`}},
	} {
		w := newWorld(t)
		w.commit(web("10.1.0.1")...)
		for key, text := range c.routes {
			w.commit(routeRow(t, key, text))
		}
		w.attach(1, proxy(sidecarID, nil, nil))
		if got, _, _ := strings.Cut(hostsOfRoute(w, "80")["web.default.svc.cluster.local:80"], " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestNamesThatVirtualServicesGive: a name that only a virtual service has comes before what
// services are called besides their full names.
func TestNamesThatVirtualServicesGive(t *testing.T) {
	w := newWorld(t)
	w.commit(append(web("10.1.0.1"), routeRow(t, "default/v", `{"hosts": ["web.default"], "http": [{"name": "v", `+toWeb+`}]}`))...)
	w.attach(1, proxy(sidecarID, nil, nil))
	hosts := hostsOfRoute(w, "80")
	if got := hosts["web.default:80"]; got != "v "+webCluster+" web.default" {
		t.Errorf("%q", got)
	}
	if got := strings.Fields(hosts["web.default.svc.cluster.local:80"]); slices.Contains(got, "web.default") || !slices.Contains(got, "web") {
		t.Errorf("%v", got)
	}
}

// TestRoutesOfEgressListeners: virtual services count for what goes out by listeners that import
// them. Where they lead to what isn't imported there are clusters for the ports that they name, and
// nothing else.
func TestRoutesOfEgressListeners(t *testing.T) {
	http := func(n uint32) *sdk.Port { return &sdk.Port{Number: n, Name: "http", Protocol: "HTTP"} }
	w := newWorld(t)
	w.commit(append(web("10.1.0.1"), serviceIn("other", "far.example", http(80), http(81)), serviceIn("other", "near.example", http(90)),
		routeRow(t, "default/v", `{"hosts": ["web", "near.example"], "http": [
			{"name": "v", "route": [{"destination": {"host": "far.example", "port": {"number": 80}}}]},
			{"match": [{"sourceNamespace": "other"}], "route": [{"destination": {"host": "far.example", "port": {"number": 81}}}]}]}`),
		sidecarRow(t, `{"egress": [{"port": {"number": 80, "protocol": "HTTP", "name": "http"}, "hosts": ["./*"]}, {"hosts": ["other/near.example"]}]}`))...)
	w.attach(1, proxy(sidecarID, nil, nil))
	var clusters []string
	for _, name := range keysOf(w.get(1, encode.ClusterType)) {
		if strings.HasPrefix(name, "outbound|") {
			clusters = append(clusters, name)
		}
	}
	if want := []string{webCluster, "outbound|80||far.example", "outbound|90||near.example"}; !slices.Equal(clusters, slices.Sorted(slices.Values(want))) {
		t.Errorf("clusters %v", clusters)
	}
	at80, at90 := hostsOfRoute(w, "80"), hostsOfRoute(w, "90")
	if _, ok := at80["far.example:80"]; ok || !strings.HasPrefix(at80["web.default.svc.cluster.local:80"], "v outbound|80||far.example ") {
		t.Errorf("port 80: %v", at80)
	}
	if got := at90["near.example:90"]; !strings.HasPrefix(got, "default outbound|90||near.example ") {
		t.Errorf("port 90: %q", got)
	}
}

// TestNamesOfRoutes: who may ask for a name is who imports it, not who has a route that leads
// there. A gateway has no names.
func TestNamesOfRoutes(t *testing.T) {
	w := newWorld(t)
	at := func(host, address string) *pb.TableRows {
		s := service(host, &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
		s.Namespace, s.Addresses = "other", []string{address}
		return rows(state.Services, sdk.ServiceRow(s))
	}
	w.commit(append(web("10.1.0.1"), at("far.example", "10.96.0.8"), at("near.example", "10.96.0.9"),
		routeRow(t, "default/v", `{"hosts": ["web"], "http": [{"route": [{"destination": {"host": "far.example"}}]}]}`),
		sidecarRow(t, `{"egress": [{"hosts": ["./*", "other/near.example"]}]}`))...)
	w.attach(1, proxy(sidecarID, nil, nil))
	w.attach(2, proxy("router~10.9.9.8~gateway.default~default.svc.cluster.local", nil, nil))
	if names := string(w.get(1, encode.NameTableType)[nametables.ResourceName]); !strings.Contains(names, "near.example") ||
		strings.Contains(names, "far.example") {
		t.Errorf("names of a sidecar: %q", names)
	}
	if names, ok := w.get(2, encode.NameTableType)[nametables.ResourceName]; !ok || len(names) > 0 {
		t.Errorf("names of a gateway: %q", names)
	}
}

// chainsOf are the destinations of a listener's chains: server names, ranges and cluster of each.
// What takes the rest stands last, after `*`.
func chainsOf(t *testing.T, l *listenerv3.Listener) []string {
	t.Helper()
	to := func(c *listenerv3.FilterChain) string {
		return read(t, c.Filters[len(c.Filters)-1].GetTypedConfig().GetValue(), &tcpv3.TcpProxy{}).GetCluster()
	}
	var out []string
	for _, c := range l.FilterChains {
		m := c.FilterChainMatch
		words := slices.Clone(m.GetServerNames())
		for _, p := range m.GetPrefixRanges() {
			words = append(words, p.AddressPrefix)
		}
		out = append(out, strings.Join(append(words, to(c)), " "))
	}
	if l.DefaultFilterChain != nil {
		out = append(out, "* "+to(l.DefaultFilterChain))
	}
	return out
}

// TestChainsOfConnections: which connections routes of virtual services take.
func TestChainsOfConnections(t *testing.T) {
	const a, b = `"route": [{"destination": {"host": "a", "port": {"number": 1}}}]`, `"route": [{"destination": {"host": "b", "port": {"number": 1}}}]`
	const toA, toB = "outbound|1||a.default.svc.cluster.local", "outbound|1||b.default.svc.cluster.local"
	const passing = "* PassthroughCluster"
	for _, c := range []struct {
		name, host, protocol, spec, sidecar, listener string
		want                                          []string
	}{
		{"every destination", "own.example", "TCP", `"tcp": [{"match": [{"destinationSubnets": ["0.0.0.0/0"]}], ` + a + `}]`, "", "0.0.0.0_7000",
			[]string{toA, "* outbound|7000||own.example"}},
		{
			"ranges as they were written", "own.example", "TCP",
			`"tcp": [{"match": [{"destinationSubnets": ["10.1.2.3/16", "10.9.9.9"]}], ` + a + `}]`, "",
			"0.0.0.0_7000",
			[]string{"10.1.2.3 10.9.9.9 " + toA, "* outbound|7000||own.example"},
		},
		{"ranges count for the next matches", "own.example", "TLS", `"tls": [{"match": [{"sniHosts": ["own.example"], "destinationSubnets": ["10.0.0.0/8"]},
			{"sniHosts": ["x.own.example"]}], ` + a + `}]`, "", "0.0.0.0_7000",
			[]string{"own.example 10.0.0.0 " + toA, "x.own.example 10.0.0.0 " + toA, passing}},
		{"a name under a wildcard", "*.example", "TLS", `"tls": [{"match": [{"sniHosts": ["own.example"]}], ` + a + `}]`, "", "0.0.0.0_7000",
			[]string{"own.example " + toA, passing}},
		{"a socket", "own.example", "TCP", `"tcp": [{"match": [{"port": 7000}], ` + a + `}, {"match": [{"destinationSubnets": ["10.0.0.0/8"]}], ` + b + `}]`,
			`{"egress": [{"port": {"protocol": "TCP", "name": "s"}, "bind": "unix:///run/s", "hosts": ["./*"]}]}`, "unix:///run/s_0", []string{toB}},
		{"a place that a Sidecar names", "own.example", "TLS", `"http": [{` + a + `}]`,
			`{"egress": [{"port": {"number": 7000, "protocol": "TLS", "name": "s"}, "bind": "127.0.0.3", "hosts": ["./*"]}]}`, "127.0.0.3_7000",
			[]string{"outbound|7000||own.example"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.commit(serviceIn("default", c.host, &sdk.Port{Number: 7000, Name: "p", Protocol: c.protocol}),
				routeRow(t, "default/v", `{"hosts": ["own.example"], `+c.spec+`}`))
			if c.sidecar != "" {
				w.commit(sidecarRow(t, c.sidecar))
			}
			w.attach(1, proxy(sidecarID, nil, nil))
			l := w.listener(1, c.listener)
			if got := chainsOf(t, l); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			if strings.HasPrefix(c.listener, "unix:") && (l.BindToPort != nil || l.Address.GetPipe().GetPath() != "/run/s") {
				t.Errorf("nothing intercepts what goes to a socket: %v %v", l.BindToPort, l.Address)
			}
		})
	}
}

// TestRangesOfServices: each range of addresses has a chain, and each address a listener.
func TestRangesOfServices(t *testing.T) {
	s := service("own.example", &sdk.Port{Number: 7000, Name: "p", Protocol: "TLS"})
	s.Addresses = []string{"10.1.0.0/16", "10.0.0.1", "10.2.3.4/16"}
	w := newWorld(t)
	w.commit(rows(state.Services, sdk.ServiceRow(s)))
	w.attach(1, proxy(sidecarID, nil, nil))
	const to = "outbound|7000||own.example"
	want := []string{"own.example 10.1.0.0 " + to, "own.example 10.2.3.4 " + to, "* PassthroughCluster"}
	if got := chainsOf(t, w.listener(1, "0.0.0.0_7000")); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := chainsOf(t, w.listener(1, "10.0.0.1_7000")); !slices.Equal(got, []string{to}) {
		t.Errorf("%q", got)
	}
}

// TestServersThatSpeakFirst: MySQL and Mongo share no port with requests.
func TestServersThatSpeakFirst(t *testing.T) {
	for protocol, want := range map[string]bool{"MySQL": false, "Mongo": false, "TCP": true, "Redis": true} {
		w := newWorld(t)
		w.commit(serviceIn("default", "a.example", &sdk.Port{Number: 7000, Name: "p", Protocol: protocol}),
			serviceIn("default", "b.example", &sdk.Port{Number: 7000, Name: "p", Protocol: "HTTP"}))
		w.attach(1, proxy(sidecarID, nil, nil))
		if got := len(w.listener(1, "0.0.0.0_7000").ListenerFilters) > 0; got != want {
			t.Errorf("%s: requests are looked for: %t", protocol, got)
		}
	}
}
