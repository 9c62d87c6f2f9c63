package istio

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	meshv1 "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	securityv1 "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/internal/clusterlocal"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// withMesh gives the world settings of the mesh (JSON) besides the usual ones.
func (w *world) withMesh(settings string) {
	w.t.Helper()
	m := mesh.Default()
	given := &meshv1.MeshConfig{}
	if err := protojson.Unmarshal([]byte(settings), given); err != nil {
		w.t.Fatal(err)
	}
	proto.Merge(m, given)
	b, err := proto.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	w.commit(rows(state.Mesh, &pb.Row{Key: state.Mesh, Payload: b}))
}

func read[M proto.Message](t testing.TB, body []byte, into M) M {
	t.Helper()
	if body == nil {
		t.Fatal("there is no such resource")
	}
	if err := proto.Unmarshal(body, into); err != nil {
		t.Fatal(err)
	}
	return into
}

func (w *world) listener(connection uint64, name string) *listenerv3.Listener {
	w.t.Helper()
	return read(w.t, w.get(connection, encode.ListenerType)[name], &listenerv3.Listener{})
}

func (w *world) routes(connection uint64, name string) *routev3.RouteConfiguration {
	w.t.Helper()
	return read(w.t, w.get(connection, encode.RouteType, name)[name], &routev3.RouteConfiguration{})
}

// filter is the configuration of the first filter of a type in a chain.
func filter[M proto.Message](t testing.TB, c *listenerv3.FilterChain, into M) M {
	t.Helper()
	for _, f := range c.GetFilters() {
		if f.GetTypedConfig().MessageIs(into) {
			return read(t, f.GetTypedConfig().Value, into)
		}
	}
	t.Fatalf("chain %q has no %s", c.GetName(), into.ProtoReflect().Descriptor().Name())
	return into
}

func chainAt(l *listenerv3.Listener, port uint32) *listenerv3.FilterChain {
	i := slices.IndexFunc(l.FilterChains, func(c *listenerv3.FilterChain) bool {
		return c.GetFilterChainMatch().GetDestinationPort().GetValue() == port
	})
	if i < 0 {
		return nil
	}
	return l.FilterChains[i]
}

func service(host string, ports ...*sdk.Port) *sdk.Service {
	return &sdk.Service{Host: host, Namespace: "default", Name: host, Registry: "External", Addresses: []string{"10.96.0.7"}, Ports: ports}
}

func TestPortsOfInterception(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.withMesh(`{"proxyListenPort": 16001, "proxyInboundListenPort": 16006}`)
	w.attach(1, proxy(sidecarID, nil, nil))
	for name, port := range map[string]uint32{"virtualOutbound": 16001, "virtualInbound": 16006} {
		l := w.listener(1, name)
		if l.GetAddress().GetSocketAddress().GetPortValue() != port || chainAt(l, port) == nil || chainAt(l, port-1000) != nil {
			t.Errorf("%s: %v", name, l)
		}
	}
}

func TestPortsThatProxiesHaveThemselves(t *testing.T) {
	w := newWorld(t)
	s := service("own", &sdk.Port{Number: 15090, Name: "http", Protocol: "HTTP"}, &sdk.Port{Number: 15001, Name: "more", Protocol: "HTTP"},
		&sdk.Port{Number: 15021, Name: "tcp", Protocol: "TCP"}, &sdk.Port{Number: 81, Name: "rest", Protocol: "HTTP"})
	e := &sdk.Endpoint{Host: "own", Namespace: "default", Address: "10.9.9.9", TlsMode: "istio"}
	endpoints := rows(state.Endpoints)
	for _, p := range s.Ports {
		e.PortName, e.ServicePort, e.Port = p.Name, p.Number, p.Number
		row := sdk.EndpointRow(e)
		endpoints.Upserts = append(endpoints.Upserts, row)
	}
	w.commit(rows(state.Services, sdk.ServiceRow(s)), endpoints)
	w.attach(1, proxy(sidecarID, nil, map[string]any{"ENVOY_STATUS_PORT": 15021, "ENVOY_PROMETHEUS_PORT": "15090"}))
	if got := keysOf(w.get(1, encode.ListenerType)); !slices.Equal(got, []string{"0.0.0.0_81", "10.96.0.7_15021", "virtualInbound", "virtualOutbound"}) {
		t.Errorf("listeners %v", got)
	}
	in := w.listener(1, "virtualInbound")
	for port, want := range map[uint32]bool{81: true, 15090: false, 15021: false, 15001: false} {
		if got := chainAt(in, port) != nil; got != want {
			t.Errorf("port %d: %v, want %v", port, got, want)
		}
	}
}

