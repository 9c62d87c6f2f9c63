package istio

import (
	"slices"
	"strings"
	"testing"

	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestHostsThatAreLeftOut: an entry with ~ takes from what others import, services and routes.
func TestHostsThatAreLeftOut(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a/x.example", "a/y.example", "b/z.example", "default/own.example"} {
		namespace, host, _ := strings.Cut(name, "/")
		s := service(host, &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
		s.Namespace = namespace
		w.commit(rows(state.Services, sdk.ServiceRow(s)))
	}
	to := []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "own.example"}}}
	w.commit(rows(config.VirtualServices, resource("b/v", &networking.VirtualService{
		Hosts: []string{"one.example", "two.example"}, Http: []*networking.HTTPRoute{{Name: "r", Route: to}},
	})))
	w.attach(1, proxy(sidecarID, nil, nil))
	for _, c := range []struct {
		hosts, services []string
		routed          bool
	}{
		{[]string{"*/*"}, []string{"own", "x", "y", "z"}, true},
		{[]string{"*/*", "~a/*"}, []string{"own", "z"}, true},
		{[]string{"*/*", "~b/*"}, []string{"own", "x", "y"}, false},
		{[]string{"~a/x.example", "*/*"}, []string{"own", "y", "z"}, true},
		{[]string{"a/*", "~/y.example"}, []string{"x"}, false},
		{[]string{"*/*", "~./*"}, []string{"x", "y", "z"}, true},
		{[]string{"*/*", "~b/one.example"}, []string{"own", "x", "y", "z"}, true},
		{[]string{"*/*", "~b/one.example", "~b/two.example"}, []string{"own", "x", "y", "z"}, false},
		{[]string{"~/*"}, nil, false},
		{[]string{"*/*", "~/*"}, nil, false},
	} {
		w.commit(rows(config.Sidecars, resource("default/s", &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: c.hosts}}})))
		var got []string
		for _, name := range keysOf(w.get(1, encode.ClusterType)) {
			if host, ok := strings.CutPrefix(name, "outbound|80||"); ok {
				got = append(got, strings.TrimSuffix(host, ".example"))
			}
		}
		if !slices.Equal(got, c.services) && !(c.routed && slices.Equal(got, append([]string{"own"}, c.services...))) {
			t.Errorf("%v: services %v, want %v", c.hosts, got, c.services)
		}
		if routed := strings.Contains(w.routes(1, "80").String(), "one.example"); routed != c.routed {
			t.Errorf("%v: routes: %t", c.hosts, routed)
		}
	}
}

// TestBaseline: the mesh's limits count for what goes out, what passes through and what comes in,
// where no rule has some.
func TestBaseline(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.9.9.9")...)
	w.withMesh(`{"defaultTrafficPolicy": {"connectionPool": {"tcp": {"maxConnections": 7}, "http": {"idleTimeout": "3s"}}}}`)
	w.attach(1, proxy(sidecarID, nil, nil))
	for _, name := range []string{webCluster, "PassthroughCluster", "InboundPassthroughCluster", "inbound|8080||"} {
		c := w.cluster(1, name)
		if got := c.CircuitBreakers.Thresholds[0].MaxConnections.GetValue(); got != 7 {
			t.Errorf("%s: %d connections", name, got)
		}
		o := read(t, c.TypedExtensionProtocolOptions["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"].GetValue(), &http.HttpProtocolOptions{})
		want := "3s"
		if strings.HasSuffix(name, "PassthroughCluster") { // limits of the protocol don't count there
			want = "5m0s"
		}
		if got := o.GetCommonHttpProtocolOptions().GetIdleTimeout().AsDuration().String(); got != want {
			t.Errorf("%s: idle for %s", name, got)
		}
	}
	rule := &networking.DestinationRule{Host: "web", TrafficPolicy: &networking.TrafficPolicy{ConnectionPool: &networking.ConnectionPoolSettings{
		Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: 9},
	}}}
	w.commit(rows(config.DestinationRules, resource("default/r", rule)))
	for name, want := range map[string]uint32{webCluster: 9, "PassthroughCluster": 7, "inbound|8080||": 9} {
		if got := w.cluster(1, name).CircuitBreakers.Thresholds[0].MaxConnections.GetValue(); got != want {
			t.Errorf("%s: %d connections, want %d", name, got, want)
		}
	}
}
