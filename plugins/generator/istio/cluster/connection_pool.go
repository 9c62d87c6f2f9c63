package cluster

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// dnsJitter spreads the lookups of many proxies.
const dnsJitter = 100 * time.Millisecond

// httpOptions gathers what is said of HTTP towards a cluster's endpoints.
type httpOptions struct {
	common   *core.HttpProtocolOptions
	http2    *core.Http2ProtocolOptions
	upstream *core.UpstreamHttpProtocolOptions
	// errors are the answers that count as errors of an endpoint; nil: those that Envoy takes for
	// some.
	errors *http.HttpProtocolOptions_OutlierDetection
	// upgrade: speak HTTP/2 although the port says HTTP/1.1; client: speak as the client does.
	upgrade, client bool
	// sniffs: what is spoken to endpoints of a port that says nothing is what the client spoke.
	sniffs bool
}

// isHTTP2 reports whether HTTP/2 is all that is spoken.
func (h *httpOptions) isHTTP2(p config.Protocol) bool { return !h.client && (h.upgrade || p.IsHTTP2()) }

func (in *Outbound) connectionPool(c *clusterv3.Cluster) httpOptions {
	pool := in.Policy.GetConnectionPool()
	thresholds := c.CircuitBreakers.Thresholds[0]
	in.tcpSettings(c, pool.GetTcp(), thresholds)
	h := pool.GetHttp()
	atLeastOne(&thresholds.MaxPendingRequests, h.GetHttp1MaxPendingRequests())
	atLeastOne(&thresholds.MaxRequests, h.GetHttp2MaxRequests())
	atLeastOne(&thresholds.MaxRetries, h.GetMaxRetries())
	if b := in.Policy.GetRetryBudget(); b != nil {
		thresholds.RetryBudget = retryBudget(b)
	}
	return httpOptions{
		common:  commonOptions(pool),
		errors:  errorsOf(in.Policy.GetOutlierDetection()),
		http2:   http2Options(h),
		upgrade: in.upgrades(h),
		client:  h.GetUseClientProtocol(),
		sniffs:  !in.Client.Router,
	}
}

func (in *Outbound) tcpSettings(c *clusterv3.Cluster, t *networking.ConnectionPoolSettings_TCPSettings, limits *clusterv3.CircuitBreakers_Thresholds) {
	if t.GetConnectTimeout() != nil {
		c.ConnectTimeout = t.ConnectTimeout
	}
	atLeastOne(&limits.MaxConnections, t.GetMaxConnections())
	if alive := keepAlive(in.Mesh.TCPKeepalive, t.GetTcpKeepalive()); alive != nil {
		c.UpstreamConnectionOptions = &clusterv3.UpstreamConnectionOptions{TcpKeepalive: alive}
	}
}

// keepAlive are the probes that the first of the settings asks for, with what later ones say
// instead; nil where none says anything.
func keepAlive(settings ...*networking.ConnectionPoolSettings_TCPSettings_TcpKeepalive) *core.TcpKeepalive {
	var out *core.TcpKeepalive
	for _, s := range settings {
		if s == nil {
			continue
		}
		if out == nil {
			out = &core.TcpKeepalive{}
		}
		atLeastOne(&out.KeepaliveProbes, int32(s.Probes))
		out.KeepaliveTime = or(seconds(s.Time), out.KeepaliveTime)
		out.KeepaliveInterval = or(seconds(s.Interval), out.KeepaliveInterval)
	}
	return out
}

// upgrades reports whether HTTP/2 is spoken although the port doesn't say so: a rule is believed
// for any port, the mesh for those that say HTTP.
func (in *Outbound) upgrades(h *networking.ConnectionPoolSettings_HTTPSettings) bool {
	switch h.GetH2UpgradePolicy() {
	case networking.ConnectionPoolSettings_HTTPSettings_UPGRADE:
		return true
	case networking.ConnectionPoolSettings_HTTPSettings_DO_NOT_UPGRADE:
		return false
	}
	return in.Mesh.UpgradeHTTP2 && in.Protocol.IsHTTP()
}