// TestOwnPortsWithoutAddresses: a service that is dialled at all addresses gets no listener at a
// port of the proxy's own, whatever it speaks: Envoy refuses one of the two.
func TestOwnPortsWithoutAddresses(t *testing.T) {
	w := newWorld(t)
	s := service("own")
	s.Addresses = nil
	for _, number := range []uint32{15001, 15006, 15021, 15090, 82} {
		s.Ports = append(s.Ports, &sdk.Port{Number: number, Name: fmt.Sprintf("tcp-%d", number), Protocol: "TCP"},
			&sdk.Port{Number: number + 1000, Name: fmt.Sprintf("tls-%d", number), Protocol: "TLS"})
	}
	w.commit(rows(state.Services, sdk.ServiceRow(s)))
	w.withMesh(`{"proxyListenPort": 16001, "proxyInboundListenPort": 16006}`)
	w.attach(1, proxy(sidecarID, nil, map[string]any{"ENVOY_STATUS_PORT": 16021, "ENVOY_PROMETHEUS_PORT": 15090}))
	want := []string{"0.0.0.0_1082", "0.0.0.0_15001", "0.0.0.0_15006", "0.0.0.0_15021", "0.0.0.0_16090", "0.0.0.0_82", "virtualInbound", "virtualOutbound"}
	if got := keysOf(w.get(1, encode.ListenerType)); !slices.Equal(got, want) {
		t.Errorf("listeners %v, want %v", got, want)
	}
	w.withMesh(`{}`)
	w.attach(2, proxy(sidecarID, nil, map[string]any{"ENVOY_STATUS_PORT": 15021, "ENVOY_PROMETHEUS_PORT": 15090}))
	want = []string{"0.0.0.0_1082", "0.0.0.0_16001", "0.0.0.0_16006", "0.0.0.0_16021", "0.0.0.0_16090", "0.0.0.0_82", "virtualInbound", "virtualOutbound"}
	if got := keysOf(w.get(2, encode.ListenerType)); !slices.Equal(got, want) {
		t.Errorf("with default ports: listeners %v, want %v", got, want)
	}
}

