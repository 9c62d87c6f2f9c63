package simulator

import (
	"cmp"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreamsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// upstreamTLS is what a proxy says when it opens TLS to an endpoint; nil: it doesn't. The first of
// the cluster's sockets whose metadata the endpoint has is taken, then the cluster's own.
//
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/cluster/v3/cluster.proto
// (transport_socket_matches)
func (w *walk) upstreamTLS(c *clusterv3.Cluster, e *endpointv3.LbEndpoint) *UpstreamTLS {
	if c.TransportSocketMatcher != nil {
		w.assume("the matching tree of cluster %s chooses the cluster's own transport socket", c.Name)
	}
	socket := c.TransportSocket
	for _, m := range c.TransportSocketMatches {
		if has(e.GetMetadata(), "envoy.transport_socket_match", m.GetMatch().GetFields()) {
			socket = m.TransportSocket
			break
		}
	}
	return w.opens(c, socket)
}

func (w *walk) opens(c *clusterv3.Cluster, socket *corev3.TransportSocket) *UpstreamTLS {
	var up tlsv3.UpstreamTlsContext
	if !typed(socket.GetTypedConfig(), &up) {
		return nil
	}
	context := up.GetCommonTlsContext()
	t := &UpstreamTLS{SNI: up.Sni, ALPN: context.GetAlpnProtocols()}
	t.Certificate = len(context.GetTlsCertificates())+len(context.GetTlsCertificateSdsSecretConfigs()) > 0
	t.names = accepted(context)
	for _, m := range t.names {
		t.Names = append(t.Names, nameOf(m))
	}
	w.byProtocol(c, t)
	return t
}

// byProtocol adds what the cluster's protocol brings in.
func (w *walk) byProtocol(c *clusterv3.Cluster, t *UpstreamTLS) {
	var options upstreamsv3.HttpProtocolOptions
	if !typed(c.TypedExtensionProtocolOptions["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"], &options) || w.stream == nil {
		return
	}
	if options.GetUpstreamHttpProtocolOptions().GetAutoSni() {
		if name, _ := hostPort(w.stream.Host); name != "" {
			t.SNI = name
		}
	}
	switch {
	case len(t.ALPN) > 0:
	case options.GetAutoConfig() != nil:
		t.ALPN = []string{"h2", "http/1.1"}
	case options.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil:
		t.ALPN = []string{"h2"}
	}
}

// nameOf is a name that is accepted, for people: a pattern where it is one.
func nameOf(m *matcherv3.StringMatcher) string {
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Prefix:
		return p.Prefix + "*"
	case *matcherv3.StringMatcher_Suffix:
		return "*" + p.Suffix
	case *matcherv3.StringMatcher_Contains:
		return "*" + p.Contains + "*"
	}
	return cmp.Or(m.GetExact(), m.GetSafeRegex().GetRegex())
}
