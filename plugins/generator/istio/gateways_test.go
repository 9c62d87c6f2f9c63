package istio

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	networking "istio.io/api/networking/v1alpha3"
	securityv1 "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const gatewayID = "router~10.9.9.8~gw.default~default.svc.cluster.local"

// atGateway gives the world a Gateway of these servers, and attaches a proxy that it selects, as
// connection 1.
func (w *world) atGateway(metadata map[string]any, servers ...*networking.Server) {
	w.t.Helper()
	w.commit(rows(config.Gateways, resource("default/gw", &networking.Gateway{Selector: map[string]string{"app": "gw"}, Servers: servers})))
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["LABELS"] = map[string]any{"app": "gw"}
	w.attach(1, proxy(gatewayID, nil, metadata))
}

func server(number uint32, protocol string, tls *networking.ServerTLSSettings, hosts ...string) *networking.Server {
	return &networking.Server{Port: &networking.Port{Number: number, Protocol: protocol, Name: strings.ToLower(protocol)}, Hosts: hosts, Tls: tls}
}

// TestAuthorizationStopsWhereTLSGoesThrough: a gateway's policies are for what it opens or passes
// on by its own routes, and not for TLS of the mesh that goes through.
func TestAuthorizationStopsWhereTLSGoesThrough(t *testing.T) {
	w := newWorld(t)
	w.commit(append(web("10.1.0.1"),
		rows(config.AuthorizationPolicies, resource("default/none", &securityv1.AuthorizationPolicy{})),
		rows(config.VirtualServices, resource("default/tcp", &networking.VirtualService{Hosts: []string{"*"}, Gateways: []string{"gw"}, Tcp: []*networking.TCPRoute{
			{Route: []*networking.RouteDestination{{Destination: &networking.Destination{Host: "web"}}}},
		}})))...)
	w.atGateway(nil, server(9000, "TCP", nil, "*"),
		server(15443, "TLS", &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH}, "*.local"))
	for name, want := range map[string]bool{"0.0.0.0_9000": true, "0.0.0.0_15443": false} {
		guarded := slices.ContainsFunc(w.listener(1, name).FilterChains[0].Filters, func(f *listenerv3.Filter) bool {
			return bytes.HasSuffix([]byte(f.GetTypedConfig().GetTypeUrl()), []byte(".RBAC"))
		})
		if guarded != want {
			t.Errorf("%s: guarded %v", name, guarded)
		}
	}
}

func TestGatewaysShareConnectionsOut(t *testing.T) {
	w := newWorld(t)
	w.atGateway(map[string]any{"OUTBOUND_LISTENER_EXACT_BALANCE": true}, server(80, "HTTP", nil, "*"))
	if w.listener(1, "0.0.0.0_80").GetConnectionBalanceConfig().GetExactBalance() == nil {
		t.Error("the proxy asks for it")
	}
}

// TestOrderAtGateways: of virtual services for one host, those that are for the gateway's namespace
// alone come first, however young.
func TestOrderAtGateways(t *testing.T) {
	w := newWorld(t)
	at := func(key string, created int64, exportTo ...string) *pb.Row {
		r := resource(key, &networking.VirtualService{Hosts: []string{"a.com"}, Gateways: []string{"default/gw"}, ExportTo: exportTo, Http: []*networking.HTTPRoute{{
			Name: key, Match: []*networking.HTTPMatchRequest{{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: "/" + key}}}},
			DirectResponse: &networking.HTTPDirectResponse{Status: 200},
		}}})
		r.Created = created
		return r
	}
	w.commit(rows(config.VirtualServices,
		at("default/everybody", 1), at("other/named", 2, "default"), at("other/hidden", 2, "."),
		at("default/own", 4, "."), at("default/owned", 3, "default", "other"),
	))
	w.atGateway(nil, server(80, "HTTP", nil, "*"))
	var got []string
	for _, r := range w.routes(1, "http.80").VirtualHosts[0].Routes {
		got = append(got, r.Name)
	}
	if want := []string{"default/owned", "default/own", "other/named", "default/everybody"}; !slices.Equal(got, want) {
		t.Errorf("routes %v, want %v", got, want)
	}
}

