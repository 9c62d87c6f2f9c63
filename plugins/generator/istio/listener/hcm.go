package listener

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	uuid "github.com/envoyproxy/go-control-plane/envoy/extensions/request_id/uuid/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// connectionManager is what all HTTP chains have in common.
func connectionManager(p Reporting, statPrefix string, filters []*hcm.HttpFilter) *hcm.HttpConnectionManager {
	byID := p.Reports == nil || p.Reports.Tracing == nil || !p.Reports.Tracing.NoRequestID
	out := &hcm.HttpConnectionManager{
		StatPrefix:        statPrefix + ";",
		HttpFilters:       filters,
		Proxy_100Continue: true,
		UseRemoteAddress:  wrapperspb.Bool(false),
		StreamIdleTimeout: durationpb.New(0),
		UpgradeConfigs:    []*hcm.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		RequestIdExtension: &hcm.RequestIDExtension{
			TypedConfig: encode.Any(&uuid.UuidRequestIdConfig{UseRequestIdForTraceSampling: wrapperspb.Bool(byID)}),
		},
		Tracing: p.tracing(),
	}
	if p.Reports != nil {
		out.AccessLog = p.Reports.Requests
	}
	p.Settings.manage(out)
	normalize(out, p.Paths)
	return out
}

// throughRDS reads routes from a route configuration on the stream.
func throughRDS(name string) *hcm.HttpConnectionManager_Rds {
	return &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{
		RouteConfigName: name,
		ConfigSource: &core.ConfigSource{
			ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
			InitialFetchTimeout:   durationpb.New(0),
			ResourceApiVersion:    core.ApiVersion_V3,
		},
	}}
}

func inline(c *routev3.RouteConfiguration) *hcm.HttpConnectionManager_RouteConfig {
	return &hcm.HttpConnectionManager_RouteConfig{RouteConfig: c}
}

// receiving adds what a server tells the application about who called.
func receiving(m *hcm.HttpConnectionManager, mode hcm.HttpConnectionManager_ForwardClientCertDetails, certificate bool) {
	if m.ServerName == "" && m.ServerHeaderTransformation == hcm.HttpConnectionManager_OVERWRITE {
		m.ServerName = serverName
	}
	m.ForwardClientCertDetails = mode
	m.SetCurrentClientCertDetails = &hcm.HttpConnectionManager_SetCurrentClientCertDetails{
		Subject: wrapperspb.Bool(true), Uri: true, Dns: true, Cert: certificate,
	}
}

// finished is a connection manager as a filter, with the limits that the proxy's settings have.
func (s *Settings) finished(m *hcm.HttpConnectionManager) *listenerv3.Filter {
	s.limit(m)
	return managerFilter(m)
}

func managerFilter(m *hcm.HttpConnectionManager) *listenerv3.Filter {
	return networkFilter("envoy.filters.network.http_connection_manager", m)
}
