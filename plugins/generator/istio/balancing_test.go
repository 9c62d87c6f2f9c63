package istio

import (
	"slices"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func TestServicesThatPreferWhatIsNear(t *testing.T) {
	for wish, want := range map[string][]string{
		"PreferClose":    {workload.NetworkLabel, "topology.kubernetes.io/region", "topology.kubernetes.io/zone"},
		"prefersamezone": {workload.NetworkLabel, "topology.kubernetes.io/region", "topology.kubernetes.io/zone"},
		"PreferSameNode": {
			workload.NetworkLabel, "topology.kubernetes.io/region", "topology.kubernetes.io/zone",
			"topology.istio.io/subzone", "kubernetes.io/hostname",
		},
	} {
		s := &config.Service{Service: pb.Service{Host: "near", TrafficDistribution: wish}}
		if got := cluster.NearnessOf(nil, s, cluster.Mesh{}); !slices.Equal(got.Locality.GetFailoverPriority(), want) || !got.Failover {
			t.Errorf("%s: %v", wish, got)
		}
	}
}

// TestNearness: a rule goes before the service's wish, and that before the mesh, where zones go
// before localities.
func TestNearness(t *testing.T) {
	const locality, zones, none = "locality", "zones", ""
	for _, c := range []struct{ name, mesh, rule, wish, want string }{
		{"nothing", `{}`, `{}`, "", none},
		{"the mesh's localities", `{"localityLbSetting": {}}`, `{}`, "", locality},
		{"switched off", `{"localityLbSetting": {"enabled": false}}`, `{}`, "", none},
		{"switched off by the rule", `{"localityLbSetting": {}}`, `{"localityLbSetting": {"enabled": false}}`, "", none},
		{"the mesh's zones", `{"localityLbSetting": {}, "zoneAwareLbSetting": {}}`, `{}`, "", zones},
		{"zones switched off", `{"localityLbSetting": {}, "zoneAwareLbSetting": {"enabled": false}}`, `{}`, "", locality},
		{"the rule's zones", `{"localityLbSetting": {}}`, `{"zoneAwareLbSetting": {}}`, "PreferClose", zones},
		{"the rule's localities", `{"zoneAwareLbSetting": {}}`, `{"localityLbSetting": {}}`, "PreferClose", locality},
		{"zones switched off by the rule", `{"localityLbSetting": {}}`, `{"zoneAwareLbSetting": {"enabled": false}}`, "", none},
		{"the service's wish", `{"zoneAwareLbSetting": {}}`, `{}`, "PreferClose", locality},
	} {
		mesh, balancer := &mesh.Config{}, &networking.LoadBalancerSettings{}
		if protojson.Unmarshal([]byte(c.mesh), mesh) != nil || protojson.Unmarshal([]byte(c.rule), balancer) != nil {
			t.Fatal(c.name)
		}
		n := cluster.NearnessOf(&networking.TrafficPolicy{LoadBalancer: balancer}, &config.Service{Service: pb.Service{TrafficDistribution: c.wish}},
			cluster.Mesh{Locality: mesh.LocalityLbSetting, Zones: mesh.ZoneAwareLbSetting})
		got := none
		switch {
		case n.Locality != nil:
			got = locality
		case n.Zones != nil && (n.Zones.Enabled == nil || n.Zones.Enabled.Value):
			got = zones
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestZones: proxies that know the zones of their own kind are told to heed them, and get the
// endpoints of their region first.
func TestZones(t *testing.T) {
	w := newWorld(t)
	w.commit(web()...)
	in := func(place string) func(*sdk.Endpoint) { return func(e *sdk.Endpoint) { e.Locality = place } }
	w.commit(rows(state.Endpoints, at(webHost, "http", 80, "10.1.0.1", in("r/a")), at(webHost, "http", 80, "10.1.0.2", in("r/b")),
		at(webHost, "http", 80, "10.1.0.3", in("q/a")), at(webHost, "http", 80, "10.1.0.4", in("p/a"))))
	rule := func(setting string) {
		t.Helper()
		spec := &networking.DestinationRule{}
		if err := protojson.Unmarshal([]byte(`{"host": "web", "trafficPolicy": {"loadBalancer": {"zoneAwareLbSetting": `+setting+`}}}`), spec); err != nil {
			t.Fatal(err)
		}
		w.commit(rows(config.DestinationRules, resource("default/r", spec)))
	}
	from := map[string]any{"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "a"}
	w.attach(1, proxy(sidecarID, nil, map[string]any{"LABELS": from, "ENABLE_SELF_DISCOVERY": "true"}))
	w.attach(2, proxy(sidecarID, nil, map[string]any{"LABELS": from}))
	priorities := func(connection uint64) map[string]uint32 {
		out := map[string]uint32{}
		for _, l := range w.assignment(connection, webCluster).Endpoints {
			out[l.Locality.Region+"/"+l.Locality.Zone] = l.Priority
		}
		return out
	}
	for _, c := range []struct {
		setting  string
		heeds    bool
		smallest uint64
		q, p     uint32
	}{
		{`{}`, true, 0, 1, 1},
		{`{"minClusterSize": 3, "failover": [{"from": "r", "to": "p"}]}`, true, 3, 2, 1},
		{`{"failover": [{"from": "x", "to": "p"}]}`, true, 0, 1, 1},
		{`{"enabled": false}`, false, 0, 0, 0},
	} {
		rule(c.setting)
		zone := w.cluster(1, webCluster).GetCommonLbConfig().GetZoneAwareLbConfig()
		if zone == nil || (zone.RoutingEnabled == nil) != c.heeds || zone.MinClusterSize.GetValue() != c.smallest {
			t.Errorf("%s: %v", c.setting, zone)
		}
		if got := priorities(1); got["r/a"] != 0 || got["r/b"] != 0 || got["q/a"] != c.q || got["p/a"] != c.p {
			t.Errorf("%s: %v", c.setting, got)
		}
		if w.cluster(2, webCluster).GetCommonLbConfig().GetZoneAwareLbConfig() != nil || priorities(2)["q/a"] != 0 {
			t.Errorf("%s: one that doesn't know zones: %v", c.setting, priorities(2))
		}
	}
	if w.out.placed[1][encode.ClusterType] == w.out.placed[2][encode.ClusterType] {
		t.Error("who knows zones shares with who doesn't")
	}
}

// TestSessions: endpoints that drain are there for sessions alone, which the service's labels ask
// for.
func TestSessions(t *testing.T) {
	for _, on := range []bool{false, true} {
		w := newWorld(t)
		w.e = newEngine(Config{Domain: "cluster.local", PersistentSessions: on})
		draining := func(e *sdk.Endpoint) { e.Labels = map[string]string{"istio.io/draining": "yes"} }
		gw := &networking.Gateway{Selector: map[string]string{"app": "gw"}, Servers: []*networking.Server{
			{Port: &networking.Port{Number: 80, Protocol: "HTTP", Name: "http"}, Hosts: []string{"*"}},
		}}
		routes := &networking.VirtualService{Hosts: []string{"kept.example"}, Gateways: []string{"gw"}, Http: []*networking.HTTPRoute{
			{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "plain.example"}}}},
		}}
		unknown := &networking.VirtualService{Hosts: []string{"nobody.example"}, Gateways: []string{"gw"}, Http: routes.Http}
		w.commit(rows(config.Gateways, resource("default/gw", gw)), rows(config.VirtualServices, resource("default/v", routes), resource("default/u", unknown)))
		for host, labels := range map[string]map[string]string{
			"kept.example": {"istio.io/persistent-session": "c:/p"}, "byheader.example": {"istio.io/persistent-session-header": "h"}, "plain.example": nil,
		} {
			s := service(host, &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
			s.Labels = labels
			w.commit(rows(state.Services, sdk.ServiceRow(s)),
				rows(state.Endpoints, at(host, "http", 80, "10.1.0.1"), at(host, "http", 80, "10.1.0.2", draining)))
		}
		w.attach(1, proxy(sidecarID, nil, nil))
		w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"app": "gw"}}))
		for host, kept := range map[string]bool{"kept.example": true, "byheader.example": true, "plain.example": false} {
			name := "outbound|80||" + host
			if got := len(w.cluster(1, name).GetCommonLbConfig().GetOverrideHostStatus().GetStatuses()) == 4; got != kept {
				t.Errorf("%s: sessions override health: %t", host, got)
			}
			var drains bool
			for _, l := range w.assignment(1, name).Endpoints {
				for _, e := range l.LbEndpoints {
					drains = drains || e.HealthStatus == core.HealthStatus_DRAINING
				}
			}
			if drains != kept {
				t.Errorf("%s: endpoints that drain: %t", host, drains)
			}
		}
		for connection, want := range map[uint64]string{1: "byheader.example:80 kept.example:80", 2: "kept.example:80"} {
			var with string
			for _, h := range w.routes(connection, map[uint64]string{1: "80", 2: "http.80"}[connection]).VirtualHosts {
				if h.TypedPerFilterConfig["envoy.filters.http.stateful_session"] != nil {
					with += " " + h.Name
				}
			}
			if with != map[bool]string{true: " " + want}[on] {
				t.Errorf("switched on %t: connection %d: sessions at%s", on, connection, with)
			}
		}
		if len(w.out.faults) > 0 {
			t.Error(w.out.faults)
		}
		if got := containsText(w.get(1, encode.ListenerType), "stateful_session"); got != on {
			t.Errorf("switched on %t: the filter is there: %t", on, got)
		}
	}
}