// TestRoutesAreMadeForTheFirstServer: servers that share a route configuration share the routes of
// a virtual service, so that a redirect goes where the first means it to; and hosts count whatever
// their case.
func TestRoutesAreMadeForTheFirstServer(t *testing.T) {
	w := newWorld(t)
	w.commit(rows(config.VirtualServices, resource("default/web", &networking.VirtualService{
		Hosts: []string{"a.com", "B.com"}, Gateways: []string{"gw"}, Http: []*networking.HTTPRoute{{
			Redirect: &networking.HTTPRedirect{RedirectPort: &networking.HTTPRedirect_Port{Port: 443}},
		}},
	})))
	w.atGateway(nil, server(80, "HTTP", nil, "A.com"), server(80, "HTTP", &networking.ServerTLSSettings{HttpsRedirect: true}, "B.com"))
	hosts := w.routes(1, "http.80").VirtualHosts
	if len(hosts) != 2 || hosts[0].Name != "a.com:80" || hosts[1].Domains[0] != "b.com" {
		t.Fatalf("virtual hosts %v", hosts)
	}
	for _, h := range hosts {
		if got := h.Routes[0].GetRedirect().GetPortRedirect(); got != 443 {
			t.Errorf("%s: to port %d", h.Name, got)
		}
	}
}

// TestProtocolBehindPassThrough: a cluster behind a gateway that passes the mesh's TLS on says of
// HTTP what the one for its own requests says.
func TestProtocolBehindPassThrough(t *testing.T) {
	w := newWorld(t)
	w.commit(rows(state.Services, sdk.ServiceRow(service("rpc.local", &sdk.Port{Number: 80, Name: "grpc", Protocol: "GRPC"}, &sdk.Port{Number: 81, Name: "tcp", Protocol: "TCP"}))))
	w.atGateway(nil, server(15443, "TLS", &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH}, "*.local"))
	for name, want := range map[string]int{"outbound_.80_._.rpc.local": 1, "outbound_.81_._.rpc.local": 0} {
		if got := len(w.cluster(1, name).TypedExtensionProtocolOptions); got != want {
			t.Errorf("%s: %d options, want %d", name, got, want)
		}
	}
}

// TestSocketOfCredentials: a proxy with a socket for credentials is told where it is.
func TestSocketOfCredentials(t *testing.T) {
	for _, has := range []bool{true, false} {
		w := newWorld(t)
		w.atGateway(map[string]any{"credential": strconv.FormatBool(has)}, server(80, "HTTP", nil, "*"))
		if got := w.get(1, encode.ClusterType)[encode.SocketCluster] != nil; got != has {
			t.Errorf("the cluster is there: %v, want %v", got, has)
		}
	}
}

// TestPortsOfDestinationsAtGateways: a destination without a port means the service of the virtual
// service's namespace, if the gateway sees it.
func TestPortsOfDestinationsAtGateways(t *testing.T) {
	at := func(namespace string, created int64, exportTo string, ports ...*sdk.Port) *pb.Row {
		s := service("a.com", ports...)
		s.Namespace, s.ExportTo = namespace, []string{exportTo}
		row := sdk.ServiceRow(s)
		row.Created = created
		return row
	}
	one, two := &sdk.Port{Number: 81, Name: "one", Protocol: "HTTP"}, &sdk.Port{Number: 82, Name: "two", Protocol: "HTTP"}
	for _, c := range []struct {
		exportTo string
		ports    []*sdk.Port
		want     string
	}{
		{"*", []*sdk.Port{two}, "outbound|82||a.com"},
		{"*", []*sdk.Port{one, two}, "outbound|80||a.com"},
		{".", []*sdk.Port{two}, "outbound|81||a.com"},
	} {
		w := newWorld(t)
		w.commit(rows(state.Services, at("default", 1, "*", one), at("other", 2, c.exportTo, c.ports...)),
			rows(config.VirtualServices, resource("other/web", &networking.VirtualService{
				Hosts: []string{"a.com"}, Gateways: []string{"default/gw"}, Http: []*networking.HTTPRoute{
					{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "a.com"}}}},
				},
			})))
		w.atGateway(nil, server(80, "HTTP", nil, "*"))
		if got := w.routes(1, "http.80").VirtualHosts[0].Routes[0].GetRoute().GetCluster(); got != c.want {
			t.Errorf("exported to %s, %d ports: %s, want %s", c.exportTo, len(c.ports), got, c.want)
		}
	}
}

