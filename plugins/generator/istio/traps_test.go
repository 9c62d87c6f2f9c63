package istio

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	networking "istio.io/api/networking/v1alpha3"
	securityv1 "istio.io/api/security/v1beta1"
	typev1 "istio.io/api/type/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Behaviour that is easy to get wrong: one test for each that generators have a say in. The others
// are the core's: what a stream has seen (core/control: TestRevisionIsServedWhole,
// TestMoveIsCompleteWhenServed), ACKs, reconnects, removals and the order of types
// (test/conformance), streams that begin while things change (core/xds:
// TestChangesWhileStreamsBegin), and that nobody is answered before all is known (core/control:
// TestFirstRevisionIsComplete).

const webHost = "web.default.svc.cluster.local"

func (w *world) cluster(connection uint64, name string) *clusterv3.Cluster {
	w.t.Helper()
	return read(w.t, w.get(connection, encode.ClusterType)[name], &clusterv3.Cluster{})
}

func (w *world) assignment(connection uint64, name string) *endpointv3.ClusterLoadAssignment {
	w.t.Helper()
	return read(w.t, w.get(connection, encode.EndpointType, name)[name], &endpointv3.ClusterLoadAssignment{})
}

func at(host, port string, number uint32, address string, change ...func(*sdk.Endpoint)) *pb.Row {
	e := &sdk.Endpoint{Host: host, Namespace: "default", PortName: port, ServicePort: number, Address: address, Port: number, TlsMode: "istio"}
	for _, f := range change {
		f(e)
	}
	return sdk.EndpointRow(e)
}

// Services whose last endpoint goes keep their clusters and load assignments, so that nothing
// flaps.
func TestTrapLastEndpointLeaves(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.attach(1, proxy(sidecarID, nil, nil))
	before := w.get(1, encode.ClusterType)[webCluster]
	if n := len(w.assignment(1, webCluster).Endpoints); n != 1 {
		t.Fatalf("%d localities", n)
	}
	w.commit(&pb.TableRows{Table: state.Endpoints, Deletes: []string{webEndpoint("10.1.0.1").Key}})
	if a := w.assignment(1, webCluster); len(a.Endpoints) != 0 {
		t.Errorf("%v", a)
	}
	if w.get(1, encode.ClusterType)[webCluster] == nil || before == nil {
		t.Error("the cluster is gone")
	}
}

// An account that comes with an endpoint has to be in the names that clients accept, before they
// dial it.
func TestTrapNewAccounts(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.attach(1, proxy(sidecarID, nil, nil))
	w.commit(rows(state.Endpoints,
		at(webHost, "http", 80, "10.1.0.2", func(e *sdk.Endpoint) { e.ServiceAccount = "spiffe://cluster.local/ns/default/sa/canary" })))
	if body := w.get(1, encode.ClusterType)[webCluster]; !bytes.Contains(body, []byte("/sa/canary")) {
		t.Error("the new account isn't accepted")
	}
}

