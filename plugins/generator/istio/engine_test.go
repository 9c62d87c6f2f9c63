package istio

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func keysOf[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func TestNothingConfigured(t *testing.T) {
	w := newWorld(t)
	w.commit()
	w.attach(1, proxy(sidecarID, nil, nil))
	w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, nil))
	if got := keysOf(w.get(1, encode.ClusterType)); !slices.Equal(got, []string{cluster.BlackHole, cluster.InboundPassthrough, cluster.Passthrough}) {
		t.Errorf("clusters of a sidecar: %v", got)
	}
	if got := keysOf(w.get(1, encode.ListenerType)); !slices.Equal(got, []string{"virtualInbound", "virtualOutbound"}) {
		t.Errorf("listeners of a sidecar: %v", got)
	}
	if got := keysOf(w.get(2, encode.ClusterType)); !slices.Equal(got, []string{cluster.BlackHole}) {
		t.Errorf("clusters of a gateway: %v", got)
	}
	if got := w.get(2, encode.ListenerType); len(got) != 0 {
		t.Errorf("listeners of a gateway: %v", keysOf(got))
	}
}

func TestUnknownNamesAreAnswered(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.attach(1, proxy(sidecarID, nil, nil))
	var c routev3.RouteConfiguration
	if err := proto.Unmarshal(w.get(1, encode.RouteType, "doesnotexist")["doesnotexist"], &c); err != nil || c.Name != "doesnotexist" {
		t.Errorf("route configuration: %v %v", &c, err)
	}
	var a endpointv3.ClusterLoadAssignment
	body := w.get(1, encode.EndpointType, "outbound|80||nope")["outbound|80||nope"]
	if err := proto.Unmarshal(body, &a); err != nil || a.ClusterName != "outbound|80||nope" || len(a.Endpoints) != 0 {
		t.Errorf("load assignment: %v %v", &a, err)
	}
	got := w.get(1, encode.ClusterType, "nope", webCluster)
	if body, ok := got["nope"]; !ok || body != nil {
		t.Errorf("an unknown cluster is known to be absent: %v %v", body, ok)
	}
	if got[webCluster] == nil {
		t.Error("a known cluster is there")
	}
	s := &sdk.Service{Host: "nope", Namespace: "default", Ports: []*sdk.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}}
	got = w.get(1, encode.ClusterType, "outbound|80||nope")
	if body, ok := got["outbound|80||nope"]; !ok || body != nil {
		t.Fatal("not yet a service")
	}
	w.commit(rows(state.Services, sdk.ServiceRow(s)))
	if w.out.resources(w.out.placed[1][encode.ClusterType])["outbound|80||nope"] == nil {
		t.Error("what was absent and appears is there")
	}
}

func TestStockEnvoyWithoutAgent(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.9.9.9")...)
	w.attach(1, proxy(sidecarID, []string{"envoy.filters.http.router"}, map[string]any{"COXSWAIN_NO_AGENT": "true"}))
	w.attach(2, proxy(sidecarID, []string{"istio.metadata_exchange", "istio.alpn"}, map[string]any{"COXSWAIN_NO_AGENT": true}))
	w.attach(3, proxy(sidecarID, nil, nil))
	has := func(connection uint64, what string) bool {
		return containsText(w.get(connection, encode.ClusterType), what) || containsText(w.get(connection, encode.ListenerType), what)
	}
	for _, c := range []struct {
		connection   uint64
		filters, sds bool
	}{{1, false, false}, {2, true, false}, {3, true, true}} {
		for _, name := range []string{"istio.metadata_exchange", "istio.alpn"} {
			if has(c.connection, name) != c.filters {
				t.Errorf("connection %d: %s: %v, want %v", c.connection, name, !c.filters, c.filters)
			}
		}
		if has(c.connection, "sds-grpc") != c.sds {
			t.Errorf("connection %d: secrets of an agent: %v, want %v", c.connection, !c.sds, c.sds)
		}
	}
	facts := w.out.views[w.out.placed[1][encode.ListenerType]].facts
	if facts["agent"] != "false" || facts["metadata exchange"] != "false" {
		t.Errorf("facts: %v", facts)
	}
}

