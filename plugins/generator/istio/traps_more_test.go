package istio

import (
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// A service without an address has a listener for each of its endpoints, but not for the workload
// itself.
func TestTrapListenersOfEndpoints(t *testing.T) {
	w := newWorld(t)
	s := service("db", &sdk.Port{Number: 9000, Name: "tcp", Protocol: "TCP"})
	s.Addresses, s.Resolution = nil, pb.ServiceResolutionNone
	w.commit(rows(state.Services, sdk.ServiceRow(s)), rows(state.Endpoints, at("db", "tcp", 9000, "10.1.0.1"), at("db", "tcp", 9000, "10.9.9.9")))
	w.attach(1, proxy(sidecarID, nil, nil))
	if got := keysOf(w.get(1, encode.ListenerType)); !slices.Equal(got, []string{"10.1.0.1_9000", "virtualInbound", "virtualOutbound"}) {
		t.Errorf("listeners %v", got)
	}
}

// A range is no address to listen at: its connections are told apart where all of the port are.
func TestTrapRanges(t *testing.T) {
	w := newWorld(t)
	s := service("db", &sdk.Port{Number: 9000, Name: "tcp", Protocol: "TCP"})
	s.Addresses = []string{"10.50.1.0/24"}
	w.commit(rows(state.Services, sdk.ServiceRow(s)))
	w.attach(1, proxy(sidecarID, nil, nil))
	r := w.listener(1, "0.0.0.0_9000").FilterChains[0].GetFilterChainMatch().GetPrefixRanges()
	if len(r) != 1 || r[0].AddressPrefix != "10.50.1.0" || r[0].PrefixLen.GetValue() != 24 {
		t.Error(r)
	}
}

// Of virtual services with wildcards the most specific counts, whichever is older.
func TestTrapWildcards(t *testing.T) {
	w := newWorld(t)
	s := service("x.a.example", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
	route := func(name, host string, created int64) *pb.Row {
		return withTime(resource("default/"+name, &networking.VirtualService{Hosts: []string{host}, Http: []*networking.HTTPRoute{
			{Name: name, Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "x.a.example"}}}},
		}}), created)
	}
	w.commit(rows(state.Services, sdk.ServiceRow(s)), rows(config.VirtualServices, route("wide", "*.example", 1), route("narrow", "*.a.example", 2)))
	w.attach(1, proxy(sidecarID, nil, nil))
	for _, h := range w.routes(1, "80").VirtualHosts {
		if h.Name == "x.a.example:80" && (len(h.Routes) != 1 || h.Routes[0].Name != "narrow") {
			t.Error(h)
		}
	}
}

// Behind a gateway that passes the mesh's TLS on there are only endpoints that speak it.
func TestTrapPlaintextBehindPassThrough(t *testing.T) {
	w := newWorld(t)
	gw := &networking.Gateway{Selector: map[string]string{"app": "gw"}, Servers: []*networking.Server{{
		Port: &networking.Port{Number: 15443, Protocol: "TLS", Name: "tls"}, Hosts: []string{"*.local"},
		Tls: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH},
	}}}
	w.commit(append(web("10.1.0.1"), rows(config.Gateways, resource("default/gw", gw)),
		rows(state.Endpoints, at(webHost, "http", 80, "10.1.0.2", func(e *sdk.Endpoint) { e.TlsMode = "" })))...)
	w.attach(1, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"app": "gw"}}))
	name := "outbound_.80_._." + webHost
	if got := addresses(t, w.get(1, encode.EndpointType, name)[name]); !slices.Equal(got, []string{"10.1.0.1"}) {
		t.Errorf("%s: %v", name, got)
	}
	if !strings.Contains(strings.Join(keysOf(w.get(1, encode.ClusterType)), " "), name) {
		t.Error("there is no such cluster")
	}
}