// Endpoints are those of a port's name, whatever their numbers are.
func TestTrapPortsByName(t *testing.T) {
	w := newWorld(t)
	s := service("two", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"}, &sdk.Port{Number: 81, Name: "admin", Protocol: "HTTP"})
	moved := func(e *sdk.Endpoint) { e.Port = 80 }
	w.commit(rows(state.Services, sdk.ServiceRow(s)),
		rows(state.Endpoints, at("two", "http", 80, "10.1.0.1"), at("two", "admin", 81, "10.1.0.1", moved), at("two", "admin", 81, "10.1.0.2", moved)))
	w.attach(1, proxy(sidecarID, nil, nil))
	for name, want := range map[string][]string{"outbound|80||two": {"10.1.0.1"}, "outbound|81||two": {"10.1.0.1", "10.1.0.2"}} {
		got := addresses(t, w.get(1, encode.EndpointType, name)[name])
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// What a rule, a subset or a service gave goes with it, also where only the rule that is left could
// tell.
func TestTrapWhatWasThereGoes(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	rule := func(host string) *pb.TableRows {
		return rows(config.DestinationRules, resource("default/r", &networking.DestinationRule{Host: host, Subsets: []*networking.Subset{{Name: "v1"}}}))
	}
	w.commit(rule("web"))
	w.attach(1, proxy(sidecarID, nil, nil))
	subset := "outbound|80|v1|" + webHost
	if w.get(1, encode.ClusterType)[subset] == nil {
		t.Fatal("no cluster of the subset")
	}
	w.commit(rule("other")) // the same rule, of another host
	if got := w.get(1, encode.ClusterType); got[subset] != nil || got[webCluster] == nil {
		t.Errorf("clusters %v", keysOf(got))
	}
	s := service(webHost, &sdk.Port{Number: 8000, Name: "http", Protocol: "HTTP"})
	w.commit(rows(state.Services, sdk.ServiceRow(s))) // another port
	if got := w.get(1, encode.ClusterType); got[webCluster] != nil || got["outbound|8000||"+webHost] == nil {
		t.Errorf("clusters %v", keysOf(got))
	}
	w.commit(rows(config.Sidecars, resource("default/s", &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: []string{"~/*"}}}})))
	if got := w.get(1, encode.ClusterType); got["outbound|8000||"+webHost] != nil {
		t.Errorf("clusters behind a Sidecar %v", keysOf(got))
	}
	w.commit(&pb.TableRows{Table: config.Sidecars, Deletes: []string{"default/s"}})
	if got := w.get(1, encode.ClusterType); got["outbound|8000||"+webHost] == nil {
		t.Errorf("clusters without the Sidecar %v", keysOf(got))
	}
}