// TestNearIsWhereTheProxyIs: each proxy is near to the endpoints of its own node, where a service
// prefers those.
func TestNearIsWhereTheProxyIs(t *testing.T) {
	const label = "kubernetes.io/hostname"
	w := newWorld(t)
	s := service("near.example", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
	s.TrafficDistribution = "PreferSameNode"
	on := func(node string) func(*sdk.Endpoint) {
		return func(e *sdk.Endpoint) { e.Labels = map[string]string{label: node} }
	}
	w.commit(rows(state.Services, sdk.ServiceRow(s)),
		rows(state.Endpoints, at("near.example", "http", 80, "10.1.0.1", on("a")), at("near.example", "http", 80, "10.1.0.2", on("b"))))
	for connection, c := range map[uint64]struct{ node, first string }{1: {"a", "10.1.0.1"}, 2: {"b", "10.1.0.2"}} {
		w.attach(connection, proxy(sidecarID, nil, map[string]any{"LABELS": map[string]any{label: c.node}}))
		for _, l := range w.assignment(connection, "outbound|80||near.example").Endpoints {
			for _, e := range l.LbEndpoints {
				if got := e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress(); (l.Priority == 0) != (got == c.first) {
					t.Errorf("on %s: %s has priority %d", c.node, got, l.Priority)
				}
			}
		}
	}
}
