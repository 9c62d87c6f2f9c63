package istio

import (
	"fmt"
	"math"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	originalsrc "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_src/v3"
	inspector "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	cares "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// listenerFilterOf is the configuration of the first listener filter of a type.
func listenerFilterOf[M proto.Message](t *testing.T, l *listenerv3.Listener, into M) M {
	t.Helper()
	for _, f := range l.ListenerFilters {
		if f.GetTypedConfig().MessageIs(into) {
			return read(t, f.GetTypedConfig().Value, into)
		}
	}
	t.Fatalf("%s has no %s", l.Name, into.ProtoReflect().Descriptor().Name())
	return into
}

// TestConstants says each number of istiod's that nobody's configuration asks for, so that none
// changes unnoticed.
func TestConstants(t *testing.T) {
	w := newWorld(t)
	named := service("named.example", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
	named.Resolution = pb.ServiceResolutionDns
	warm := &networking.DestinationRule{}
	if err := protojson.Unmarshal([]byte(`{"host": "named.example", "trafficPolicy": {"loadBalancer": {"warmup": {"duration": "9s"}}},
		"subsets": [{"name": "hash", "trafficPolicy": {"loadBalancer": {"consistentHash": {"useSourceIp": true}}}}]}`), warm); err != nil {
		t.Fatal(err)
	}
	gw := &networking.Gateway{Selector: map[string]string{"app": "gw"}, Servers: []*networking.Server{
		{Port: &networking.Port{Number: 443, Protocol: "HTTPS", Name: "https"}, Hosts: []string{"*"}, Tls: &networking.ServerTLSSettings{
			Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: "c",
		}},
	}}
	w.commit(append(web("10.9.9.9"), rows(state.Services, sdk.ServiceRow(named)), rows(config.DestinationRules, resource("default/r", warm)),
		rows(state.Endpoints, at("named.example", "http", 80, "10.1.0.1"), at("named.example", "http", 80, "10.1.0.2")),
		rows(config.Gateways, resource("default/gw", gw)))...)
	edge := map[string]any{"connectionSettings": map[string]any{"profile": "EDGE"}}
	w.attach(1, proxy(sidecarID, nil, nil))
	w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"app": "gw"}, "PROXY_CONFIG": edge}))
	w.attach(3, proxy(sidecarID, nil, map[string]any{"INTERCEPTION_MODE": "TPROXY"}))

	inbound, outbound, chain := w.listener(1, "virtualInbound"), w.listener(1, "virtualOutbound"), w.listener(1, "0.0.0.0_80").FilterChains[0]
	plain, dns, pass := w.cluster(1, webCluster), w.cluster(1, "outbound|80||named.example"), w.cluster(1, "PassthroughCluster")
	server := w.listener(2, "0.0.0.0_443")
	edges := filter(t, server.FilterChains[0], &hcm.HttpConnectionManager{})
	resolver := read(t, dns.GetTypedDnsResolverConfig().GetTypedConfig().GetValue(), &cares.CaresDnsResolverConfig{})
	idle := read(t, pass.TypedExtensionProtocolOptions["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"].GetValue(), &http.HttpProtocolOptions{})
	limits := plain.CircuitBreakers.Thresholds[0]
	hash := w.cluster(1, "outbound|80|hash|named.example").GetRingHashLbConfig()
	slow := dns.GetLeastRequestLbConfig().GetSlowStartConfig()
	behind := read(t, w.get(1, encode.ClusterType)["inbound|8080||"], &clusterv3.Cluster{})
	sent := filter(t, chain, &hcm.HttpConnectionManager{})
	for _, c := range []struct {
		constant  string
		got, want any
	}{
		{"connect timeout", plain.ConnectTimeout.AsDuration(), "10s"},
		{"circuit breakers: connections", limits.MaxConnections.GetValue(), uint32(math.MaxUint32)},
		{"circuit breakers: pending requests", limits.MaxPendingRequests.GetValue(), uint32(math.MaxUint32)},
		{"circuit breakers: requests", limits.MaxRequests.GetValue(), uint32(math.MaxUint32)},
		{"circuit breakers: retries", limits.MaxRetries.GetValue(), uint32(math.MaxUint32)},
		{"load balancer", plain.LbPolicy, clusterv3.Cluster_LEAST_REQUEST},
		{"panic threshold", plain.GetCommonLbConfig().GetHealthyPanicThreshold().GetValue(), float64(0)},
		{"DNS refresh", dns.DnsRefreshRate.AsDuration(), "1m0s"},
		{"DNS jitter", dns.DnsJitter.AsDuration(), "100ms"},
		{"DNS queries for each socket", resolver.GetUdpMaxQueries().GetValue(), 100},
		{"warm-up: first share", slow.GetMinWeightPercent().GetValue(), 10},
		{"warm-up: aggression", slow.GetAggression().GetDefaultValue(), 1},
		{"ring", hash.GetMinimumRingSize().GetValue(), 1024},
		{"pass-through: idle", idle.GetCommonHttpProtocolOptions().GetIdleTimeout().AsDuration(), "5m0s"},
		{"inbound: clean-up", behind.CleanupInterval.GetSeconds(), 9223372035},
		{"virtualOutbound", outbound.GetAddress().GetSocketAddress().GetPortValue(), 15001},
		{"virtualInbound", inbound.GetAddress().GetSocketAddress().GetPortValue(), 15006},
		{"protocol detection", inbound.ListenerFiltersTimeout.AsDuration(), "0s"},
		{"connections for each event", outbound.MaxConnectionsToAcceptPerSocketEvent.GetValue(), 1},
		{"TLS handshake", chain.TransportSocketConnectTimeout.AsDuration(), "15s"},
		{"TLS handshake at gateways", server.FilterChains[0].TransportSocketConnectTimeout.AsDuration(), "15s"},
		{"TLS inspector", listenerFilterOf(t, inbound, &inspector.TlsInspector{}).InitialReadBufferSize.GetValue(), 512},
		{"mark of the proxy's packets", listenerFilterOf(t, w.listener(3, "virtualInbound"), &originalsrc.OriginalSrc{}).Mark, 1337},
		{"direct response", w.routes(1, "80").MaxDirectResponseBodySizeBytes.GetValue(), 1 << 20},
		{"stream idle", sent.StreamIdleTimeout.AsDuration(), "0s"},
		{"sampling", sent.Tracing.GetRandomSampling().GetValue(), 1},
		{"EDGE: idle", edges.CommonHttpProtocolOptions.GetIdleTimeout().AsDuration(), "1h0m0s"},
		{"EDGE: stream idle", edges.StreamIdleTimeout.AsDuration(), "5m0s"},
		{"EDGE: request", edges.RequestTimeout.AsDuration(), "5m0s"},
		{"EDGE: headers", edges.RequestHeadersTimeout.AsDuration(), "1m0s"},
		{"EDGE: streams", edges.Http2ProtocolOptions.GetMaxConcurrentStreams().GetValue(), 100},
		{"EDGE: window of a stream", edges.Http2ProtocolOptions.GetInitialStreamWindowSize().GetValue(), 64 << 10},
		{"EDGE: window of a connection", edges.Http2ProtocolOptions.GetInitialConnectionWindowSize().GetValue(), 1 << 20},
		{"EDGE: buffers", server.PerConnectionBufferLimitBytes.GetValue(), 32 << 10},
	} {
		if got := fmt.Sprint(c.got); got != fmt.Sprint(c.want) {
			t.Errorf("%s: %s, want %v", c.constant, got, c.want)
		}
	}
}
