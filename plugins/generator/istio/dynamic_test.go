package istio

import (
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dynamicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dynamic_forward_proxy/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	sniv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/sni_dynamic_forward_proxy/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const wild = "*.example.com"

func dynamicService() *pb.TableRows {
	s := service(wild, &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"}, &sdk.Port{Number: 443, Name: "tls", Protocol: "TLS"},
		&sdk.Port{Number: 9090, Name: "grpc", Protocol: "GRPC"},
		&sdk.Port{Number: 444, Name: "https", Protocol: "HTTPS"},
		&sdk.Port{Number: 3306, Name: "tcp", Protocol: "TCP"})
	s.Addresses, s.External, s.Resolution = nil, true, pb.ServiceResolutionDynamicDns
	return rows(state.Services, sdk.ServiceRow(s))
}

func dynamicOf(t *testing.T, c *clusterv3.Cluster) (*dynamicv3.ClusterConfig, *http.HttpProtocolOptions) {
	t.Helper()
	d, o := &dynamicv3.ClusterConfig{}, &http.HttpProtocolOptions{}
	if err := c.GetClusterType().GetTypedConfig().UnmarshalTo(d); err != nil {
		t.Fatal(err)
	}
	if any := c.TypedExtensionProtocolOptions["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]; any != nil {
		if err := any.UnmarshalTo(o); err != nil {
			t.Fatal(err)
		}
	}
	return d, o
}

func filterNames(l *listenerv3.FilterChain, t *testing.T) string {
	var out []string
	for _, f := range filter(t, l, &hcm.HttpConnectionManager{}).HttpFilters {
		out = append(out, f.Name)
	}
	return strings.Join(out, " ")
}

// TestHostsThatAreLookedUp: requests by their host, TLS by the name in its hello, and nothing else.
func TestHostsThatAreLookedUp(t *testing.T) {
	w := newWorld(t)
	w.commit(dynamicService())
	w.attach(1, proxy(sidecarID, nil, nil))
	w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, nil))
	var got []string
	for _, name := range keysOf(w.get(1, encode.ClusterType)) {
		if strings.HasPrefix(name, "outbound|") {
			got = append(got, name)
		}
	}
	if want := []string{"outbound|443||" + wild, "outbound|80||" + wild, "outbound|9090||" + wild}; !slices.Equal(got, want) {
		t.Errorf("clusters %v, want %v", got, want)
	}
	c := w.cluster(1, "outbound|80||"+wild)
	d, _ := dynamicOf(t, c)
	if d.GetDnsCacheConfig().GetName() != wild+"_dfp_dns_cache" || d.GetDnsCacheConfig().GetDnsLookupFamily() != clusterv3.Cluster_V4_ONLY ||
		d.AllowInsecureClusterOptions || c.LbPolicy != clusterv3.Cluster_CLUSTER_PROVIDED || c.TransportSocket != nil {
		t.Error(c)
	}
	if d, o := dynamicOf(t, w.cluster(1, "outbound|9090||"+wild)); d.AllowInsecureClusterOptions || !o.GetUpstreamHttpProtocolOptions().GetAutoSanValidation() {
		t.Error("Envoy refuses a cluster with options for HTTP that doesn't check names: ", o)
	}
	if body := w.get(2, encode.ClusterType)["outbound|80||"+wild]; body == nil {
		t.Error("virtual services lead there from gateways, too")
	}
	if names := filterNames(w.listener(1, "0.0.0.0_80").FilterChains[0], t); !strings.HasSuffix(names,
		"envoy.filters.http.dynamic_forward_proxy envoy.filters.http.router") {
		t.Error(names)
	}
	chain := w.listener(1, "0.0.0.0_443").FilterChains[0]
	if !slices.Equal(chain.GetFilterChainMatch().GetServerNames(), []string{wild}) || filter(t, chain, &tcp.TcpProxy{}).GetCluster() != "outbound|443||"+wild {
		t.Error(chain)
	}
	if l := filter(t, chain, &sniv3.FilterConfig{}); l.GetPortValue() != 443 || l.DnsCacheConfig.Name != wild+"_dfp_dns_cache" {
		t.Error(l)
	}
	if chain.Filters[len(chain.Filters)-1].Name != "envoy.filters.network.tcp_proxy" {
		t.Error("the name is looked up before bytes go on")
	}
	for _, gone := range []string{"0.0.0.0_444", "0.0.0.0_3306"} {
		if w.get(1, encode.ListenerType)[gone] != nil {
			t.Errorf("%s names no host", gone)
		}
	}
}

