package simulator

import (
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// Listener filters, by their types.
const (
	originalDst   = "envoy.extensions.filters.listener.original_dst.v3.OriginalDst"
	tlsInspector  = "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"
	httpInspector = "envoy.extensions.filters.listener.http_inspector.v3.HttpInspector"
)

// inspect runs listener filters. restore: the listener itself asks for the original destination,
// before all of them.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/listeners/listener_filters/listener_filters
func (w *walk) inspect(l *listenerv3.Listener, restore bool) {
	w.transport, w.sni, w.protocols = "raw_buffer", "", nil
	if restore {
		w.restore()
	}
	for _, f := range l.ListenerFilters {
		kind := kindOf(f)
		if f.FilterDisabled != nil && w.disabled(f.FilterDisabled) {
			w.step("listener filter", f.Name, "it is off for port %d", w.local.Port())
			continue
		}
		switch kind {
		case originalDst:
			w.restore()
		case tlsInspector:
			w.inspectTLS()
		case httpInspector:
			w.inspectHTTP()
		default:
			w.assume("listener filter %s changes nothing", f.Name)
		}
	}
}

// kindOf is the type of a filter; older configurations have only its name.
func kindOf(f *listenerv3.ListenerFilter) string {
	if url := f.GetTypedConfig().GetTypeUrl(); url != "" {
		return url[strings.LastIndex(url, "/")+1:]
	}
	return map[string]string{
		"envoy.filters.listener.original_dst":   originalDst,
		"envoy.filters.listener.tls_inspector":  tlsInspector,
		"envoy.filters.listener.http_inspector": httpInspector,
	}[f.Name]
}

func (w *walk) restore() {
	if w.local == w.connection.Destination {
		return
	}
	w.local = w.connection.Destination
	w.step("listener filter", "original_dst", "the client wanted %s", w.local)
}

func (w *walk) inspectTLS() {
	if w.connection.TLS == nil {
		return
	}
	w.transport, w.sni, w.protocols = "tls", strings.ToLower(w.connection.TLS.SNI), w.connection.TLS.ALPN
	w.step("listener filter", "tls_inspector", "TLS for %q with ALPN %q", w.sni, w.protocols)
}

func (w *walk) inspectHTTP() {
	if w.connection.TLS != nil || !w.connection.http() {
		return
	}
	protocol := w.connection.Protocol
	if protocol == "h2" {
		protocol = "h2c"
	}
	w.protocols = []string{protocol}
	w.step("listener filter", "http_inspector", "plain text of %s", protocol)
}

func (w *walk) disabled(p *listenerv3.ListenerFilterChainMatchPredicate) bool {
	switch rule := p.Rule.(type) {
	case *listenerv3.ListenerFilterChainMatchPredicate_AnyMatch:
		return rule.AnyMatch
	case *listenerv3.ListenerFilterChainMatchPredicate_NotMatch:
		return !w.disabled(rule.NotMatch)
	case *listenerv3.ListenerFilterChainMatchPredicate_OrMatch:
		return some(rule.OrMatch.Rules, w.disabled)
	case *listenerv3.ListenerFilterChainMatchPredicate_AndMatch:
		return every(rule.AndMatch.Rules, w.disabled)
	case *listenerv3.ListenerFilterChainMatchPredicate_DestinationPortRange:
		port := int32(w.local.Port())
		return rule.DestinationPortRange.Start <= port && port < rule.DestinationPortRange.End
	}
	return false
}
