package listener

import (
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	proxyprotocol "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	preservecase "github.com/envoyproxy/go-control-plane/envoy/extensions/http/header_formatters/preserve_case/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// serverName is what proxies call themselves towards clients.
const serverName = "istio-envoy"

// Settings are those that a proxy has of its own, or that the mesh has for it.
type Settings struct {
	// Config is its ProxyConfig, as EncodeConfig makes it.
	Config string
	// HTTP10: requests of HTTP/1.0 are taken.
	HTTP10 bool
	// IdleTimeout of connections, if the proxy says one (Timed).
	IdleTimeout time.Duration
	Timed       bool
	// Balanced: connections are shared out evenly among the proxy's threads.
	BalancedInbound, BalancedOutbound bool
	// Detection is how long to wait for a client's first bytes where they decide something; for
	// ever if 0.
	Detection time.Duration
}

// EncodeConfig keeps of a ProxyConfig what listeners depend on, so that it can be compared.
func EncodeConfig(c *meshv1.ProxyConfig) string {
	out := &meshv1.ProxyConfig{
		ProxyHeaders: c.GetProxyHeaders(), GatewayTopology: c.GetGatewayTopology(), ConnectionSettings: c.GetConnectionSettings(),
	}
	if t := c.GetTracing(); t != nil {
		out.Tracing = &meshv1.Tracing{
			CustomTags: t.CustomTags, MaxPathTagLength: t.MaxPathTagLength, Sampling: t.Sampling, EnableIstioTags: t.EnableIstioTags,
		}
	}
	return string(encode.Bytes(out))
}

func (s *Settings) config() *meshv1.ProxyConfig {
	out := &meshv1.ProxyConfig{}
	if err := proto.Unmarshal([]byte(s.Config), out); err != nil {
		return &meshv1.ProxyConfig{}
	}
	return out
}

func (s *Settings) headers() *meshv1.ProxyConfig_ProxyHeaders { return s.config().ProxyHeaders }

// manage adds what the proxy's settings say of all requests.
func (s *Settings) manage(m *hcm.HttpConnectionManager) {
	h := s.headers()
	if h.GetServer().GetDisabled().GetValue() {
		m.ServerHeaderTransformation = hcm.HttpConnectionManager_PASS_THROUGH
	} else {
		m.ServerName = h.GetServer().GetValue()
	}
	if h.GetRequestId().GetDisabled().GetValue() {
		m.GenerateRequestId = wrapperspb.Bool(false)
	}
	m.AppendXForwardedPort = h.GetXForwardedPort().GetEnabled().GetValue()
	if s.Timed {
		m.CommonHttpProtocolOptions = &core.HttpProtocolOptions{IdleTimeout: durationpb.New(s.IdleTimeout)}
	}
	preserve := h.GetPreserveHttp1HeaderCase().GetValue()
	if !s.HTTP10 && !preserve {
		return
	}
	m.HttpProtocolOptions = &core.Http1ProtocolOptions{AcceptHttp_10: s.HTTP10}
	if preserve {
		m.HttpProtocolOptions.HeaderKeyFormat = sameCase()
	}
}

// allowAbsolute takes requests whose line has a whole URL.
func allowAbsolute(m *hcm.HttpConnectionManager) {
	if m.HttpProtocolOptions == nil {
		m.HttpProtocolOptions = &core.Http1ProtocolOptions{}
	}
	if m.HttpProtocolOptions.HeaderKeyFormat == nil { // as istiod has it: what keeps the case of names stands alone
		m.HttpProtocolOptions.AllowAbsoluteUrl = wrapperspb.Bool(true)
	}
}

// sameCase keeps the case in which names of headers came.
func sameCase() *core.Http1ProtocolOptions_HeaderKeyFormat {
	return &core.Http1ProtocolOptions_HeaderKeyFormat{
		HeaderFormat: &core.Http1ProtocolOptions_HeaderKeyFormat_StatefulFormatter{
			StatefulFormatter: &core.TypedExtensionConfig{
				Name: "preserve_case", TypedConfig: encode.Any(&preservecase.PreserveCaseFormatterConfig{}),
			},
		},
	}
}

// certificates says what a sidecar tells its workload of the client's certificate.
func (s *Settings) certificates(m *hcm.HttpConnectionManager) {
	h := s.headers()
	if f, ok := forwarding(h.GetForwardedClientCert()); ok {
		m.ForwardClientCertDetails = f
	}
	d := h.GetSetCurrentClientCertDetails()
	if d == nil {
		return
	}
	is := func(b *wrapperspb.BoolValue, otherwise bool) bool { return b == nil && otherwise || b.GetValue() }
	m.SetCurrentClientCertDetails = &hcm.HttpConnectionManager_SetCurrentClientCertDetails{
		Cert: is(d.Cert, false), Chain: is(d.Chain, false), Dns: is(d.Dns, true), Uri: is(d.Uri, true),
	}
	m.SetCurrentClientCertDetails.Subject = wrapperspb.Bool(is(d.Subject, true))
}

// edge says how many proxies in front of a gateway are trusted, and what becomes of what they say
// of their clients' certificates.
func (s *Settings) edge(m *hcm.HttpConnectionManager) {
	t := s.config().GatewayTopology
	m.XffNumTrustedHops = t.GetNumTrustedProxies()
	f, ok := forwarding(t.GetForwardClientCertDetails())
	if !ok {
		return
	}
	m.ForwardClientCertDetails = f
	if f != hcm.HttpConnectionManager_APPEND_FORWARD && f != hcm.HttpConnectionManager_SANITIZE_SET {
		m.SetCurrentClientCertDetails = nil
	}
}

func forwarding(f meshv1.ForwardClientCertDetails) (hcm.HttpConnectionManager_ForwardClientCertDetails, bool) {
	switch f {
	case meshv1.ForwardClientCertDetails_SANITIZE:
		return hcm.HttpConnectionManager_SANITIZE, true
	case meshv1.ForwardClientCertDetails_FORWARD_ONLY:
		return hcm.HttpConnectionManager_FORWARD_ONLY, true
	case meshv1.ForwardClientCertDetails_APPEND_FORWARD:
		return hcm.HttpConnectionManager_APPEND_FORWARD, true
	case meshv1.ForwardClientCertDetails_SANITIZE_SET:
		return hcm.HttpConnectionManager_SANITIZE_SET, true
	case meshv1.ForwardClientCertDetails_ALWAYS_FORWARD_ONLY:
		return hcm.HttpConnectionManager_ALWAYS_FORWARD_ONLY, true
	}
	return 0, false
}

// front are the filters for what a proxy in front of a gateway says of connections.
func (s *Settings) front() []*listenerv3.ListenerFilter {
	if s.config().GetGatewayTopology().GetProxyProtocol() == nil {
		return nil
	}
	return []*listenerv3.ListenerFilter{listenerFilter("envoy.filters.listener.proxy_protocol", &proxyprotocol.ProxyProtocol{})}
}

func balance(yes bool) *listenerv3.Listener_ConnectionBalanceConfig {
	if !yes {
		return nil
	}
	return &listenerv3.Listener_ConnectionBalanceConfig{
		BalanceType: &listenerv3.Listener_ConnectionBalanceConfig_ExactBalance_{
			ExactBalance: &listenerv3.Listener_ConnectionBalanceConfig_ExactBalance{},
		},
	}
}
