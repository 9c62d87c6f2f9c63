package listener

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshv1 "istio.io/api/mesh/v1alpha1"
)

// ConnectionSettings are limits and timeouts of a proxy's connections (Istio API,
// ProxyConfig.ConnectionSettings).
type ConnectionSettings = meshv1.ProxyConfig_ConnectionSettings

// Connections are the settings of a proxy: its own, or else the mesh's. Where they ask for the
// profile EDGE, what they leave out is what Envoy recommends for gateways at the edge; that profile
// counts for gateways alone. nil without any.
func Connections(own, mesh *meshv1.ProxyConfig, router bool) *ConnectionSettings {
	s := own.GetConnectionSettings()
	if s == nil {
		s = mesh.GetConnectionSettings()
	}
	if !router || s.GetProfile() != meshv1.ProxyConfig_ConnectionSettings_EDGE {
		return s
	}
	out := edgeDefaults()
	given := proto.CloneOf(s)
	proto.Merge(out, given)
	for _, d := range []struct{ to, from **durationpb.Duration }{ // a merge would join seconds of one with nanoseconds of the other
		{&out.HttpIdleTimeout, &given.HttpIdleTimeout}, {&out.HttpStreamIdleTimeout, &given.HttpStreamIdleTimeout},
		{&out.HttpRequestTimeout, &given.HttpRequestTimeout}, {&out.HttpRequestHeadersTimeout, &given.HttpRequestHeadersTimeout},
	} {
		if *d.from != nil {
			*d.to = *d.from
		}
	}
	for _, n := range []struct{ to, from **wrapperspb.Int32Value }{ // nor would it take a zero
		{&out.ListenerPerConnectionBufferLimitBytes, &given.ListenerPerConnectionBufferLimitBytes},
		{&out.ClusterPerConnectionBufferLimitBytes, &given.ClusterPerConnectionBufferLimitBytes},
		{&out.HttpMaxConcurrentStreams, &given.HttpMaxConcurrentStreams},
		{&out.Http2InitialStreamWindowSize, &given.Http2InitialStreamWindowSize},
		{&out.Http2InitialConnectionWindowSize, &given.Http2InitialConnectionWindowSize},
	} {
		if *n.from != nil {
			*n.to = *n.from
		}
	}
	if given.HttpMergeSlashes != nil {
		out.HttpMergeSlashes = given.HttpMergeSlashes
	}
	return out
}

// edgeDefaults are those of the profile EDGE.
func edgeDefaults() *ConnectionSettings {
	return &ConnectionSettings{
		ListenerPerConnectionBufferLimitBytes: wrapperspb.Int32(32 << 10),
		ClusterPerConnectionBufferLimitBytes:  wrapperspb.Int32(32 << 10),
		HttpIdleTimeout:                       &durationpb.Duration{Seconds: 3600},
		HttpStreamIdleTimeout:                 &durationpb.Duration{Seconds: 300},
		HttpRequestTimeout:                    &durationpb.Duration{Seconds: 300},
		HttpRequestHeadersTimeout:             &durationpb.Duration{Seconds: 60},
		HttpMaxConcurrentStreams:              wrapperspb.Int32(100),
		Http2InitialStreamWindowSize:          wrapperspb.Int32(64 << 10),
		Http2InitialConnectionWindowSize:      wrapperspb.Int32(1 << 20),
		HttpHeadersWithUnderscoresAction:      meshv1.ProxyConfig_ConnectionSettings_HEADERS_WITH_UNDERSCORES_REJECT_REQUEST,
		HttpMergeSlashes:                      wrapperspb.Bool(true),
		HttpPathWithEscapedSlashesAction:      meshv1.ProxyConfig_ConnectionSettings_UNESCAPE_AND_REDIRECT,
	}
}

// limitOf reads a number that may be absent; what is below zero counts as absent.
func limitOf(v *wrapperspb.Int32Value) *wrapperspb.UInt32Value {
	if v == nil || v.Value < 0 {
		return nil
	}
	return wrapperspb.UInt32(uint32(v.Value))
}

// buffer is how much of a connection's bytes a gateway's listener holds. As in istiod, sidecars'
// listeners and clusters keep Envoy's default.
func (s *Settings) buffer() *wrapperspb.UInt32Value {
	return limitOf(s.config().GetConnectionSettings().GetListenerPerConnectionBufferLimitBytes())
}