// TestTLSTowardsHostsThatAreLookedUp: each has a name of its own, that is checked unless the rule
// says otherwise.
func TestTLSTowardsHostsThatAreLookedUp(t *testing.T) {
	w := newWorld(t)
	w.commit(dynamicService())
	w.attach(1, proxy(sidecarID, nil, nil))
	for tls, c := range map[string]struct{ socket, sni, san, insecure bool }{
		`{"mode": "DISABLE"}`:                                         {},
		`{"mode": "SIMPLE"}`:                                          {socket: true, sni: true, san: true},
		`{"mode": "ISTIO_MUTUAL"}`:                                    {socket: true, sni: true, san: true},
		`{"mode": "SIMPLE", "insecureSkipVerify": true}`:              {socket: true, sni: true, insecure: true},
		`{"mode": "SIMPLE", "subjectAltNames": ["a"]}`:                {socket: true, sni: true, san: true},
		`{"mode": "SIMPLE", "sni": "a", "subjectAltNames": ["a"]}`:    {socket: true, san: true, insecure: true},
		`{"mode": "ISTIO_MUTUAL", "subjectAltNames": ["spiffe://a"]}`: {socket: true, sni: true, san: true},
	} {
		spec := &networking.DestinationRule{}
		if err := protojson.Unmarshal([]byte(`{"host": "`+wild+`", "trafficPolicy": {"tls": `+tls+`}}`), spec); err != nil {
			t.Fatal(err)
		}
		w.commit(rows(config.DestinationRules, resource("default/r", spec)))
		got := w.cluster(1, "outbound|80||"+wild)
		d, o := dynamicOf(t, got)
		u := o.GetUpstreamHttpProtocolOptions()
		if (got.TransportSocket != nil) != c.socket || u.GetAutoSni() != c.sni || u.GetAutoSanValidation() != c.san ||
			d.AllowInsecureClusterOptions != c.insecure {
			t.Errorf("%s: %v, insecure %t", tls, u, d.AllowInsecureClusterOptions)
		}
	}
}

// TestUnknownHostsAreLookedUp: requests alone, where the mesh says so and no Sidecar says
// otherwise.
func TestUnknownHostsAreLookedUp(t *testing.T) {
	const name = "AllowAnyDynamicDNSCluster"
	plain := cluster.BuildAllowAnyDynamic(cluster.Mesh{}, cluster.Client{})
	if d, o := dynamicOf(t, plain); !d.AllowInsecureClusterOptions || o.GetUpstreamHttpProtocolOptions() != nil || plain.TransportSocket != nil {
		t.Error(plain)
	}
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.withMesh(`{"outboundTrafficPolicy": {"mode": "ALLOW_ANY_DYNAMIC_DNS", "tls": {"mode": "SIMPLE"}}, "proxyHttpPort": 15002}`)
	w.attach(1, proxy(sidecarID, nil, nil))
	w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, nil))
	c := w.cluster(1, name)
	if d, o := dynamicOf(t, c); d.AllowInsecureClusterOptions || !o.GetUpstreamHttpProtocolOptions().GetAutoSanValidation() || c.TransportSocket == nil {
		t.Error(c)
	}
	if w.get(2, encode.ClusterType)[name] != nil {
		t.Error("gateways look nothing up")
	}
	out := w.listener(1, "virtualOutbound")
	if len(out.FilterChains) != 3 ||
		!slices.Contains(out.FilterChains[1].GetFilterChainMatch().GetApplicationProtocols(), "http/1.1") ||
		len(out.ListenerFilters) != 1 {
		t.Fatal(out)
	}
	if !strings.Contains(out.FilterChains[1].String(), name) || filter(t, out.FilterChains[2], &tcp.TcpProxy{}).GetCluster() != "PassthroughCluster" {
		t.Error(out)
	}
	for _, l := range []string{"0.0.0.0_80", "127.0.0.1_15002"} {
		if names := filterNames(w.listener(1, l).FilterChains[0], t); !strings.Contains(names, "dynamic_forward_proxy") {
			t.Errorf("%s: %s", l, names)
		}
	}
	last := w.routes(1, "80").VirtualHosts
	if h := last[len(last)-1]; h.Name != "allow_any_dynamic_dns" || h.Routes[0].GetRoute().GetCluster() != name {
		t.Error(h)
	}
	if w.get(1, encode.ClusterType)[name] == nil {
		t.Error("no cluster")
	}
	any := &networking.Sidecar{OutboundTrafficPolicy: &networking.OutboundTrafficPolicy{Mode: networking.OutboundTrafficPolicy_ALLOW_ANY}}
	w.commit(rows(config.Sidecars, resource("default/s", any)))
	if got := len(w.listener(1, "virtualOutbound").FilterChains); got != 2 {
		t.Errorf("a Sidecar says otherwise: %d chains", got)
	}
	if w.get(1, encode.ClusterType)[name] != nil {
		t.Error("a Sidecar says otherwise, and the cluster is there")
	}
}
