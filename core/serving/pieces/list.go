package pieces

import (
	"strings"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
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

// kind is which HTTP filter a type URL is the configuration of; empty: none that is known.
func kind(typeURL string) string {
	_, rest, ok := strings.Cut(typeURL, "/envoy.extensions.filters.http.")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, ".")
	return name
}

// spared reports whether a client may do without the filter at a place among others. One whose
// configuration comes by another way (ECDS), or that nobody has classified, it may not.
func spared(filters []*hcmv3.HttpFilter, at int) bool {
	of := kind(filters[at].GetTypedConfig().GetTypeUrl())
	switch {
	case spareable[of]:
		return true
	case !coded[of]:
		return false
	}
	for _, f := range filters[at+1:] {
		after := kind(f.GetTypedConfig().GetTypeUrl())
		if !spareable[after] && !coded[after] && after != "router" {
			return false // it stands where it can decide
		}
	}
	return true
}