// TestFirstByServerName: of two virtual services that lead TLS of one name on at a gateway the
// older one does.
func TestFirstByServerName(t *testing.T) {
	w := newWorld(t)
	to := func(name, host string, created int64) *pb.Row {
		return withTime(resource("default/"+name, &networking.VirtualService{Hosts: []string{"a.example"}, Gateways: []string{"gw"}, Tls: []*networking.TLSRoute{{
			Match: []*networking.TLSMatchAttributes{{SniHosts: []string{"a.example"}}},
			Route: []*networking.RouteDestination{{Destination: &networking.Destination{Host: host, Port: &networking.PortSelector{Number: 443}}}},
		}}}), created)
	}
	tls := &sdk.Port{Number: 443, Name: "tls", Protocol: "TLS"}
	w.commit(rows(state.Services, sdk.ServiceRow(service("one.example", tls)), sdk.ServiceRow(service("two.example", tls))),
		rows(config.VirtualServices, to("later", "two.example", 2), to("sooner", "one.example", 1)))
	w.atGateway(nil, server(443, "TLS", &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_PASSTHROUGH}, "*"))
	chains := w.listener(1, "0.0.0.0_443").FilterChains
	if len(chains) != 1 {
		t.Fatalf("%d chains", len(chains))
	}
	if got := filter(t, chains[0], &tcpproxyv3.TcpProxy{}).GetCluster(); got != "outbound|443||one.example" {
		t.Errorf("it leads to %s", got)
	}
}

// TestMeshsOwnTLSGoesThrough: a gateway that passes the mesh's TLS on does so for services of the
// mesh.
func TestMeshsOwnTLSGoesThrough(t *testing.T) {
	w := newWorld(t)
	outside := service("outside.local", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
	outside.External = true
	w.commit(rows(state.Services, sdk.ServiceRow(outside), sdk.ServiceRow(service("inside.local", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"}))))
	w.atGateway(nil, server(15443, "TLS", &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH}, "*.local"))
	var names []string
	for _, c := range w.listener(1, "0.0.0.0_15443").FilterChains {
		names = append(names, c.GetFilterChainMatch().GetServerNames()...)
	}
	if want := []string{"outbound_.80_._.inside.local"}; !slices.Equal(names, want) {
		t.Errorf("it passes on %v, want %v", names, want)
	}
}

// TestOthersAtManagedGateways: what is deployed for a Gateway of the Gateway API serves Istio's own
// Gateways of its namespace alone, however many labels others' selectors say. Where the proxies were
// deployed otherwise, selectors count as ever.
// Source: Istio, PILOT_ENABLE_STRICT_GATEWAY_MERGING.
func TestOthersAtManagedGateways(t *testing.T) {
	const front = "default/front~istio-autogenerated-k8s-gateway~http"
	for account, want := range map[string][]string{
		"front-istio": {"0.0.0.0_8000", "0.0.0.0_8100"},
		"":            {"0.0.0.0_8000", "0.0.0.0_8100", "0.0.0.0_8200"},
	} {
		w := newWorld(t)
		derived := func(key string, port uint32, parent string) *pb.Row {
			r := resource(key, &networking.Gateway{Selector: map[string]string{"app": "gw"}, Servers: []*networking.Server{server(port, "HTTP", nil, "*")}})
			r.Annotations = map[string]string{"internal.istio.io/gateway-service": "front.default.svc.cluster.local",
				"internal.istio.io/service-account-name": account, "internal.istio.io/parent-namespace": parent}
			return r
		}
		of := func(key string, port uint32) *pb.Row {
			return resource(key, &networking.Gateway{Selector: map[string]string{"app": "gw"}, Servers: []*networking.Server{server(port, "HTTP", nil, "*")}})
		}
		w.commit(rows(config.Gateways, derived(front, 8000, ""), of("default/own", 8100), of("other/foreign", 8200)),
			rows(config.VirtualServices, resource("other/thief", &networking.VirtualService{Hosts: []string{"bank.example"}, Gateways: []string{"foreign", "own", front},
				Http: []*networking.HTTPRoute{{DirectResponse: &networking.HTTPDirectResponse{Status: 200}}}})))
		w.attach(1, proxy(gatewayID, nil, map[string]any{"LABELS": map[string]any{"app": "gw"}}))
		var got []string
		for _, name := range keysOf(w.get(1, encode.ListenerType)) {
			if strings.HasPrefix(name, "0.0.0.0_8") {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("account %q: listeners %v, want %v", account, got, want)
		}
		// a ListenerSet of another namespace is let in by the Gateway itself
		w.commit(rows(config.Gateways, derived("other/set~istio-autogenerated-k8s-gateway~more", 8300, "default")))
		if w.get(1, encode.ListenerType)["0.0.0.0_8300"] == nil {
			t.Errorf("account %q: the listener of a ListenerSet isn't there", account)
		}
		// and when the Gateway goes, the proxies are anybody's
		w.commit(&pb.TableRows{Table: config.Gateways, Deletes: []string{front, "other/set~istio-autogenerated-k8s-gateway~more"}})
		if w.get(1, encode.ListenerType)["0.0.0.0_8200"] == nil {
			t.Errorf("account %q: a Gateway is kept away from what nobody manages", account)
		}
	}
}
