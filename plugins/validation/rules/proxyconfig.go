package rules

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	mesh "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// ProxyAnnotation returns what no proxy could run with of a document of annotation
// proxy.istio.io/config, with its line. As with istiod, Istio's defaults count for what it leaves
// out, whatever the mesh's are. What can't be read of it is for the caller to tell.
func ProxyAnnotation(root *yaml.Node) error {
	p := meshdefaults.Defaults().DefaultConfig
	protoyaml.Decode(root, "", p)
	for _, f := range Check(finding.Resource{Spec: p}) {
		if f.Severity != finding.Error {
			continue
		}
		hint := ""
		if f.Hint != "" {
			hint = "; " + f.Hint
		}
		return fmt.Errorf("line %d: %s: %s%s", protoyaml.Locate(root, f.Field).Line, f.Field, f.Message, hint)
	}
	return nil
}

// proxyConfig checks settings of proxies.
func (c *checker) proxyConfig(at path, p *mesh.ProxyConfig) {
	if p.ConfigPath == "" {
		c.fail(missingSetting, at.field("configPath"), "config path must be set")
	}
	if p.BinaryPath == "" {
		c.fail(missingSetting, at.field("binaryPath"), "binary path must be set")
	}
	if name, ok := p.ClusterName.(*mesh.ProxyConfig_ServiceCluster); p.ClusterName == nil || ok && name.ServiceCluster == "" {
		c.fail(missingSetting, at.field("serviceCluster"), "oneof service cluster or tracing service name must be specified")
	}
	if p.DrainDuration == nil {
		c.fail(missingSetting, at.field("drainDuration"), "invalid drain duration: it must be set")
	} else {
		c.precise(at.field("drainDuration"), p.DrainDuration, time.Second)
	}
	c.duration(at.field("terminationDrainDuration"), p.TerminationDrainDuration, true)
	if p.GetConcurrency().GetValue() < 0 {
		c.fail(badNumber, at.field("concurrency"), "concurrency must be greater than or equal to 0")
	}
	if p.ControlPlaneAuthPolicy == mesh.AuthenticationPolicy_INHERIT {
		c.fail(missingSetting, at.field("controlPlaneAuthPolicy"), "INHERIT has nothing to inherit from here").
			hint("write NONE or MUTUAL_TLS, or leave it out")
	}
	c.connectionSettings(at.field("connectionSettings"), p.ConnectionSettings)
	c.proxyAddresses(at, p)
	c.proxyTracing(at.field("tracing"), p.Tracing)
	c.keyProvider(at.field("privateKeyProvider"), p.PrivateKeyProvider)
	c.statsMatcher(at.field("proxyStatsMatcher"), p.ProxyStatsMatcher)
	if p.ReadinessProbe != nil {
		c.probe(at.field("readinessProbe"), p.ReadinessProbe)
	}
	if p.ProxyMetadata["ISTIO_META_DNS_AUTO_ALLOCATE"] != "" {
		c.obsolete(at.field("proxyMetadata").key("ISTIO_META_DNS_AUTO_ALLOCATE"), "addresses are given to ServiceEntries by the control plane")
	}
}

// connectionSettings checks limits of connections. Source: Istio API,
// ProxyConfig.ConnectionSettings.
func (c *checker) connectionSettings(at path, s *mesh.ProxyConfig_ConnectionSettings) {
	for _, f := range []struct {
		field string
		value *wrapperspb.Int32Value
		least int32
	}{
		{"listenerPerConnectionBufferLimitBytes", s.GetListenerPerConnectionBufferLimitBytes(), 0},
		{"clusterPerConnectionBufferLimitBytes", s.GetClusterPerConnectionBufferLimitBytes(), 0},
		{"httpMaxConcurrentStreams", s.GetHttpMaxConcurrentStreams(), 1},
		{"http2InitialStreamWindowSize", s.GetHttp2InitialStreamWindowSize(), 65535},
		{"http2InitialConnectionWindowSize", s.GetHttp2InitialConnectionWindowSize(), 65535},
		{"listenerConnectionLimit", s.GetListenerConnectionLimit(), 1},
		{"globalDownstreamConnectionLimit", s.GetGlobalDownstreamConnectionLimit(), 1},
	} {
		if f.value != nil && f.value.Value < f.least {
			c.fail(badNumber, at.field(f.field), "it must be at least %d, not %d", f.least, f.value.Value).
				hint("leave it out for Envoy's own default")
		}
	}
	for _, f := range []struct {
		field string
		value *durationpb.Duration
	}{
		{"httpIdleTimeout", s.GetHttpIdleTimeout()},
		{"httpMaxConnectionDuration", s.GetHttpMaxConnectionDuration()},
		{"httpDrainTimeout", s.GetHttpDrainTimeout()},
		{"httpRequestTimeout", s.GetHttpRequestTimeout()},
		{"httpRequestHeadersTimeout", s.GetHttpRequestHeadersTimeout()},
		{"httpStreamIdleTimeout", s.GetHttpStreamIdleTimeout()},
		{"httpMaxStreamDuration", s.GetHttpMaxStreamDuration()},
	} {
		if f.value.AsDuration() < 0 {
			c.fail(badDuration, at.field(f.field), "it must not be below 0, as %s is", f.value.AsDuration())
		}
	}
}