// The order in which things come leaves no trace in the bytes.
func TestTrapOrderOfArrival(t *testing.T) {
	var tables []*pb.TableRows
	for _, host := range []string{"a", "b", "c"} {
		s := service(host, &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"}, &sdk.Port{Number: 9000, Name: "tcp", Protocol: "TCP"})
		s.Addresses = []string{"10.96.1." + string('1'+host[0]-'a')}
		tables = append(tables, rows(state.Services, sdk.ServiceRow(s)))
		for _, address := range []string{"10.1.0.1", "10.1.0.2", "10.1.0.3"} {
			tables = append(tables, rows(state.Endpoints, at(host, "http", 80, address, func(e *sdk.Endpoint) {
				e.Labels = map[string]string{"app": host, "version": address}
				e.ServiceAccount = "spiffe://cluster.local/ns/default/sa/" + address
			})))
		}
	}
	serve := func() map[string][]byte {
		w := newWorld(t)
		for _, table := range tables {
			w.commit(table)
		}
		w.attach(1, proxy(sidecarID, nil, nil))
		out := map[string][]byte{}
		for _, got := range []map[string][]byte{
			w.get(1, encode.ClusterType), w.get(1, encode.ListenerType), w.get(1, encode.RouteType, "80"),
			w.get(1, encode.EndpointType, "outbound|80||a", "outbound|80||b", "outbound|80||c"),
		} {
			for name, body := range got { // clusters and their load assignments have the same names
				out[name] = slices.Concat(out[name], body)
			}
		}
		return out
	}
	first := serve()
	slices.Reverse(tables)
	second := serve()
	if !slices.Equal(keysOf(first), keysOf(second)) {
		t.Fatalf("%v, then %v", keysOf(first), keysOf(second))
	}
	for name, body := range first {
		if !bytes.Equal(body, second[name]) {
			t.Errorf("%s depends on what came first", name)
		}
	}
}

// Two services at the same address and port: the oldest decides what listens there. A port that a
// Sidecar names is decided by the Sidecar.
func TestTrapListenersThatCollide(t *testing.T) {
	w := newWorld(t)
	tcp, http := service("tcp", &sdk.Port{Number: 80, Name: "tcp", Protocol: "TCP"}), service("http", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
	tcp.Addresses, http.Addresses = nil, nil
	w.commit(rows(state.Services, withTime(sdk.ServiceRow(tcp), 1), withTime(sdk.ServiceRow(http), 2)))
	w.attach(1, proxy(sidecarID, nil, nil))
	text := func() string { return w.listener(1, "0.0.0.0_80").String() }
	if got := text(); !strings.Contains(got, "outbound|80||tcp") {
		t.Errorf("the older one's: %v", got)
	}
	w.commit(rows(state.Services, withTime(sdk.ServiceRow(tcp), 3)))
	if got := text(); !strings.Contains(got, `route_config_name:"80"`) {
		t.Errorf("now the other is older: %v", got)
	}
	w.commit(rows(config.Sidecars, resource("default/s", &networking.Sidecar{Egress: []*networking.IstioEgressListener{
		{Port: &networking.SidecarPort{Number: 80, Name: "tcp", Protocol: "TCP"}, Hosts: []string{"*/tcp"}}, {Hosts: []string{"*/*"}},
	}})))
	if got := text(); !strings.Contains(got, "outbound|80||tcp") || strings.Contains(got, "route_config_name") {
		t.Errorf("the Sidecar's: %v", got)
	}
}

// A domain stands once in a route configuration; Envoy would refuse all of it otherwise. Short
// names are for the own namespace.
func TestTrapDomains(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	other := service("web.other.svc.cluster.local", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
	other.Namespace, other.Addresses = "other", []string{"10.96.0.1"} // the address of the first
	w.commit(rows(state.Services, sdk.ServiceRow(other)), rows(config.VirtualServices,
		resource("default/a", &networking.VirtualService{Hosts: []string{"web", "WEB.default.svc.cluster.local"}, Http: []*networking.HTTPRoute{
			{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "web"}}}},
		}})))
	w.attach(1, proxy(sidecarID, nil, nil))
	w.attach(2, proxy("sidecar~10.9.9.8~x.other~other.svc.cluster.local", nil, nil))
	for connection, own := range map[uint64]string{1: "web.default.svc.cluster.local:80", 2: "web.other.svc.cluster.local:80"} {
		seen := map[string]bool{}
		for _, h := range w.routes(connection, "80").VirtualHosts {
			for _, d := range h.Domains {
				if key := strings.ToLower(d); seen[key] {
					t.Errorf("connection %d: %s stands twice", connection, d)
				} else {
					seen[key] = true
				}
			}
			if slices.Contains(h.Domains, "web") && h.Name != own {
				t.Errorf("connection %d: web is %s", connection, h.Name)
			}
		}
		if !seen["web"] || !seen["web.other"] {
			t.Errorf("connection %d: %v", connection, keysOf(seen))
		}
	}
}

// What is one service's full name is not another's short one, whichever is older.
func TestTrapShortNamesThatAreFull(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	s := service("web", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
	w.commit(rows(state.Services, withTime(sdk.ServiceRow(s), 1)))
	w.attach(1, proxy(sidecarID, nil, nil))
	got := map[string][]string{}
	for _, h := range w.routes(1, "80").VirtualHosts {
		got[h.Name] = h.Domains
	}
	if !slices.Contains(got["web:80"], "web") || slices.Contains(got[webHost+":80"], "web") || !slices.Contains(got[webHost+":80"], "web.default") {
		t.Errorf("%v", got)
	}
}

// Hosts that no registry knows are routed on port 80 alone.
func TestTrapUnknownHosts(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	s := service("more", &sdk.Port{Number: 8080, Name: "http", Protocol: "HTTP"})
	w.commit(rows(state.Services, sdk.ServiceRow(s)), rows(config.VirtualServices,
		resource("default/a", &networking.VirtualService{Hosts: []string{"nobody.example"}, Http: []*networking.HTTPRoute{
			{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "web"}}}},
		}})))
	w.attach(1, proxy(sidecarID, nil, nil))
	for name, want := range map[string]bool{"80": true, "8080": false} {
		if got := strings.Contains(w.routes(1, name).String(), "nobody.example"); got != want {
			t.Errorf("port %s: %t", name, got)
		}
	}
}

