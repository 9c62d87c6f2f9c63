package simulator

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// handshake opens the connection as the chain's transport socket does, and reports whether that
// succeeds.
//
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/extensions/transport_sockets/tls/v3/tls.proto
func (w *walk) handshake(c *listenerv3.FilterChain) bool {
	config := c.GetTransportSocket().GetTypedConfig()
	var down tlsv3.DownstreamTlsContext
	if !typed(config, &down) {
		if config != nil && c.TransportSocket.Name != rawBuffer {
			w.assume("transport socket %s lets the connection through", c.TransportSocket.Name)
		}
		w.opaque = w.connection.TLS != nil
		return true
	}
	tls := w.connection.TLS
	if tls == nil {
		w.end(Closed, "the filter chain wants TLS and the client speaks plain text")
		return false
	}
	if tls.Peer == nil && down.GetRequireClientCertificate().GetValue() {
		w.end(Closed, "the filter chain wants a certificate and the client shows none")
		return false
	}
	names := accepted(down.GetCommonTlsContext())
	if tls.Peer != nil && len(names) > 0 && !tls.Peer.named(names) {
		w.end(Closed, "the client's certificate is for %q, which the filter chain doesn't accept", tls.Peer.all())
		return false
	}
	w.opened()
	return true
}

const rawBuffer = "envoy.transport_sockets.raw_buffer"

func (w *walk) opened() {
	if w.stream != nil {
		w.stream.scheme = "https"
	}
	if p := w.connection.TLS.Peer; p != nil {
		w.step("TLS", "mutual", "the client is %q", p.all())
		return
	}
	w.step("TLS", "opened", "the client shows no certificate")
}

func (i *Identity) all() []string { return append(append([]string{}, i.URIs...), i.DNS...) }

func (i *Identity) named(names []*matcherv3.StringMatcher) bool {
	return some(i.all(), func(n string) bool {
		return some(names, func(m *matcherv3.StringMatcher) bool { return matchString(m, n) })
	})
}
