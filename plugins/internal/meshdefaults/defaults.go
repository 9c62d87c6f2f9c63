// Package meshdefaults has what the settings of a mesh are where nobody says otherwise.
package meshdefaults

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	api "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

// Defaults returns what counts where nobody says otherwise: what istiod serves without a mesh file.
// The fields' meanings and most of the values are documented in istio.io/api/mesh/v1alpha1.
func Defaults() *api.MeshConfig {
	everywhere := func() []string { return []string{"*"} }
	return &api.MeshConfig{
		RootNamespace: "istio-system",
		TrustDomain:   "cluster.local",

		ProxyListenPort:          15001,
		ProxyInboundListenPort:   15006,
		ConnectTimeout:           durationpb.New(10 * time.Second),
		ProtocolDetectionTimeout: durationpb.New(0),
		DnsRefreshRate:           durationpb.New(time.Minute),
		EnableAutoMtls:           wrapperspb.Bool(true),
		LocalityLbSetting:        &networking.LocalityLoadBalancerSetting{Enabled: wrapperspb.Bool(true)},
		OutboundTrafficPolicy: &api.MeshConfig_OutboundTrafficPolicy{
			Mode: api.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY,
		},
		InboundTrafficPolicy: &api.MeshConfig_InboundTrafficPolicy{
			Mode: api.MeshConfig_InboundTrafficPolicy_PASSTHROUGH,
		},

		DefaultServiceExportTo:         everywhere(),
		DefaultVirtualServiceExportTo:  everywhere(),
		DefaultDestinationRuleExportTo: everywhere(),

		IngressClass:          "istio",
		IngressService:        "istio-ingressgateway",
		IngressControllerMode: api.MeshConfig_STRICT,

		EnableTracing:         true,
		EnablePrometheusMerge: wrapperspb.Bool(true),
		AccessLogEncoding:     api.MeshConfig_TEXT,
		DefaultProviders:      &api.MeshConfig_DefaultProviders{},
		ExtensionProviders:    defaultProviders(),

		DefaultConfig: defaultProxyConfig(),
	}
}

// defaultProxyConfig is what proxies get without settings of their own.
func defaultProxyConfig() *api.ProxyConfig {
	return &api.ProxyConfig{
		ConfigPath:               "./etc/istio/proxy",
		BinaryPath:               "/usr/local/bin/envoy",
		ClusterName:              &api.ProxyConfig_ServiceCluster{ServiceCluster: "istio-proxy"},
		DiscoveryAddress:         "istiod.istio-system.svc:15012",
		ControlPlaneAuthPolicy:   api.AuthenticationPolicy_MUTUAL_TLS,
		DrainDuration:            durationpb.New(45 * time.Second),
		TerminationDrainDuration: durationpb.New(5 * time.Second),
		ProxyAdminPort:           15000,
		StatusPort:               15020,
		StatNameLength:           189,
	}
}

// defaultProviders are the extension providers that can be named without being declared.
func defaultProviders() []*api.MeshConfig_ExtensionProvider {
	type provider = api.MeshConfig_ExtensionProvider
	return []*provider{
		{Name: "prometheus", Provider: &api.MeshConfig_ExtensionProvider_Prometheus{
			Prometheus: &api.MeshConfig_ExtensionProvider_PrometheusMetricsProvider{},
		}},
		{Name: "stackdriver", Provider: &api.MeshConfig_ExtensionProvider_Stackdriver{
			Stackdriver: &api.MeshConfig_ExtensionProvider_StackdriverProvider{},
		}},
		{Name: "envoy", Provider: &api.MeshConfig_ExtensionProvider_EnvoyFileAccessLog{
			EnvoyFileAccessLog: &api.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider{Path: "/dev/stdout"},
		}},
	}
}