// Whether a connection is mutual TLS is said by each endpoint, by the rules of its workload's port,
// and last by the client's rule.
func TestTrapMutualTLS(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.commit(rows(state.Endpoints, at(webHost, "http", 80, "10.1.0.2", func(e *sdk.Endpoint) { e.TlsMode = "" })))
	w.attach(1, proxy(sidecarID, nil, nil))
	mutual := func() map[string]bool {
		out := map[string]bool{}
		for _, l := range w.assignment(1, webCluster).Endpoints {
			for _, e := range l.LbEndpoints {
				_, ok := e.GetMetadata().GetFilterMetadata()["envoy.transport_socket_match"]
				out[e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()] = ok
			}
		}
		return out
	}
	if got := mutual(); !got["10.1.0.1"] || got["10.1.0.2"] {
		t.Errorf("by endpoint: %v", got)
	}
	if c := w.cluster(1, webCluster); len(c.TransportSocketMatches) != 2 || c.TransportSocket != nil {
		t.Errorf("by endpoint: %v", c)
	}
	off := &securityv1.PeerAuthentication{
		Selector:      &typev1.WorkloadSelector{MatchLabels: map[string]string{"app": "web"}},
		PortLevelMtls: map[uint32]*securityv1.PeerAuthentication_MutualTLS{8080: {Mode: securityv1.PeerAuthentication_MutualTLS_DISABLE}},
	}
	w.commit(rows(config.PeerAuthentications, resource("default/off", off)))
	if got := mutual(); got["10.1.0.1"] {
		t.Errorf("the port's rule switches it off: %v", got)
	}
	w.commit(rows(config.DestinationRules, resource("default/r", &networking.DestinationRule{Host: "web", TrafficPolicy: &networking.TrafficPolicy{
		Tls: &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_ISTIO_MUTUAL},
	}})))
	if c := w.cluster(1, webCluster); c.TransportSocket == nil || len(c.TransportSocketMatches) != 0 {
		t.Errorf("the client's rule: %v", c)
	}
}

// Other localities take over only where somebody notices that endpoints fail.
func TestTrapFailoverNeedsOutlierDetection(t *testing.T) {
	w := newWorld(t)
	w.commit(web()...)
	near, far := func(e *sdk.Endpoint) { e.Locality = "r/z/s" }, func(e *sdk.Endpoint) { e.Locality = "q/y/s" }
	w.commit(rows(state.Endpoints, at(webHost, "http", 80, "10.1.0.1", near), at(webHost, "http", 80, "10.1.0.2", far)))
	w.attach(1, proxy(sidecarID, nil, map[string]any{"LABELS": map[string]any{
		"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z", "topology.istio.io/subzone": "s",
	}}))
	priorities := func() []uint32 {
		var out []uint32
		for _, l := range w.assignment(1, webCluster).Endpoints {
			out = append(out, l.Priority)
		}
		slices.Sort(out)
		return out
	}
	if got := priorities(); !slices.Equal(got, []uint32{0, 0}) {
		t.Errorf("nobody notices: %v", got)
	}
	w.commit(rows(config.DestinationRules, resource("default/r", &networking.DestinationRule{Host: "web", TrafficPolicy: &networking.TrafficPolicy{
		OutlierDetection: &networking.OutlierDetection{},
	}})))
	if got := priorities(); !slices.Equal(got, []uint32{0, 1}) {
		t.Errorf("somebody does: %v", got)
	}
}

func withTime(row *pb.Row, created int64) *pb.Row {
	row.Created = created
	return row
}