func TestNamesInStatistics(t *testing.T) {
	w := newWorld(t)
	s := service("db.example.com", &sdk.Port{Number: 5432, Name: "tcp-db", Protocol: "TCP", Target: 5433})
	e := &sdk.Endpoint{Host: "db.example.com", Namespace: "default", PortName: "tcp-db", ServicePort: 5432, Port: 5433, Address: "10.9.9.9", TlsMode: "istio"}
	rule := &networking.DestinationRule{Host: "db.example.com", Subsets: []*networking.Subset{{Name: "v1"}}}
	w.commit(rows(state.Services, sdk.ServiceRow(s)), rows(state.Endpoints, sdk.EndpointRow(e)), rows(config.DestinationRules, resource("default/db", rule)))
	w.withMesh(`{"outboundClusterStatName": "%SERVICE%_%SERVICE_PORT%_%SERVICE_PORT_NAME%_%SUBSET_NAME%",
		"inboundClusterStatName": "in_%SERVICE_FQDN%_%SERVICE_NAME%_%TARGET_PORT%_%SERVICE_PORT_NAME%"}`)
	w.attach(1, proxy(sidecarID, nil, nil))
	for name, want := range map[string]string{
		"outbound|5432||db.example.com":   "db.example.com_5432_tcp-db_;",
		"outbound|5432|v1|db.example.com": "db.example.com_5432_tcp-db_v1;",
		"inbound|5433||":                  "in_db.example.com_db.example.com_5433_tcp-db;",
	} {
		if got := read(t, w.get(1, encode.ClusterType)[name], &clusterv3.Cluster{}).AltStatName; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	out := filter(t, w.listener(1, "10.96.0.7_5432").FilterChains[0], &tcp.TcpProxy{})
	if out.StatPrefix != "db.example.com_5432__" {
		t.Errorf("connections that go out: %q", out.StatPrefix)
	}
	in := filter(t, chainAt(w.listener(1, "virtualInbound"), 5433), &tcp.TcpProxy{})
	if in.StatPrefix != "in_db.example.com_db.example.com_5433_tcp-db" {
		t.Errorf("connections that come in: %q", in.StatPrefix)
	}
}

func TestProxyForHTTP(t *testing.T) {
	w := newWorld(t)
	s := service("two.ports", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"}, &sdk.Port{Number: 8080, Name: "alt", Protocol: "HTTP"})
	w.commit(append(web("10.1.0.1"), rows(state.Services, sdk.ServiceRow(s)))...)
	w.withMesh(`{"proxyHttpPort": 15002}`)
	w.attach(1, proxy(sidecarID, nil, nil))
	w.attach(2, proxy(sidecarID, nil, map[string]any{"HTTP_PROXY_PORT": "3128"}))
	m := filter(t, w.listener(1, "127.0.0.1_15002").FilterChains[0], &hcm.HttpConnectionManager{})
	if m.GetRds().GetRouteConfigName() != "http_proxy" || !m.GetHttpProtocolOptions().GetAllowAbsoluteUrl().GetValue() {
		t.Error(m)
	}
	w.listener(2, "127.0.0.1_3128")
	w.attach(3, proxy(sidecarID, nil, map[string]any{"HTTP_PROXY_PORT": "0"}))
	if got := w.get(3, encode.ListenerType); got["127.0.0.1_15002"] != nil {
		t.Errorf("a proxy that wants none has one among %v", keysOf(got))
	}
	domains := map[string][]string{}
	for _, h := range w.routes(1, "http_proxy").VirtualHosts {
		domains[h.Name] = h.Domains
	}
	if _, ok := domains["allow_any"]; !ok || len(domains) != 4 {
		t.Errorf("virtual hosts %v", domains)
	}
	for name, want := range map[string]bool{"two.ports": true, "two.ports:80": true, "two.ports:8080": false} {
		if slices.Contains(domains["two.ports:80"], name) != want {
			t.Errorf("%s at port 80: %v", name, domains["two.ports:80"])
		}
	}
	if slices.Contains(domains["two.ports:8080"], "two.ports") || !slices.Contains(domains["two.ports:8080"], "two.ports:8080") {
		t.Errorf("other ports have to be said: %v", domains["two.ports:8080"])
	}
}

// TestProxyPortsOfSidecars: an egress listener for a proxy of HTTP, and one at a socket, have
// requests for any port.
func TestProxyPortsOfSidecars(t *testing.T) {
	w := newWorld(t)
	spec := &networking.Sidecar{Egress: []*networking.IstioEgressListener{
		{Port: &networking.SidecarPort{Number: 3128, Protocol: "HTTP_PROXY", Name: "proxy"}, Hosts: []string{"*/*"}},
		{Port: &networking.SidecarPort{Protocol: "HTTP", Name: "socket"}, Bind: "unix:///run/out.sock", Hosts: []string{"*/*"}},
	}}
	route := &networking.VirtualService{Hosts: []string{"web.default.svc.cluster.local"}, Http: []*networking.HTTPRoute{
		{Name: "never", Match: []*networking.HTTPMatchRequest{{Port: 80}}, Redirect: &networking.HTTPRedirect{Uri: "/"}},
		{Name: "here", Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "web.default.svc.cluster.local"}}}},
	}}
	w.commit(append(web("10.1.0.1"), rows(config.Sidecars, resource("default/s", spec)), rows(config.VirtualServices, resource("default/v", route)))...)
	w.attach(1, proxy(sidecarID, nil, nil))
	l := w.listener(1, "0.0.0.0_3128")
	if len(l.ListenerFilters) != 0 || len(l.FilterChains) != 1 {
		t.Error("all is HTTP there: ", l)
	}
	for _, name := range []string{"3128", "unix:///run/out.sock"} {
		hosts := w.routes(1, name).VirtualHosts
		i := slices.IndexFunc(hosts, func(h *routev3.VirtualHost) bool { return h.Name == "web.default.svc.cluster.local:80" })
		if i < 0 || len(hosts) != 2 {
			t.Fatalf("%s: %v", name, hosts)
		}
		if !slices.Contains(hosts[i].Domains, "web:80") || !slices.Contains(hosts[i].Domains, "10.96.0.1") {
			t.Errorf("%s: domains %v", name, hosts[i].Domains)
		}
		if r := hosts[i].Routes; len(r) != 1 || r[0].Name != "here" || r[0].GetRoute().GetCluster() != webCluster {
			t.Errorf("%s: routes %v", name, r)
		}
	}
}

