package istio

import (
	"slices"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Where resources clash, the older one counts, whatever their names: here the ages go against the
// order of the names.

func created(r *pb.Row, at int64) *pb.Row {
	r.Created = at
	return r
}

// TestOldestPolicyCounts: of two rules for a host, each with a policy, the older one's counts; both
// give their subsets.
func TestOldestPolicyCounts(t *testing.T) {
	w := newWorld(t)
	limited := func(key string, at int64, connections int32) *pb.Row {
		return created(resource(key, &networking.DestinationRule{
			Host: "web", Subsets: []*networking.Subset{{Name: key[len("default/"):]}},
			TrafficPolicy: &networking.TrafficPolicy{ConnectionPool: &networking.ConnectionPoolSettings{
				Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: connections},
			}},
		}), at)
	}
	w.commit(append(web("10.1.0.1"), rows(config.DestinationRules, limited("default/a", 2, 22), limited("default/z", 1, 11)))...)
	w.attach(1, proxy(sidecarID, nil, nil))
	for _, name := range []string{webCluster, "outbound|80|a|" + webHost, "outbound|80|z|" + webHost} {
		if got := w.cluster(1, name).GetCircuitBreakers().GetThresholds()[0].GetMaxConnections().GetValue(); got != 11 {
			t.Errorf("%s: at most %d connections; the older rule says 11", name, got)
		}
	}
}

// TestOldestSidecarCounts: of two Sidecars that are for the same workloads the older one counts,
// with a selector and without.
func TestOldestSidecarCounts(t *testing.T) {
	for name, selector := range map[string]*networking.WorkloadSelector{
		"of the namespace": nil, "of the workload": {Labels: map[string]string{"app": "client"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			importing := func(key string, at int64, host string) *pb.Row {
				return created(resource(key,
					&networking.Sidecar{WorkloadSelector: selector, Egress: []*networking.IstioEgressListener{{Hosts: []string{host}}}}), at)
			}
			other := service("other", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
			w.commit(append(web("10.1.0.1"), rows(state.Services, sdk.ServiceRow(other)),
				rows(config.Sidecars, importing("default/a", 2, "./other"), importing("default/z", 1, "./"+webHost)))...)
			w.attach(1, proxy(sidecarID, nil, map[string]any{"LABELS": map[string]any{"app": "client"}}))
			if got := w.get(1, encode.ClusterType); got[webCluster] == nil || got["outbound|80||other"] != nil {
				t.Errorf("clusters %v: not those of the older Sidecar", keysOf(got))
			}
		})
	}
}

// TestRulesThatAreExportedDifferently: the same by rows. One that is exported further than another
// gives that one what it lacks, and is a group of its own.
func TestRulesThatAreExportedDifferently(t *testing.T) {
	w := newWorld(t)
	rule := func(key string, at int64, connections int32, exportTo ...string) *pb.Row {
		return created(resource(key, &networking.DestinationRule{Host: "web", ExportTo: exportTo, TrafficPolicy: &networking.TrafficPolicy{
			ConnectionPool: &networking.ConnectionPoolSettings{Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: connections}},
		}}), at)
	}
	w.commit(append(web("10.1.0.1"), rows(config.DestinationRules,
		rule("default/c", 1, 11, "other"), rule("default/b", 2, 22, "third"), rule("default/a", 3, 33, "other", "fourth")))...)
	w.attach(1, proxy("sidecar~10.9.9.7~client.other~other.svc.cluster.local", nil, nil))
	w.attach(2, proxy("sidecar~10.9.9.6~client.third~third.svc.cluster.local", nil, nil))
	for connection, want := range map[uint64]uint32{1: 33, 2: 22} {
		if got := w.cluster(connection, webCluster).GetCircuitBreakers().GetThresholds()[0].GetMaxConnections().GetValue(); got != want {
			t.Errorf("connection %d: at most %d connections, want %d", connection, got, want)
		}
	}
}

// TestCatchAllComesLast: of virtual services for one host of a gateway, routes that take all come
// after those that don't, though theirs is the older.
func TestCatchAllComesLast(t *testing.T) {
	w := newWorld(t)
	to := func(key string, at int64, prefix string) *pb.Row {
		r := &networking.HTTPRoute{Name: key, Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "web"}}}}
		if prefix != "" {
			r.Match = []*networking.HTTPMatchRequest{{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: prefix}}}}
		}
		return created(resource(key, &networking.VirtualService{Hosts: []string{"a.com"}, Gateways: []string{"gw"}, Http: []*networking.HTTPRoute{r}}), at)
	}
	w.commit(append(web("10.1.0.1"), rows(config.VirtualServices,
		to("default/all", 1, ""), to("default/root", 2, "/"), to("default/api", 3, "/api"), to("default/more", 4, "/api/more")))...)
	w.atGateway(nil, server(80, "HTTP", nil, "a.com"))
	var got []string
	for _, r := range w.routes(1, "http.80").VirtualHosts[0].Routes {
		got = append(got, r.Name)
	}
	if want := []string{"default/api", "default/more", "default/all", "default/root"}; !slices.Equal(got, want) {
		t.Errorf("routes %v, want %v", got, want)
	}
}

// TestMirroredServicesAreImported: a Sidecar that imports a virtual service imports what it leads
// to, requests' copies too.
func TestMirroredServicesAreImported(t *testing.T) {
	to := func(host string) *networking.Destination { return &networking.Destination{Host: host} }
	for name, r := range map[string]*networking.HTTPRoute{
		"mirror":  {Mirror: to("other")},
		"mirrors": {Mirrors: []*networking.HTTPMirrorPolicy{{Destination: to("other")}}},
		"nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r.Route = []*networking.HTTPRouteDestination{{Destination: to("web")}}
			other := service("other.default.svc.cluster.local", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
			w.commit(append(web("10.1.0.1"), rows(state.Services, sdk.ServiceRow(other)),
				rows(config.VirtualServices, resource("default/web", &networking.VirtualService{Hosts: []string{"web"}, Http: []*networking.HTTPRoute{r}})),
				rows(config.Sidecars,
					resource("default/s", &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: []string{"./" + webHost}}}})))...)
			w.attach(1, proxy(sidecarID, nil, nil))
			got := w.get(1, encode.ClusterType)
			if has := got["outbound|80||other.default.svc.cluster.local"] != nil; has != (name != "nothing") {
				t.Errorf("clusters %v", keysOf(got))
			}
		})
	}
}
