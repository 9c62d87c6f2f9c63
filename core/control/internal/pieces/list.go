package pieces

import (
	"strings"

	udpa "github.com/cncf/xds/go/udpa/type/v1"
	xds "github.com/cncf/xds/go/xds/type/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// A filter is known by the part of its configuration's package that says which it is:
// envoy.extensions.filters.http.lua.v3 is http/lua.

// spareable are HTTP filters that a client may do without, or have as they were, while what they
// are refused for lasts: none of them decides who may do what, or how much.
var spareable = words(`
	a2a admission_control adaptive_concurrency ai_protocol_manager alternate_protocols_cache
	aws_eventstream_parser bandwidth_limit bandwidth_share buffer cache cache_v2 cdn_loop compressor
	connect_grpc_bridge cors custom_response decompressor dynamic_forward_proxy fault file_system_buffer
	grpc_field_extraction grpc_http1_bridge grpc_http1_reverse_bridge grpc_json_reverse_transcoder
	grpc_json_transcoder grpc_stats grpc_web gzip header_mutation health_check kill_request mcp_json_rest_bridge
	on_demand proto_message_extraction sse_to_metadata stateful_session tap transform`)

// coded are filters that run what somebody has written, which may decide or not: it can where the
// filter stands before one that does.
var coded = words(`dynamic_modules lua wasm`)

// deciding are filters that say who is calling, who may do what, or how much, or set what such
// filters ask for. A client is never without one of them, nor has an older one, but with all of its
// filter chain.
var deciding = words(`
	api_key_auth aws_lambda aws_request_signing basic_auth body_size_limit composite credential_injector csrf
	ext_authz ext_proc file_server filter_chain gcp_authn geoip header_to_metadata ip_tagging json_to_metadata jwt_authn
	local_ratelimit mcp mcp_router oauth2 original_src proto_api_scrubber rate_limit_quota ratelimit rbac router
	set_filter_state set_metadata thrift_to_metadata upstream_codec`)

func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(text) {
		out[w] = true
	}
	return out
}

// kind is which HTTP filter a message is the configuration of: Envoy's own by the name that the
// lists have, others by the name of their type.
func kind(config *anypb.Any) string {
	url := config.GetTypeUrl()
	switch {
	case config.MessageIs((*xds.TypedStruct)(nil)):
		var s xds.TypedStruct
		if config.UnmarshalTo(&s) == nil {
			url = s.TypeUrl
		}
	case config.MessageIs((*udpa.TypedStruct)(nil)):
		var s udpa.TypedStruct
		if config.UnmarshalTo(&s) == nil {
			url = s.TypeUrl
		}
	}
	name := url[strings.LastIndexByte(url, '/')+1:]
	rest, ok := strings.CutPrefix(name, "envoy.extensions.filters.http.")
	if !ok {
		return name
	}
	name, _, _ = strings.Cut(rest, ".")
	return name
}

// more are types of filters, beside those on the list, that clients may do without.
type more map[string]bool

func (m more) spares(of string) bool { return spareable[of] || m[of] }

// spared reports whether a client may do without the filter at a place among others. One whose
// configuration comes by another way (ECDS), or that nobody has classified, it may not.
func (m more) spared(filters []*hcmv3.HttpFilter, at int) bool {
	of := kind(filters[at].GetTypedConfig())
	switch {
	case m.spares(of):
		return true
	case !coded[of]:
		return false
	}
	for _, f := range filters[at+1:] {
		after := kind(f.GetTypedConfig())
		if !m.spares(after) && !coded[after] && after != "router" {
			return false // it stands where it can decide
		}
	}
	return true
}