func TestConnectionSettings(t *testing.T) {
	w := newWorld(t)
	gw := &networking.Gateway{Selector: map[string]string{"app": "gw"}, Servers: []*networking.Server{
		{Port: &networking.Port{Number: 80, Protocol: "HTTP", Name: "http"}, Hosts: []string{"*"}},
	}}
	w.commit(append(web("10.9.9.9"), rows(config.Gateways, resource("default/gw", gw)))...)
	w.withMesh(`{"defaultConfig": {"connectionSettings": {"profile": "EDGE", "httpRequestTimeout": "0.5s", "httpMaxConcurrentStreams": 3,
		"httpMaxStreamDuration": "9s", "httpMergeSlashes": false, "listenerPerConnectionBufferLimitBytes": 7}}}`)
	w.attach(1, proxy(sidecarID, nil, nil))
	w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"app": "gw"}}))
	l := w.listener(2, "0.0.0.0_80")
	m := filter(t, l.FilterChains[0], &hcm.HttpConnectionManager{})
	if l.PerConnectionBufferLimitBytes.GetValue() != 7 || m.RequestTimeout.AsDuration().String() != "500ms" ||
		m.StreamIdleTimeout.AsDuration().String() != "5m0s" ||
		m.MergeSlashes || m.Http2ProtocolOptions.GetMaxConcurrentStreams() == nil || m.Http2ProtocolOptions.MaxConcurrentStreams.Value != 3 ||
		m.Http2ProtocolOptions.InitialStreamWindowSize.GetValue() != 65536 || m.CommonHttpProtocolOptions.IdleTimeout.AsDuration().String() != "1h0m0s" ||
		m.CommonHttpProtocolOptions.MaxStreamDuration.AsDuration().String() != "9s" ||
		m.PathWithEscapedSlashesAction != hcm.HttpConnectionManager_UNESCAPE_AND_REDIRECT {
		t.Error("a gateway: ", l.PerConnectionBufferLimitBytes, m)
	}
	if c := read(t, w.get(2, encode.ClusterType)[webCluster], &clusterv3.Cluster{}); c.PerConnectionBufferLimitBytes != nil {
		t.Error("a cluster's buffer: ", c.PerConnectionBufferLimitBytes)
	}
	in := filter(t, chainAt(w.listener(1, "virtualInbound"), 8080), &hcm.HttpConnectionManager{})
	if l := w.listener(1, "virtualInbound"); l.PerConnectionBufferLimitBytes != nil {
		t.Error("a sidecar's buffer: ", l.PerConnectionBufferLimitBytes)
	}
	if in.RequestTimeout.AsDuration().String() != "500ms" || in.StreamIdleTimeout.AsDuration() != 0 || in.RequestHeadersTimeout != nil {
		t.Error("the profile is for gateways alone: ", in)
	}

	// What Envoy would refuse is left out, and the rest counts.
	w.withMesh(
		`{"defaultConfig": {"connectionSettings": {"httpRequestTimeout": "0.7s", "httpMaxConcurrentStreams": 0, "http2InitialStreamWindowSize": 65534}}}`,
	)
	in = filter(t, chainAt(w.listener(1, "virtualInbound"), 8080), &hcm.HttpConnectionManager{})
	if o := in.Http2ProtocolOptions; in.RequestTimeout.AsDuration().String() != "700ms" ||
		o.GetMaxConcurrentStreams() != nil || o.GetInitialStreamWindowSize() != nil {
		t.Error("numbers that Envoy refuses: ", in)
	}
}

