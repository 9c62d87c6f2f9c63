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

// The rule for a service limits what its own workloads receive, as long as they import the
// service's host.
func TestRuleOfOwnPorts(t *testing.T) {
	w := newWorld(t)
	w.commit(append(web("10.9.9.9"), rows(config.DestinationRules, resource("default/r", &networking.DestinationRule{
		Host: webHost, TrafficPolicy: &networking.TrafficPolicy{ConnectionPool: &networking.ConnectionPoolSettings{
			Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: 7},
		}},
	})))...)
	w.attach(1, proxy(sidecarID, nil, nil))
	limit := func() uint32 {
		return w.cluster(1, "inbound|8080||").GetCircuitBreakers().GetThresholds()[0].GetMaxConnections().GetValue()
	}
	for _, c := range []struct {
		hosts   []string
		limited bool
	}{{[]string{"other/*"}, false}, {[]string{"other/*", "./" + webHost}, true}, {[]string{"*/*"}, true}} {
		w.commit(rows(config.Sidecars, resource("default/s", &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: c.hosts}}})))
		if got := limit(); (got == 7) != c.limited {
			t.Errorf("of who imports %v: %d", c.hosts, got)
		}
	}
	w.commit(&pb.TableRows{Table: config.Sidecars, Deletes: []string{"default/s"}})
	if got := limit(); got != 7 {
		t.Errorf("without a Sidecar: %d", got)
	}
}

// Proxies with addresses of both families dial their own ports from one, unless the mesh is dual
// stack.
func TestSourceOfOwnPorts(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.9.9.9")...)
	w.attach(1, proxy(sidecarID, nil, map[string]any{"INSTANCE_IPS": "10.9.9.9,2001:db8::9"}))
	if b := w.cluster(1, "inbound|8080||").GetUpstreamBindConfig(); b.GetSourceAddress().GetAddress() != "127.0.0.6" || len(b.ExtraSourceAddresses) > 0 {
		t.Error(b)
	}
	if b := w.cluster(1, "InboundPassthroughCluster").GetUpstreamBindConfig(); len(b.GetExtraSourceAddresses()) != 1 {
		t.Error(b)
	}
}

// Hosts that clients look up have priorities by the labels of their endpoints too, which are asked
// of no other client.
func TestFailoverOfNames(t *testing.T) {
	w := newWorld(t)
	s := service("db.example", &sdk.Port{Number: 90, Name: "tcp", Protocol: "TCP"})
	s.Resolution = pb.ServiceResolutionDns
	tier := func(v string) func(*sdk.Endpoint) {
		return func(e *sdk.Endpoint) { e.Labels = map[string]string{"tier": v} }
	}
	w.commit(rows(state.Services, sdk.ServiceRow(s)),
		rows(state.Endpoints, at("db.example", "tcp", 90, "a.example", tier("a")), at("db.example", "tcp", 90, "b.example", tier("b"))),
		rows(config.DestinationRules, resource("default/r", &networking.DestinationRule{Host: "db.example", TrafficPolicy: &networking.TrafficPolicy{
			OutlierDetection: &networking.OutlierDetection{},
			LoadBalancer: &networking.LoadBalancerSettings{
				LocalityLbSetting: &networking.LocalityLoadBalancerSetting{FailoverPriority: []string{"tier"}},
			},
		}})))
	for i, c := range []struct {
		tier string
		want []string
	}{{"a", []string{"a.example", "b.example"}}, {"b", []string{"b.example", "a.example"}}} {
		connection := uint64(i + 1)
		w.attach(connection, proxy(sidecarID, nil, map[string]any{"LABELS": map[string]any{"tier": c.tier}}))
		got := make([]string, 2)
		for _, l := range w.cluster(connection, "outbound|90||db.example").GetLoadAssignment().GetEndpoints() {
			got[l.Priority] = l.LbEndpoints[0].GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("from tier %s: %v", c.tier, got)
		}
	}
}

// A label may say all of a proxy's locality; what it says selects the proxy like the labels that
// registries have.
func TestLocalityByOneLabel(t *testing.T) {
	w := newWorld(t)
	w.commit(append(web(), rows(config.Sidecars, resource("default/s", &networking.Sidecar{
		WorkloadSelector: &networking.WorkloadSelector{Labels: map[string]string{"topology.kubernetes.io/zone": "z"}},
		Egress:           []*networking.IstioEgressListener{{Hosts: []string{"other/*"}}},
	})))...)
	for i, c := range []struct {
		labels   map[string]any
		selected bool
	}{
		{map[string]any{"istio-locality": "r/z"}, true}, {map[string]any{"topology.istio.io/locality": "r/z", "istio-locality": "r/y"}, true},
		{map[string]any{"istio-locality": "r/z", "topology.kubernetes.io/region": "q"}, false}, {nil, false},
	} {
		connection := uint64(i + 1)
		w.attach(connection, proxy(sidecarID, nil, map[string]any{"LABELS": c.labels}))
		if got := w.get(connection, encode.ClusterType)[webCluster] == nil; got != c.selected {
			t.Errorf("%v: selected %v", c.labels, got)
		}
	}
}
