package cluster

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// outbound makes the cluster of a plain service at port 80 whose rule has this policy (JSON).
func outbound(t *testing.T, policy string, change func(*Outbound)) *clusterv3.Cluster {
	t.Helper()
	p := &networking.TrafficPolicy{}
	if err := protojson.Unmarshal([]byte(policy), p); err != nil {
		t.Fatal(err)
	}
	in := Outbound{
		Name:     Name{Port: 80, Host: "a.b"},
		Service:  &config.Service{Service: pb.Service{Host: "a.b", Namespace: "b", Ports: []*pb.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}}},
		Protocol: config.HTTP,
		Policy:   p,
	}
	if change != nil {
		change(&in)
	}
	return BuildOutbound(in)
}

func protocolOptions(t *testing.T, c *clusterv3.Cluster) *http.HttpProtocolOptions {
	t.Helper()
	given := c.TypedExtensionProtocolOptions[httpOptionsKey]
	if given == nil {
		return nil
	}
	out := &http.HttpProtocolOptions{}
	if err := given.UnmarshalTo(out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestHTTPVersions(t *testing.T) {
	const http2, client, http1, none = "HTTP/2", "the client's", "HTTP/1.1", ""
	as := func(p config.Protocol) func(*Outbound) { return func(in *Outbound) { in.Protocol = p } }
	mesh := func(p config.Protocol) func(*Outbound) {
		return func(in *Outbound) { in.Protocol, in.Mesh.UpgradeHTTP2 = p, true }
	}
	const upgrade = `{"connectionPool":{"http":{"h2UpgradePolicy":"UPGRADE"}}}`
	for name, c := range map[string]struct {
		policy string
		change func(*Outbound)
		want   string
	}{
		"HTTP":                                {`{}`, nil, none},
		"gRPC":                                {`{}`, as(config.GRPC), http2},
		"nothing declared":                    {`{}`, as(config.Sniffed), client},
		"nothing declared, at a gateway":      {`{}`, func(in *Outbound) { in.Protocol, in.Client.Router = config.Sniffed, true }, none},
		"upgrade":                             {upgrade, nil, http2},
		"upgrade of a port that says nothing": {upgrade, as(config.Sniffed), http2},
		"upgrade of a port that says TCP":     {upgrade, as(config.TCP), http2},
		"the mesh upgrades HTTP":              {`{}`, mesh(config.HTTP), http2},
		"the mesh upgrades nothing else":      {`{}`, mesh(config.Sniffed), client},
		"no upgrade where the rule says not":  {`{"connectionPool":{"http":{"h2UpgradePolicy":"DO_NOT_UPGRADE"}}}`, mesh(config.HTTP), none},
		"as the client, whatever is upgraded": {
			`{"connectionPool":{"http":{"useClientProtocol":true,"h2UpgradePolicy":"UPGRADE"}}}`, as(config.GRPC),
			client,
		},
		"settings without a protocol":           {`{"connectionPool":{"http":{"maxRequestsPerConnection":3}}}`, nil, http1},
		"settings for HTTP/2 at an HTTP/1 port": {`{"connectionPool":{"http":{"maxConcurrentStreams":3}}}`, nil, http1},
		"probes of HTTP/2 at an HTTP/1 port":    {`{"connectionPool":{"http":{"http2KeepAlive":{"interval":"9s"}}}}`, nil, http1},
	} {
		o := protocolOptions(t, outbound(t, c.policy, c.change))
		got := none
		switch {
		case o.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil:
			got = http2
		case o.GetExplicitHttpConfig() != nil:
			got = http1
		case o.GetUseDownstreamProtocolConfig() != nil:
			got = client
		}
		if got != c.want {
			t.Errorf("%s: %q is spoken, want %q", name, got, c.want)
		}
	}
}

// TestNoUpgradeWhereCaseIsKept: HTTP/2 has no case, and a port that says HTTP may speak nothing
// else.
func TestNoUpgradeWhereCaseIsKept(t *testing.T) {
	for p, http2 := range map[config.Protocol]bool{config.HTTP: false, config.Sniffed: true, config.GRPC: true} {
		c := outbound(t, `{"connectionPool":{"http":{"h2UpgradePolicy":"UPGRADE"}}}`, func(in *Outbound) { in.Protocol = p })
		SameCase(c, p)
		o := protocolOptions(t, c)
		if got := o.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil; got != http2 {
			t.Errorf("%v: HTTP/2: %v, want %v", p, got, http2)
		}
		if kept := o.GetExplicitHttpConfig().GetHttpProtocolOptions().GetHeaderKeyFormat() != nil; kept == http2 {
			t.Errorf("%v: names keep their case: %v", p, kept)
		}
	}
}

func keptAlive(m *Mesh) proto.Message {
	m.TCPKeepalive = &networking.ConnectionPoolSettings_TCPSettings_TcpKeepalive{}
	return m.TCPKeepalive
}

func TestKeepAliveMerges(t *testing.T) {
	c := outbound(t, `{"connectionPool":{"tcp":{"tcpKeepalive":{"probes":3}}}}`, func(in *Outbound) {
		in.Mesh.TCPKeepalive = &networking.ConnectionPoolSettings_TCPSettings_TcpKeepalive{}
		if err := protojson.Unmarshal([]byte(`{"probes":9,"time":"75s"}`), in.Mesh.TCPKeepalive); err != nil {
			t.Fatal(err)
		}
	})
	k := c.GetUpstreamConnectionOptions().GetTcpKeepalive()
	if k.GetKeepaliveProbes().GetValue() != 3 || k.GetKeepaliveTime().GetValue() != 75 || k.KeepaliveInterval != nil {
		t.Error("a rule's keepalive stands beside the mesh's: ", k)
	}
	in := Inbound{Port: 80, Source: []string{"127.0.0.6"}, Pool: &networking.ConnectionPoolSettings{}}
	for text, m := range map[string]proto.Message{`{"tcp":{"tcpKeepalive":{"probes":3}}}`: in.Pool, `{"probes":9,"time":"75s"}`: keptAlive(&in.Mesh)} {
		if err := protojson.Unmarshal([]byte(text), m); err != nil {
			t.Fatal(err)
		}
	}
	if behind := BuildInbound(in).GetUpstreamConnectionOptions().GetTcpKeepalive(); !proto.Equal(behind, k) {
		t.Error("behind a port of the workload too: ", behind)
	}
	if c := outbound(t, `{}`, nil); c.UpstreamConnectionOptions != nil {
		t.Error(c.UpstreamConnectionOptions)
	}
}

func TestRetryBudget(t *testing.T) {
	for _, c := range []struct {
		policy          string
		percent         float64
		least, interval int
	}{
		{`{}`, 20, 3, 0},
		{`{"percent":25}`, 25, 3, 0},
		{`{"minRetryConcurrency":7,"budgetInterval":"2s"}`, 20, 7, 2},
	} {
		b := outbound(t, `{"retryBudget":`+c.policy+`}`, nil).CircuitBreakers.Thresholds[0].RetryBudget
		if b.GetBudgetPercent().GetValue() != c.percent || int(b.GetMinRetryConcurrency().GetValue()) != c.least ||
			int(b.GetBudgetInterval().GetSeconds()) != c.interval {
			t.Errorf("%s: %v", c.policy, b)
		}
	}
}

func TestLoadBalancers(t *testing.T) {
	for _, c := range []struct{ policy, want string }{
		{`{"simple":"ROUND_ROBIN"}`, `{}`},
		{`{"simple":"RANDOM"}`, `{"lbPolicy":"RANDOM"}`},
		{`{}`, `{"lbPolicy":"LEAST_REQUEST"}`},
		{`{"warmup":{"duration":"30s"}}`, `{"lbPolicy":"LEAST_REQUEST","leastRequestLbConfig":{"slowStartConfig":{"slowStartWindow":"30s",
			"aggression":{"defaultValue":1,"runtimeKey":"("},"minWeightPercent":{"value":10}}}}`},
		{`{"simple":"ROUND_ROBIN","warmup":{"duration":"30s","aggression":1.5,"minimumPercent":0}}`,
			`{"roundRobinLbConfig":{"slowStartConfig":{"slowStartWindow":"30s","aggression":{"defaultValue":1.5,"runtimeKey":"("},"minWeightPercent":{}}}}`},
		{`{"consistentHash":{"useSourceIp":true}}`, `{"lbPolicy":"RING_HASH","ringHashLbConfig":{"minimumRingSize":"1024"}}`},
		{`{"consistentHash":{"useSourceIp":true,"minimumRingSize":7}}`, `{"lbPolicy":"RING_HASH","ringHashLbConfig":{"minimumRingSize":"7"}}`},
		{`{"consistentHash":{"useSourceIp":true,"ringHash":{}}}`, `{"lbPolicy":"RING_HASH"}`},
		{`{"consistentHash":{"useSourceIp":true,"ringHash":{"minimumRingSize":9}}}`, `{"lbPolicy":"RING_HASH","ringHashLbConfig":{"minimumRingSize":"9"}}`},
		{`{"consistentHash":{"useSourceIp":true,"maglev":{}}}`, `{"lbPolicy":"MAGLEV"}`},
	} {
		made := outbound(t, `{"loadBalancer":`+c.policy+`}`, nil)
		got := &clusterv3.Cluster{LbPolicy: made.LbPolicy, LbConfig: made.LbConfig}
		want := &clusterv3.Cluster{}
		if err := protojson.Unmarshal([]byte(c.want), want); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.policy, got, want)
		}
	}
}