// TestIdleTimeouts: no time is a time too.
func TestIdleTimeouts(t *testing.T) {
	for text, want := range map[string]string{"": "", "0s": "0s", "90s": "1m30s", "soon": ""} {
		w := newWorld(t)
		w.commit(web("10.9.9.9")...)
		w.attach(1, proxy(sidecarID, nil, map[string]any{"IDLE_TIMEOUT": text}))
		in := filter(t, chainAt(w.listener(1, "virtualInbound"), 8080), &hcm.HttpConnectionManager{})
		got := ""
		if d := in.GetCommonHttpProtocolOptions().GetIdleTimeout(); d != nil {
			got = d.AsDuration().String()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestTLSOnIngress(t *testing.T) {
	spec := &networking.Sidecar{Ingress: []*networking.IstioIngressListener{{
		Port:            &networking.SidecarPort{Number: 8443, Protocol: "HTTPS", Name: "https"},
		DefaultEndpoint: "127.0.0.1:8080",
		Tls: &networking.ServerTLSSettings{
			Mode: networking.ServerTLSSettings_SIMPLE, ServerCertificate: "/c.pem", PrivateKey: "/k.pem", CipherSuites: []string{"AES128-SHA", "no such"},
			MinProtocolVersion: networking.ServerTLSSettings_TLSV1_3,
		},
	}}}
	off := &securityv1.PeerAuthentication{Mtls: &securityv1.PeerAuthentication_MutualTLS{Mode: securityv1.PeerAuthentication_MutualTLS_DISABLE}}
	for _, c := range []struct {
		name            string
		switched, plain bool
		own             bool
	}{
		{"mutual TLS is off", true, true, true},
		{"mutual TLS goes first", true, false, false},
		{"it isn't switched on", false, true, false},
	} {
		w := newWorld(t)
		w.e = newEngine(Config{Domain: "cluster.local", TLSOnSidecarIngress: c.switched})
		w.commit(rows(config.Sidecars, resource("default/s", spec)))
		if c.plain {
			w.commit(rows(config.PeerAuthentications, resource("default/p", off)))
		}
		w.attach(1, proxy(sidecarID, nil, nil))
		var chains []*listenerv3.FilterChain
		for _, f := range w.listener(1, "virtualInbound").FilterChains {
			if f.GetFilterChainMatch().GetDestinationPort().GetValue() == 8443 {
				chains = append(chains, f)
			}
		}
		own := len(chains) == 1 && strings.Contains(chains[0].GetTransportSocket().String(), "envoy.transport_sockets.tls")
		if own != c.own {
			t.Errorf("%s: %v", c.name, chains)
		}
		if own {
			filter(t, chains[0], &hcm.HttpConnectionManager{})
			if m := chains[0].FilterChainMatch; m.TransportProtocol != "tls" || len(m.ApplicationProtocols) != 0 {
				t.Error(m)
			}
		}
	}
}

func TestFamiliesOfGateways(t *testing.T) {
	gw := &networking.Gateway{Selector: map[string]string{"app": "gw"}, Servers: []*networking.Server{
		{Port: &networking.Port{Number: 80, Protocol: "HTTP", Name: "http"}, Hosts: []string{"*"}},
	}}
	for _, c := range []struct {
		addresses string
		dual      bool
		name      string
		more      int
	}{
		{"10.9.9.8", true, "0.0.0.0_80", 0},
		{"2001:db8::8", true, "::_80", 0},
		{"10.9.9.8,2001:db8::8", false, "0.0.0.0_80", 0},
		{"10.9.9.8,2001:db8::8", true, "0.0.0.0_80", 1},
	} {
		w := newWorld(t)
		w.e = newEngine(Config{Domain: "cluster.local", DualStack: c.dual})
		w.commit(rows(config.Gateways, resource("default/gw", gw)))
		first, _, _ := strings.Cut(c.addresses, ",")
		w.attach(1, proxy("router~"+first+"~gw.default~default.svc.cluster.local", nil,
			map[string]any{"LABELS": map[string]any{"app": "gw"}, "INSTANCE_IPS": c.addresses}))
		if got := len(w.listener(1, c.name).AdditionalAddresses); got != c.more {
			t.Errorf("%s, dual stack %v: %d more addresses, want %d", c.addresses, c.dual, got, c.more)
		}
	}
}

func TestNetworksAreInternal(t *testing.T) {
	w := newWorld(t)
	gw := &networking.Gateway{Selector: map[string]string{"app": "gw"}, Servers: []*networking.Server{
		{Port: &networking.Port{Number: 80, Protocol: "HTTP", Name: "http"}, Hosts: []string{"*"}},
	}}
	networks := &meshv1.MeshNetworks{Networks: map[string]*meshv1.Network{"a": {Endpoints: []*meshv1.Network_NetworkEndpoints{
		{Ne: &meshv1.Network_NetworkEndpoints_FromCidr{FromCidr: "10.60.0.0/16"}}, {Ne: &meshv1.Network_NetworkEndpoints_FromCidr{FromCidr: "10.7.0.0/16"}},
		{Ne: &meshv1.Network_NetworkEndpoints_FromCidr{FromCidr: "10.8.0.1"}},
	}}}}
	b, err := proto.Marshal(networks)
	if err != nil {
		t.Fatal(err)
	}
	w.commit(rows(config.Gateways, resource("default/gw", gw)), rows(state.Networks, &pb.Row{Key: state.Networks, Payload: b}))
	w.attach(1, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"app": "gw"}}))
	ranges := filter(t, w.listener(1, "0.0.0.0_80").FilterChains[0], &hcm.HttpConnectionManager{}).GetInternalAddressConfig().GetCidrRanges()
	if len(ranges) != 3 || ranges[0].AddressPrefix != "10.7.0.0" || ranges[1].PrefixLen.GetValue() != 32 || ranges[2].PrefixLen.GetValue() != 16 {
		t.Error(ranges)
	}
}

