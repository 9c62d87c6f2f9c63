package listener

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/http_inspector/v3"
	originaldst "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"
	originalsrc "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_src/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// proxyMark is the packet mark of Istio's iptables rules for what the proxy sends.
const proxyMark = 1337

// inspectorBuffer is how much the TLS inspector reads at first, in bytes: most hellos fit.
const inspectorBuffer = 512

func listenerFilter(name string, m proto.Message) *listenerv3.ListenerFilter {
	return &listenerv3.ListenerFilter{Name: name, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: encode.Any(m)}}
}

// originalDestination finds out where an intercepted connection was going.
func originalDestination() *listenerv3.ListenerFilter {
	return listenerFilter("envoy.filters.listener.original_dst", &originaldst.OriginalDst{})
}

// originalSource keeps the client's address towards the workload; the mark keeps these connections
// from being intercepted again.
func originalSource() *listenerv3.ListenerFilter {
	return listenerFilter("envoy.filters.listener.original_src", &originalsrc.OriginalSrc{Mark: proxyMark})
}

// httpInspector finds out whether a connection speaks HTTP, but not at ports where a server might
// speak first or that need no answer.
func httpInspector(except ...uint32) *listenerv3.ListenerFilter {
	f := listenerFilter("envoy.filters.listener.http_inspector", &httpv3.HttpInspector{})
	f.FilterDisabled = atPorts(except)
	return f
}

// tlsInspector reads TLS hellos.
func tlsInspector(except ...uint32) *listenerv3.ListenerFilter {
	f := listenerFilter("envoy.filters.listener.tls_inspector", &tlsv3.TlsInspector{InitialReadBufferSize: wrapperspb.UInt32(inspectorBuffer)})
	f.FilterDisabled = atPorts(except)
	return f
}

func atPorts(ports []uint32) *listenerv3.ListenerFilterChainMatchPredicate {
	var rules []*listenerv3.ListenerFilterChainMatchPredicate
	for _, p := range slices.Compact(slices.Sorted(slices.Values(ports))) {
		rules = append(rules, &listenerv3.ListenerFilterChainMatchPredicate{
			Rule: &listenerv3.ListenerFilterChainMatchPredicate_DestinationPortRange{
				DestinationPortRange: &typev3.Int32Range{Start: int32(p), End: int32(p) + 1},
			},
		})
	}
	switch len(rules) {
	case 0:
		return nil
	case 1:
		return rules[0]
	}
	return &listenerv3.ListenerFilterChainMatchPredicate{Rule: &listenerv3.ListenerFilterChainMatchPredicate_OrMatch{
		OrMatch: &listenerv3.ListenerFilterChainMatchPredicate_MatchSet{Rules: rules},
	}}
}