func TestOutliersOfLocalOrigin(t *testing.T) {
	o := outbound(t, `{"outlierDetection":{"splitExternalLocalOriginErrors":true,"consecutiveLocalOriginFailures":0}}`, nil).OutlierDetection
	if !o.SplitExternalLocalOriginErrors || o.ConsecutiveLocalOriginFailure != nil || o.EnforcingConsecutiveLocalOriginFailure != nil {
		t.Error("no failures of local origin are counted unless a number is asked for: ", o)
	}
}

// How few endpoints may be healthy before Envoy sends to all: none, unless a rule says how many.
func TestPanicThreshold(t *testing.T) {
	const never, unsaid = 0, -1
	outliers := func(least string) string { return `{"outlierDetection":{"minHealthPercent":` + least + `}}` }
	near := func(in *Outbound) { in.Service.TrafficDistribution = "PreferClose" }
	dynamic := func(in *Outbound) {
		in.Service.Host, in.Service.Resolution = "*.b", pb.ServiceResolutionDynamicDns
	}
	for name, c := range map[string]struct {
		policy string
		change func(*Outbound)
		want   float64
	}{
		"nothing said":                    {`{}`, nil, never},
		"a share":                         {outliers("30"), nil, 30},
		"a service that prefers":          {outliers("30"), near, never},
		"hosts that are looked up":        {`{}`, dynamic, unsaid},
		"hosts that are looked up, share": {outliers("30"), dynamic, 30},
	} {
		got := float64(unsaid)
		if p := outbound(t, c.policy, c.change).GetCommonLbConfig().GetHealthyPanicThreshold(); p != nil {
			got = p.Value
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A subset goes to the address that the client dialed if it says so or the port does; the service
// is looked up then no more.
func TestOriginalSubset(t *testing.T) {
	rule := &networking.DestinationRule{}
	if err := protojson.Unmarshal([]byte(`{
		"trafficPolicy": {"portLevelSettings": [{"port": {"number": 80}, "loadBalancer": {"simple": "PASSTHROUGH"}}]},
		"subsets": [{"name": "v1", "trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}},
			{"name": "v2", "trafficPolicy": {"loadBalancer": {"simple": "PASSTHROUGH"}}},
			{"name": "v3", "trafficPolicy": {"portLevelSettings": [{"port": {"number": 90}, "loadBalancer": {"simple": "PASSTHROUGH"}}]}}]
	}`), rule); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		subset          string
		port            uint32
		original, plain bool
	}{
		{"", 80, false, false}, {"v1", 80, true, false}, {"v1", 90, false, false}, {"v2", 90, true, true}, {"v3", 90, false, false},
	} {
		if got := OriginalSubset(rule, c.subset, c.port); got != c.original {
			t.Errorf("subset %q at %d: %v", c.subset, c.port, got)
		}
		if got := PassesThrough(&config.Service{}, rule, c.subset); got != c.plain {
			t.Errorf("TLS of subset %q: %v", c.subset, got)
		}
	}
	made := outbound(t, `{"loadBalancer":{"simple":"RANDOM"}}`, func(in *Outbound) {
		in.Original, in.Service.Resolution = true, pb.ServiceResolutionDns
	})
	if made.GetType() != clusterv3.Cluster_ORIGINAL_DST || made.LbPolicy != clusterv3.Cluster_CLUSTER_PROVIDED || made.DnsRefreshRate != nil {
		t.Error(made)
	}
	made = outbound(t, `{"loadBalancer":{"simple":"PASSTHROUGH"}}`, func(in *Outbound) {
		in.Client.Router, in.Service.Resolution = true, pb.ServiceResolutionStatic
	})
	if made.GetType() != clusterv3.Cluster_ORIGINAL_DST || made.EdsClusterConfig != nil {
		t.Error("at a gateway: ", made)
	}
}

func TestPolicyOfSubsetAtPort(t *testing.T) {
	rule := &networking.DestinationRule{}
	if err := protojson.Unmarshal([]byte(`{
		"trafficPolicy": {"proxyProtocol": {"version": "V2"}, "retryBudget": {"percent": 5}, "tls": {"mode": "SIMPLE"},
			"portLevelSettings": [{"port": {"number": 90}, "loadBalancer": {"simple": "RANDOM"}}]},
		"subsets": [{"name": "v1", "trafficPolicy": {"portLevelSettings": [{"port": {"number": 80}, "loadBalancer": {"simple": "ROUND_ROBIN"}}]}}]
	}`), rule); err != nil {
		t.Fatal(err)
	}
	at90 := PolicyFor(rule, "", 90)
	if at90.ProxyProtocol != nil || at90.RetryBudget != nil || at90.Tls != nil {
		t.Error("a port's settings stand alone: ", at90)
	}
	v1 := PolicyFor(rule, "v1", 80)
	if v1.ProxyProtocol == nil || v1.RetryBudget == nil || v1.Tls != nil || v1.GetLoadBalancer().GetSimple() != networking.LoadBalancerSettings_ROUND_ROBIN {
		t.Error("a subset's settings for a port hide what the rule says in such fields, and no more: ", v1)
	}
}

func TestPortOfPassthrough(t *testing.T) {
	none := func(in *Outbound) {
		in.Service.Resolution, in.Service.Ports[0].Target = pb.ServiceResolutionNone, 8443
	}
	c := outbound(t, `{}`, none)
	if c.GetOriginalDstLbConfig().GetUpstreamPortOverride().GetValue() != 8443 {
		t.Error(c.LbConfig)
	}
	if c := outbound(t, `{}`, func(in *Outbound) { none(in); in.Client.Router = true }); c.LbConfig != nil {
		t.Error("a gateway knows the endpoints: ", c.LbConfig)
	}
	behind := Inbound{Port: 8443, Redirect: 8443, Source: []string{"127.0.0.6"}}
	if c := BuildInbound(behind); c.GetOriginalDstLbConfig().GetUpstreamPortOverride().GetValue() != 8443 {
		t.Error("behind the workload's sidecar: ", c.LbConfig)
	}
	behind.Endpoint = "127.0.0.1:8443"
	if c := BuildInbound(behind); c.LbConfig != nil {
		t.Error("an endpoint has a port of its own: ", c.LbConfig)
	}
}

func TestServerNamesKeepTheirOrder(t *testing.T) {
	c := outbound(t, `{"tls":{"mode":"ISTIO_MUTUAL","subjectAltNames":["b","a"]}}`, nil)
	if got := c.GetTransportSocket().GetTypedConfig().String(); got == "" {
		t.Fatal("no TLS")
	}
	v := check([]string{"b", "a"})
	if len(v.MatchSubjectAltNames) != 2 || v.MatchSubjectAltNames[0].GetExact() != "b" {
		t.Error(v)
	}
}

// Answers that a rule calls errors count as such, whatever the port says of its protocol.
func TestErrorCodes(t *testing.T) {
	for _, c := range []struct {
		codes    []uint32
		protocol config.Protocol
		want     int
	}{
		{nil, config.HTTP, 0}, {[]uint32{429}, config.HTTP, 1}, {[]uint32{429, 503}, config.GRPC, 2}, {[]uint32{429, 503}, config.Sniffed, 2},
		{[]uint32{429, 503}, config.TCP, 2},
	} {
		in := Outbound{
			Name: Name{Port: 80, Host: "a"}, Service: &config.Service{Service: pb.Service{Host: "a"}}, Protocol: c.protocol,
			Policy: &networking.TrafficPolicy{OutlierDetection: &networking.OutlierDetection{OutlierDetectionHttpErrorCodes: c.codes}},
		}
		o := &http.HttpProtocolOptions{}
		if any := BuildOutbound(in).TypedExtensionProtocolOptions[httpOptionsKey]; any != nil {
			if err := any.UnmarshalTo(o); err != nil {
				t.Fatal(err)
			}
		}
		m := o.GetOutlierDetection().GetErrorMatcher()
		got := len(m.GetOrMatch().GetRules())
		if h := m.GetHttpResponseHeadersMatch().GetHeaders(); len(h) == 1 && h[0].Name == ":status" && h[0].GetStringMatch().GetExact() == "429" {
			got = 1
		}
		if got != c.want {
			t.Errorf("%v for %v: %v", c.codes, c.protocol, m)
		}
	}
}