func TestBaselineOfTrafficPolicies(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.withMesh(`{"defaultTrafficPolicy": {"connectionPool": {"tcp": {"maxConnections": 7}}, "outlierDetection": {"consecutive5xxErrors": 3}}}`)
	w.attach(1, proxy(sidecarID, nil, nil))
	get := func() *clusterv3.Cluster {
		return read(t, w.get(1, encode.ClusterType)[webCluster], &clusterv3.Cluster{})
	}
	if c := get(); c.GetCircuitBreakers().GetThresholds()[0].GetMaxConnections().GetValue() != 7 ||
		c.GetOutlierDetection().GetConsecutive_5Xx().GetValue() != 3 {
		t.Errorf("without a rule: %v", c)
	}
	w.commit(rows(config.DestinationRules,
		resource("default/own", &networking.DestinationRule{Host: "web.default.svc.cluster.local", TrafficPolicy: &networking.TrafficPolicy{
			ConnectionPool: &networking.ConnectionPoolSettings{
				Tcp: &networking.ConnectionPoolSettings_TCPSettings{ConnectTimeout: durationpb.New(time.Second)},
			},
		}})))
	if c := get(); c.GetCircuitBreakers().GetThresholds()[0].GetMaxConnections().GetValue() == 7 ||
		c.GetOutlierDetection().GetConsecutive_5Xx().GetValue() != 3 {
		t.Errorf("a rule's pool stands alone: %v", c)
	}
}