// limit puts the settings into an HTTP connection manager; where they say something, they count
// more than the mesh's other settings.
func (s *Settings) limit(m *hcm.HttpConnectionManager) {
	c := s.config().GetConnectionSettings()
	if c == nil {
		return
	}
	replace(&m.StreamIdleTimeout, c.HttpStreamIdleTimeout)
	replace(&m.RequestTimeout, c.HttpRequestTimeout)
	replace(&m.RequestHeadersTimeout, c.HttpRequestHeadersTimeout)
	replace(&m.DrainTimeout, c.HttpDrainTimeout)
	limitRequests(m, c)
	limitStreams(m, c)
	if c.HttpMergeSlashes != nil {
		m.MergeSlashes = c.HttpMergeSlashes.Value
	}
	switch c.HttpPathWithEscapedSlashesAction {
	case meshv1.ProxyConfig_ConnectionSettings_KEEP_UNCHANGED:
		m.PathWithEscapedSlashesAction = hcm.HttpConnectionManager_KEEP_UNCHANGED
	case meshv1.ProxyConfig_ConnectionSettings_REJECT_REQUEST:
		m.PathWithEscapedSlashesAction = hcm.HttpConnectionManager_REJECT_REQUEST
	case meshv1.ProxyConfig_ConnectionSettings_UNESCAPE_AND_REDIRECT:
		m.PathWithEscapedSlashesAction = hcm.HttpConnectionManager_UNESCAPE_AND_REDIRECT
	case meshv1.ProxyConfig_ConnectionSettings_UNESCAPE_AND_FORWARD:
		m.PathWithEscapedSlashesAction = hcm.HttpConnectionManager_UNESCAPE_AND_FORWARD
	}
}

func limitRequests(m *hcm.HttpConnectionManager, c *ConnectionSettings) {
	underscores := c.HttpHeadersWithUnderscoresAction
	if c.HttpIdleTimeout == nil && c.HttpMaxConnectionDuration == nil && c.HttpMaxStreamDuration == nil &&
		underscores == meshv1.ProxyConfig_ConnectionSettings_HEADERS_WITH_UNDERSCORES_UNSPECIFIED {
		return
	}
	if m.CommonHttpProtocolOptions == nil {
		m.CommonHttpProtocolOptions = &core.HttpProtocolOptions{}
	}
	o := m.CommonHttpProtocolOptions
	replace(&o.IdleTimeout, c.HttpIdleTimeout)
	replace(&o.MaxConnectionDuration, c.HttpMaxConnectionDuration)
	replace(&o.MaxStreamDuration, c.HttpMaxStreamDuration)
	switch underscores {
	case meshv1.ProxyConfig_ConnectionSettings_HEADERS_WITH_UNDERSCORES_REJECT_REQUEST:
		o.HeadersWithUnderscoresAction = core.HttpProtocolOptions_REJECT_REQUEST
	case meshv1.ProxyConfig_ConnectionSettings_HEADERS_WITH_UNDERSCORES_DROP_HEADER:
		o.HeadersWithUnderscoresAction = core.HttpProtocolOptions_DROP_HEADER
	}
}

func limitStreams(m *hcm.HttpConnectionManager, c *ConnectionSettings) {
	if c.HttpMaxConcurrentStreams == nil && c.Http2InitialStreamWindowSize == nil && c.Http2InitialConnectionWindowSize == nil {
		return
	}
	if m.Http2ProtocolOptions == nil {
		m.Http2ProtocolOptions = &core.Http2ProtocolOptions{}
	}
	replace(&m.Http2ProtocolOptions.MaxConcurrentStreams, atLeast(1, c.HttpMaxConcurrentStreams))
	replace(&m.Http2ProtocolOptions.InitialStreamWindowSize, atLeast(leastWindow, c.Http2InitialStreamWindowSize))
	replace(&m.Http2ProtocolOptions.InitialConnectionWindowSize, atLeast(leastWindow, c.Http2InitialConnectionWindowSize))
}

// leastWindow is the smallest window that Envoy takes (Http2ProtocolOptions).
const leastWindow = 65535

// atLeast reads a number that may be absent; what is below the least that Envoy takes counts as
// absent.
func atLeast(least int32, v *wrapperspb.Int32Value) *wrapperspb.UInt32Value {
	if v.GetValue() < least {
		return nil
	}
	return limitOf(v)
}

func replace[T any](field **T, by *T) {
	if by != nil {
		*field = by
	}
}