func (c *checker) proxyAddresses(at path, p *mesh.ProxyConfig) {
	if p.DiscoveryAddress == "" {
		c.fail(missingSetting, at.field("discoveryAddress"), "discovery address must be set to the proxy discovery service")
	} else {
		c.hostPort(at.field("discoveryAddress"), p.DiscoveryAddress)
	}
	for _, f := range []struct{ field, address string }{
		{"statsdUdpAddress", p.StatsdUdpAddress},
		{"envoyMetricsServiceAddress", p.EnvoyMetricsServiceAddress}, //lint:ignore SA1019 people still set it
		{"envoyMetricsService", p.GetEnvoyMetricsService().GetAddress()},
		{"envoyAccessLogService", p.GetEnvoyAccessLogService().GetAddress()},
	} {
		if f.address != "" {
			c.hostPort(at.field(f.field), f.address)
		}
	}
	c.clientTLS(at.field("envoyMetricsService").field("tlsSettings"), p.GetEnvoyMetricsService().GetTlsSettings())
	c.clientTLS(at.field("envoyAccessLogService").field("tlsSettings"), p.GetEnvoyAccessLogService().GetTlsSettings())
	c.meshPort(at.field("proxyAdminPort"), p.ProxyAdminPort)
	c.meshPort(at.field("statusPort"), p.StatusPort)
}

func (c *checker) proxyTracing(at path, t *mesh.Tracing) {
	if t == nil {
		return
	}
	switch tracer := t.Tracer.(type) {
	case *mesh.Tracing_Zipkin_:
		c.hostPort(at.field("zipkin").field("address"), tracer.Zipkin.GetAddress())
	case *mesh.Tracing_Lightstep_:
		here := at.field("lightstep")
		c.hostPort(here.field("address"), tracer.Lightstep.GetAddress())
		if tracer.Lightstep.GetAccessToken() == "" {
			c.fail(missingSetting, here.field("accessToken"), "access token is required")
		}
	case *mesh.Tracing_Datadog_:
		c.hostPort(at.field("datadog").field("address"), tracer.Datadog.GetAddress())
	}
	c.percent(at.field("sampling"), t.Sampling)
	for _, name := range sorted(t.CustomTags) {
		if t.CustomTags[name].GetType() == nil {
			c.fail(badTag, at.field("customTags").key(name), "tag '%s' may not have a nil value", name).hint("give it one of literal, environment and header")
		}
	}
	c.clientTLS(at.field("tlsSettings"), t.TlsSettings)
}

func (c *checker) keyProvider(at path, p *mesh.PrivateKeyProvider) {
	if p == nil {
		return
	}
	switch provider := p.Provider.(type) {
	case *mesh.PrivateKeyProvider_Cryptomb:
		c.pollDelay(at.field("cryptomb").field("pollDelay"), provider.Cryptomb.GetPollDelay())
	case *mesh.PrivateKeyProvider_Qat:
		c.pollDelay(at.field("qat").field("pollDelay"), provider.Qat.GetPollDelay())
	default:
		c.fail(missingSetting, at, "private key provider must be set").hint("write cryptomb or qat")
	}
}

func (c *checker) statsMatcher(at path, m *mesh.ProxyConfig_ProxyStatsMatcher) {
	for i, pattern := range m.GetInclusionRegexps() {
		c.regex(at.field("inclusionRegexps").index(i), pattern)
	}
}