func TestVisibilityOfServiceEntries(t *testing.T) {
	s := service("shop.example", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
	narrow := service("one.example", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
	narrow.ExportTo = []string{"there"}
	for _, c := range []struct {
		mesh        string
		here, there bool
		narrow      bool
	}{
		{`{}`, true, true, true},
		{`{"serviceEntryVisibility": {"defaultVisibility": "NONE"}}`, true, true, true},
		{`{"serviceEntryVisibility": {"applyToSidecars": true, "defaultVisibility": "NONE"}}`, false, false, false},
		{`{"serviceEntryVisibility": {"applyToSidecars": true, "defaultVisibility": "NAMESPACE"}}`, true, false, false},
		{`{"serviceEntryVisibility": {"applyToSidecars": true, "defaultVisibility": "NONE", "policies": [
			{"matchingRules": [{"namespaceSelector": {"matchLabels": {"team": "x"}}}], "visibility": "PUBLIC"},
			{"matchingRules": [{"namespaceSelector": {}}], "visibility": "NAMESPACE"}]}}`, true, false, false},
		{`{"serviceEntryVisibility": {"applyToSidecars": true, "defaultVisibility": "NONE", "policies": [
			{"matchingRules": [{"namespaceSelector": {"matchLabels": {"team": "shop"}}}], "visibility": "PUBLIC"}]}}`, true, true, true},
		{`{"serviceEntryVisibility": {"applyToSidecars": true, "defaultVisibility": "NONE", "policies": [
			{"matchingRules": [{"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["ship", "shop"]}]}},
				{"namespaceSelector": {"matchExpressions": [{"key": "old", "operator": "Exists"}]}}], "visibility": "PUBLIC"}]}}`, false, false, false},
	} {
		w := newWorld(t)
		w.commit(web("10.1.0.1")...)
		w.commit(rows(state.Services, sdk.ServiceRow(s), sdk.ServiceRow(narrow)))
		w.commit(rows(state.Namespaces, sdk.NamespaceRow(&pb.Namespace{Name: "default", Labels: map[string]string{"team": "shop"}})))
		w.withMesh(c.mesh)
		w.attach(1, proxy(sidecarID, nil, nil))
		w.attach(2, proxy("sidecar~10.0.0.2~web-1.there~there.svc.cluster.local", nil, nil))
		has := func(connection uint64, host string) bool {
			return w.get(connection, encode.ClusterType)["outbound|80||"+host] != nil
		}
		if has(1, "shop.example") != c.here || has(2, "shop.example") != c.there || has(2, "one.example") != c.narrow || has(1, "one.example") {
			t.Errorf("%s: %t %t %t", c.mesh, has(1, "shop.example"), has(2, "shop.example"), has(2, "one.example"))
		}
		if !has(1, "web.default.svc.cluster.local") {
			t.Error("services of other registries stay")
		}
	}
}

// TestVisibilityFollowsLabels: a namespace that gets another label is judged anew.
func TestVisibilityFollowsLabels(t *testing.T) {
	w := newWorld(t)
	w.commit(rows(state.Services, sdk.ServiceRow(service("shop.example", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"}))))
	w.withMesh(`{"serviceEntryVisibility": {"applyToSidecars": true, "defaultVisibility": "NAMESPACE", "policies": [
		{"matchingRules": [{"namespaceSelector": {"matchLabels": {"team": "shop"}}}], "visibility": "PUBLIC"}]}}`)
	w.attach(1, proxy("sidecar~10.0.0.2~web-1.there~there.svc.cluster.local", nil, nil))
	for _, c := range []struct {
		team string
		seen bool
	}{{"", false}, {"shop", true}, {"other", false}} {
		if c.team != "" {
			w.commit(rows(state.Namespaces, sdk.NamespaceRow(&pb.Namespace{Name: "default", Labels: map[string]string{"team": c.team}})))
		}
		if seen := w.get(1, encode.ClusterType)["outbound|80||shop.example"] != nil; seen != c.seen {
			t.Errorf("with team %q: %t", c.team, seen)
		}
	}
}

func TestServicesOfOneCluster(t *testing.T) {
	host := "web.default.svc.cluster.local"
	for _, c := range []struct {
		mesh  string
		local bool
	}{
		{`{}`, false},
		{`{"serviceSettings": [{"settings": {"clusterLocal": true}, "hosts": ["*.default.svc.cluster.local"]}]}`, true},
		{`{"serviceSettings": [{"settings": {"clusterLocal": true}, "hosts": ["` + host + `"]}]}`, true},
		{`{"serviceSettings": [{"settings": {"clusterLocal": false}, "hosts": ["` + host + `"]}]}`, false},
	} {
		w := newWorld(t)
		w.commit(web()...)
		w.withMesh(c.mesh)
		for address, id := range map[string]string{"10.1.0.1": "east", "10.2.0.1": "west"} {
			w.commit(rows(state.Endpoints, sdk.EndpointRow(&sdk.Endpoint{Host: host, Namespace: "default", PortName: "http", ServicePort: 80,
				Address: address, Port: 8080, Cluster: id, TlsMode: "istio"})))
		}
		w.attach(1, proxy(sidecarID, nil, map[string]any{"CLUSTER_ID": "east"}))
		got := addresses(t, w.get(1, encode.EndpointType, webCluster)[webCluster])
		if !slices.Contains(got, "10.1.0.1") || slices.Contains(got, "10.2.0.1") == c.local {
			t.Errorf("%s: %v", c.mesh, got)
		}
	}
}

// TestClusterAliases: a proxy that calls its cluster otherwise is one of that cluster. A cluster
// has one other name.
func TestClusterAliases(t *testing.T) {
	host := "web.default.svc.cluster.local"
	w := newWorld(t)
	c := defaults()
	c.ClusterAliases = map[string]string{"old": "east"}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	w.e = newEngine(c)
	w.commit(web()...)
	w.withMesh(`{"serviceSettings": [{"settings": {"clusterLocal": true}, "hosts": ["` + host + `"]}]}`)
	for address, id := range map[string]string{"10.1.0.1": "east", "10.2.0.1": "west"} {
		w.commit(rows(state.Endpoints, sdk.EndpointRow(&sdk.Endpoint{Host: host, Namespace: "default", PortName: "http", ServicePort: 80,
			Address: address, Port: 8080, Cluster: id, TlsMode: "istio"})))
	}
	w.attach(1, proxy(sidecarID, nil, map[string]any{"CLUSTER_ID": "old"}))
	got := addresses(t, w.get(1, encode.EndpointType, webCluster)[webCluster])
	if !slices.Contains(got, "10.1.0.1") || slices.Contains(got, "10.2.0.1") {
		t.Errorf("%v", got)
	}
	for _, bad := range []string{`{"clusterAliases": {"old": "east", "older": "east"}}`, `{"clusterAliases": {"old": ""}}`} {
		if err := sdk.Check(Plugin(), []byte(bad)); err == nil || !strings.Contains(err.Error(), "clusterAliases.old") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestHostsOfOneClusterByDefault(t *testing.T) {
	has := func(settings string, host string) bool {
		m := mesh.Default()
		given := &meshv1.MeshConfig{}
		if err := protojson.Unmarshal([]byte(settings), given); err != nil {
			t.Fatal(err)
		}
		proto.Merge(m, given)
		return slices.Contains(clusterlocal.Hosts(m, "cluster.local"), clusterlocal.Host{Host: host, Local: true})
	}
	for _, h := range []string{"*.kube-system.svc.cluster.local", "kubernetes.default.svc.cluster.local", "istiod.istio-system.svc.cluster.local"} {
		if !has(`{}`, h) {
			t.Errorf("%s isn't of one cluster", h)
		}
	}
	for host, otherwise := range map[string]string{
		"*.kube-system.svc.cluster.local":      "dns.kube-system.svc.cluster.local",
		"kubernetes.default.svc.cluster.local": "kubernetes.default.svc.cluster.local",
	} {
		if has(`{"serviceSettings": [{"settings": {"clusterLocal": false}, "hosts": ["`+otherwise+`"]}]}`, host) {
			t.Errorf("%s is of one cluster", host)
		}
	}
	if !has(`{"defaultConfig": {"discoveryAddress": "plane.mesh.svc:15012"}}`, "plane.mesh.svc.cluster.local") {
		t.Error("the control plane itself isn't of one cluster")
	}
}

// Chains without a service may have no word of a pattern; Envoy refuses an empty name.
func TestPatternsThatSayNothing(t *testing.T) {
	w := newWorld(t)
	w.commit()
	w.withMesh(`{"inboundClusterStatName": "%SERVICE_NAME%"}`)
	w.attach(1, proxy(sidecarID, nil, nil))
	if l := w.listener(1, "virtualInbound"); len(w.out.faults) > 0 || !strings.Contains(l.String(), `stat_prefix:"InboundPassthroughCluster"`) {
		t.Errorf("%v %v", w.out.faults, l)
	}
	w.commit(rows(state.Services, sdk.ServiceRow(service("db.example.com", &sdk.Port{Number: 5432, Name: "tcp-db", Protocol: "TCP", Target: 5433}))))
	w.withMesh(`{"outboundClusterStatName": "%SUBSET_NAME%"}`)
	if out := filter(t, w.listener(1, "10.96.0.7_5432").FilterChains[0], &tcp.TcpProxy{}); out.StatPrefix != "outbound|5432||db.example.com" {
		t.Errorf("connections that go out: %q", out.StatPrefix)
	}
}