func commonOptions(pool *networking.ConnectionPoolSettings) *core.HttpProtocolOptions {
	out := &core.HttpProtocolOptions{
		IdleTimeout:           or(pool.GetHttp().GetIdleTimeout(), pool.GetTcp().GetIdleTimeout()),
		MaxConnectionDuration: pool.GetTcp().GetMaxConnectionDuration(),
	}
	if n := pool.GetHttp().GetMaxRequestsPerConnection(); n > 0 {
		out.MaxRequestsPerConnection = wrapperspb.UInt32(uint32(n))
	}
	if proto.Size(out) == 0 && pool.GetHttp().GetMaxConcurrentStreams() <= 0 && pool.GetHttp().GetHttp2KeepAlive() == nil {
		return nil
	}
	return out
}

func http2Options(h *networking.ConnectionPoolSettings_HTTPSettings) *core.Http2ProtocolOptions {
	out := &core.Http2ProtocolOptions{}
	if n := h.GetMaxConcurrentStreams(); n > 0 {
		out.MaxConcurrentStreams = wrapperspb.UInt32(uint32(n))
	}
	if k := h.GetHttp2KeepAlive(); k != nil {
		out.ConnectionKeepalive = &core.KeepaliveSettings{Interval: k.Interval, Timeout: k.Timeout}
	}
	return out
}

// finish is the whole, nil where nothing was said.
func (h *httpOptions) finish(p config.Protocol) *http.HttpProtocolOptions {
	if p == config.Sniffed && !h.sniffs {
		p = config.TCP
	}
	out := upstreamHTTP(p)
	switch {
	case h.client:
		out = &http.HttpProtocolOptions{UpstreamProtocolOptions: downstreamProtocol()}
	case h.upgrade:
		out = &http.HttpProtocolOptions{UpstreamProtocolOptions: onlyHTTP2()}
	case out == nil && (h.common != nil || h.upstream != nil || h.errors != nil):
		out = &http.HttpProtocolOptions{UpstreamProtocolOptions: onlyHTTP1()}
	}
	if out == nil {
		return nil
	}
	out.CommonHttpProtocolOptions = h.common
	out.UpstreamHttpProtocolOptions = h.upstream
	out.OutlierDetection = h.errors
	if e, ok := out.GetExplicitHttpConfig().GetProtocolConfig().(*http.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions); ok {
		e.Http2ProtocolOptions = h.http2
	}
	return out
}

func onlyHTTP1() *http.HttpProtocolOptions_ExplicitHttpConfig_ {
	return &http.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &http.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &http.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: &core.Http1ProtocolOptions{}},
	}}
}

// Budgets of retries that say nothing have istiod's share and number.
const (
	defaultBudget  = 20 // percent
	defaultRetries = 3
)

func retryBudget(b *networking.TrafficPolicy_RetryBudget) *clusterv3.CircuitBreakers_Thresholds_RetryBudget {
	out := &clusterv3.CircuitBreakers_Thresholds_RetryBudget{
		BudgetPercent:       &typev3.Percent{Value: defaultBudget},
		MinRetryConcurrency: wrapperspb.UInt32(defaultRetries),
		BudgetInterval:      b.BudgetInterval,
	}
	if b.Percent != nil {
		out.BudgetPercent.Value = b.Percent.Value
	}
	if b.MinRetryConcurrency > 0 {
		out.MinRetryConcurrency = wrapperspb.UInt32(b.MinRetryConcurrency)
	}
	return out
}

func atLeastOne(limit **wrapperspb.UInt32Value, n int32) {
	if n > 0 {
		*limit = wrapperspb.UInt32(uint32(n))
	}
}

func seconds(d *durationpb.Duration) *wrapperspb.UInt32Value {
	if d == nil {
		return nil
	}
	return wrapperspb.UInt32(uint32(d.Seconds))
}