func containsText(resources map[string][]byte, s string) bool {
	for _, b := range resources {
		if bytes.Contains(b, []byte(s)) {
			return true
		}
	}
	return false
}

func TestBadNode(t *testing.T) {
	w := newWorld(t)
	w.commit()
	for id, want := range map[string]string{
		"sidecar~10.0.0.1~a.b":                   "missing parts in the service node",
		"":                                       "missing node id",
		"envoy~10.0.0.1~a.b~b.svc.cluster.local": "unknown type",
		"sidecar~nowhere~a.default~default.svc.cluster.local": "no valid IP",
	} {
		p := proxy(id, nil, nil)
		err := w.e.Attach(context.Background(), p, w.out)
		if !errors.Is(err, node.ErrBadNode) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", id, err, want)
		}
	}
}

func addresses(t *testing.T, body []byte) []string {
	t.Helper()
	var a endpointv3.ClusterLoadAssignment
	if err := proto.Unmarshal(body, &a); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range a.Endpoints {
		for _, e := range l.LbEndpoints {
			out = append(out, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	return out
}

func TestEndpointsOvertake(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.attach(1, proxy(sidecarID, nil, nil))
	view := w.out.placed[1][encode.EndpointType]
	check := func(want ...string) {
		t.Helper()
		if got := addresses(t, w.out.resources(view)[webCluster]); !slices.Equal(got, want) {
			t.Errorf("endpoints %v, want %v", got, want)
		}
	}
	w.get(1, encode.EndpointType, webCluster)
	check("10.1.0.1")
	w.overtake([]*pb.Row{webEndpoint("10.1.0.2")})
	check("10.1.0.1", "10.1.0.2")

	// A revision that began before them doesn't take them back.
	w.revision -= 2
	w.commit(rows(config.VirtualServices, resource("default/v", &networking.VirtualService{Hosts: []string{"web"}})),
		&pb.TableRows{Table: state.Endpoints, Deletes: []string{webEndpoint("10.1.0.2").Key}})
	check("10.1.0.1", "10.1.0.2")
	// One that came after them has them.
	w.revision += 5
	w.commit(rows(state.Endpoints, webEndpoint("10.1.0.2"), webEndpoint("10.1.0.3")))
	check("10.1.0.1", "10.1.0.2", "10.1.0.3")
	w.overtake(nil, webEndpoint("10.1.0.1").Key)
	check("10.1.0.2", "10.1.0.3")
}

func TestEndpointsAloneChangeNothingElse(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.attach(1, proxy(sidecarID, nil, nil))
	w.get(1, encode.ClusterType)
	w.get(1, encode.ListenerType)
	w.get(1, encode.RouteType, "80")
	w.get(1, encode.EndpointType, webCluster)
	before := w.out.reports
	w.commit(rows(state.Endpoints, webEndpoint("10.1.0.2")))
	if n := w.out.reports - before; n != 1 {
		t.Errorf("%d resources were reported, want the load assignment alone", n)
	}
}

func TestExplain(t *testing.T) {
	w := newWorld(t)
	w.commit(append(web("10.1.0.1"),
		rows(config.DestinationRules, resource("default/web", &networking.DestinationRule{Host: "web"})),
		rows(config.VirtualServices, resource("default/web", &networking.VirtualService{Hosts: []string{"web"}, Http: []*networking.HTTPRoute{
			{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "web"}}}},
		}})))...)
	w.attach(1, proxy(sidecarID, nil, nil))
	for _, c := range []struct {
		typeURL, name, table, key string
	}{
		{encode.ClusterType, webCluster, config.DestinationRules, "default/web"},
		{encode.EndpointType, webCluster, state.Endpoints, webEndpoint("10.1.0.1").Key},
		{encode.ListenerType, "0.0.0.0_80", state.Services, "default/web.default.svc.cluster.local"},
		{encode.RouteType, "80", config.VirtualServices, "default/web"},
	} {
		var names []string
		if c.typeURL == encode.EndpointType || c.typeURL == encode.RouteType {
			names = []string{c.name}
		}
		w.get(1, c.typeURL, names...)
		rows, _, err := w.e.Explain(c.typeURL, w.out.placed[1][c.typeURL], c.name)
		if err != nil || !slices.Contains(rows, state.Name{Table: c.table, Key: c.key}) {
			t.Errorf("%s: %v %v, want %s %s among them", c.name, rows, err, c.table, c.key)
		}
	}
	if _, _, err := w.e.Explain(encode.RouteType, w.out.placed[1][encode.RouteType], "81"); err == nil {
		t.Error("what nobody wants has no explanation")
	}
}

func TestAFaultyRowKeepsItsLastGoodValue(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.attach(1, proxy(sidecarID, nil, nil))
	w.get(1, encode.ClusterType)
	w.commit(rows(state.Services, &pb.Row{Key: "default/web.default.svc.cluster.local", Payload: []byte{0xff}}))
	if len(w.out.faults) != 1 {
		t.Errorf("faults: %v", w.out.faults)
	}
	if w.out.resources(w.out.placed[1][encode.ClusterType])[webCluster] == nil {
		t.Error("the cluster is gone")
	}
}

func TestNothingIsKeptInCase(t *testing.T) {
	w := newWorld(t)
	w.commit()
	for range 3 {
		w.commit()
	}
	empty := w.e.Kept().Nodes
	w.commit(web("10.1.0.1", "10.1.0.2")...)
	w.attach(1, proxy(sidecarID, nil, nil))
	w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, nil))
	for _, connection := range []uint64{1, 2} {
		w.get(connection, encode.ClusterType)
		w.get(connection, encode.ListenerType)
		w.get(connection, encode.RouteType, "80", "http.80")
		w.get(connection, encode.EndpointType, webCluster)
	}
	for _, connection := range []uint64{1, 2} {
		w.e.Detach(connection)
		for typeURL, view := range w.out.placed[connection] {
			w.e.Drop(typeURL, view, nil, true)
		}
	}
	w.commit(&pb.TableRows{Table: state.Services, Deletes: []string{"default/web.default.svc.cluster.local"}},
		&pb.TableRows{Table: state.Endpoints, Deletes: []string{webEndpoint("10.1.0.1").Key, webEndpoint("10.1.0.2").Key}})
	for range 3 {
		w.commit()
	}
	if n := w.e.Kept().Nodes; n > empty {
		t.Errorf("%d nodes are live, %d when there was nothing", n, empty)
	}
	if k := w.e.Kept(); k.Watched+k.Scopes+k.Views+k.Parts+k.Services > 0 {
		t.Errorf("the engine keeps what nobody wants: %+v", k)
	}
}

func TestLabelsOfTheRegistryCountButNotAtLoopback(t *testing.T) {
	w := newWorld(t)
	gateway := &networking.Gateway{
		Selector: map[string]string{"istio": "gateway"},
		Servers: []*networking.Server{{
			Port:  &networking.Port{Number: 7080, Name: "http", Protocol: "HTTP"},
			Bind:  "127.0.0.1",
			Hosts: []string{"*"},
		}},
	}
	w.commit(append(web("127.0.0.1", "10.1.0.1"), rows(config.Gateways, resource("default/gateway", gateway)))...)
	labels := map[string]any{"LABELS": map[string]any{"istio": "gateway"}}
	w.attach(1, proxy("router~127.0.0.1~gw.default~default.svc.cluster.local", nil, labels))
	w.attach(2, proxy("router~10.1.0.1~gw.default~default.svc.cluster.local", nil, labels))
	if got := keysOf(w.get(1, encode.ListenerType)); !slices.Equal(got, []string{"127.0.0.1_7080"}) {
		t.Errorf("at a loopback address the proxy's own labels count: %v", got)
	}
	if got := w.get(2, encode.ListenerType); len(got) != 0 {
		t.Errorf("at an address that the registry knows its labels count: %v", keysOf(got))
	}
}
