package parity

import (
	"math/rand/v2"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	extensions "istio.io/api/extensions/v1alpha1"
	mesh "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	networkingbeta "istio.io/api/networking/v1beta1"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"

	"google.golang.org/protobuf/proto"
)

// kind is one of Istio's, how often it comes, and where.
type kind struct {
	apiVersion, name, short string
	weight                  int
	empty                   func() proto.Message
}

var kinds = []kind{
	{"networking.istio.io/v1", "VirtualService", "vs", 6, func() proto.Message { return &networking.VirtualService{} }},
	{"networking.istio.io/v1", "DestinationRule", "dr", 6, func() proto.Message { return &networking.DestinationRule{} }},
	{"networking.istio.io/v1", "Gateway", "gw", 4, func() proto.Message { return &networking.Gateway{} }},
	{"networking.istio.io/v1", "ServiceEntry", "se", 6, func() proto.Message { return &networking.ServiceEntry{} }},
	{"networking.istio.io/v1", "Sidecar", "sc", 2, func() proto.Message { return &networking.Sidecar{} }},
	{"networking.istio.io/v1", "WorkloadEntry", "we", 3, func() proto.Message { return &networking.WorkloadEntry{} }},
	{"networking.istio.io/v1", "WorkloadGroup", "wg", 1, func() proto.Message { return &networking.WorkloadGroup{} }},
	{"networking.istio.io/v1beta1", "ProxyConfig", "pc", 1, func() proto.Message { return &networkingbeta.ProxyConfig{} }},
	{"networking.istio.io/v1alpha3", "EnvoyFilter", "ef", 4, func() proto.Message { return &networking.EnvoyFilter{} }},
	{"security.istio.io/v1", "AuthorizationPolicy", "ap", 3, func() proto.Message { return &security.AuthorizationPolicy{} }},
	{"security.istio.io/v1", "PeerAuthentication", "pa", 2, func() proto.Message { return &security.PeerAuthentication{} }},
	{"security.istio.io/v1", "RequestAuthentication", "ra", 2, func() proto.Message { return &security.RequestAuthentication{} }},
	{"telemetry.istio.io/v1", "Telemetry", "te", 3, func() proto.Message { return &telemetry.Telemetry{} }},
	{"extensions.istio.io/v1alpha1", "WasmPlugin", "wp", 1, func() proto.Message { return &extensions.WasmPlugin{} }},
	{"extensions.istio.io/v1alpha1", "TrafficExtension", "tx", 1, func() proto.Message { return &extensions.TrafficExtension{} }},
}

// likely is how likely a field is set where it isn't as the mesh's density says; 0 is never.
var likely = map[string]float64{
	"VirtualService.hosts": 1, "VirtualService.http": 0.85, "VirtualService.tcp": 0.25, "VirtualService.tls": 0.25,
	"VirtualService.gateways": 0.4, "VirtualService.export_to": 0.15,
	"HTTPRoute.route": 1, "HTTPRoute.redirect": 0.12, "HTTPRoute.direct_response": 0.08, "HTTPRoute.delegate": 0.08, "HTTPRoute.match": 0.7,
	"HTTPRouteDestination.destination": 1, "HTTPRouteDestination.weight": 0.6, "Destination.host": 1,
	"Destination.port": 0.6, "Destination.subset": 0.3, "PortSelector.number": 1,
	"TCPRoute.route": 1, "TLSRoute.route": 1, "TLSRoute.match": 1, "TLSMatchAttributes.sni_hosts": 1,
	"RouteDestination.destination": 1, "HTTPMirrorPolicy.destination": 1,
	"RegexRewrite.match": 1, "RegexRewrite.rewrite": 1, "HTTPDirectResponse.status": 1, "Delegate.name": 1, "Percent.value": 1,
	"DestinationRule.host": 1, "DestinationRule.traffic_policy": 0.8, "DestinationRule.subsets": 0.5,
	"DestinationRule.export_to": 0.1, "DestinationRule.workload_selector": 0.12,
	"Subset.name": 1, "Subset.labels": 0.9, "PortTrafficPolicy.port": 1, "TrafficPolicy.tls": 0.4,
	"ClientTLSSettings.mode": 1, "TunnelSettings.target_host": 1, "TunnelSettings.target_port": 1,
	"HTTPCookie.name": 1, "Attribute.name": 1, "Distribute.from": 1, "Distribute.to": 1, "Failover.from": 1, "Failover.to": 1,
	"OutlierDetection.outlier_detection_http_error_codes": 0, "ZoneAwareLoadBalancerSetting.enabled": 0,
	"LoadBalancerSettings.zone_aware_lb_setting": 0, "MeshConfig.zone_aware_lb_setting": 0,
	"Gateway.servers": 1, "Gateway.selector": 0.95, "Server.port": 1, "Server.hosts": 1, "Server.tls": 0.4,
	"Server.bind": 0.1, "Port.number": 1, "Port.protocol": 1, "Port.name": 1, "Port.target_port": 0,
	"TLSCertificate.server_certificate": 1, "TLSCertificate.private_key": 1, "ServerTLSSettings.mode": 1,
	"ServiceEntry.hosts": 1, "ServiceEntry.ports": 1, "ServiceEntry.resolution": 0.9, "ServiceEntry.endpoints": 0.6,
	"ServiceEntry.workload_selector": 0.25, "ServiceEntry.export_to": 0.1,
	"ServicePort.number": 1, "ServicePort.protocol": 1, "ServicePort.name": 1, "WorkloadEntry.address": 0.97,
	"WorkloadEntry.labels": 0.7, "WorkloadSelector.labels": 1, "WorkloadSelector.match_labels": 1,
	"Sidecar.workload_selector": 0.4, "Sidecar.egress": 0.7, "Sidecar.ingress": 0.4, "IstioEgressListener.hosts": 1,
	"IstioIngressListener.port": 1, "IstioIngressListener.default_endpoint": 0.7,
	"SidecarPort.number": 1, "SidecarPort.protocol": 1, "SidecarPort.name": 1, "SidecarPort.target_port": 0, "OutboundTrafficPolicy.egress_proxy": 0.1,
	"WorkloadGroup.template": 1, "EnvoyFilter.config_patches": 0, "EnvoyFilter.targetRefs": 0, "EnvoyFilter.workload_selector": 0.5,
	"AuthorizationPolicy.selector": 0.5, "AuthorizationPolicy.targetRef": 0, "AuthorizationPolicy.targetRefs": 0,
	"AuthorizationPolicy.rules": 0.9, "AuthorizationPolicy.action": 0.6,
	"From.source": 1, "To.operation": 1, "Condition.key": 1, "Condition.values": 0.8, "ExtensionProvider.name": 1,
	"Source.service_accounts": 0.05, "Source.not_service_accounts": 0.05,
	"PeerAuthentication.mtls": 0.8, "PeerAuthentication.selector": 0.5, "MutualTLS.mode": 1, "JWTRule.issuer": 1,
	"JWTRule.jwks": 1, "JWTRule.jwks_uri": 0, "JWTHeader.name": 1,
	"ClaimToHeader.header": 1, "ClaimToHeader.claim": 1, "RequestAuthentication.selector": 0.5,
	"RequestAuthentication.targetRef": 0, "RequestAuthentication.targetRefs": 0,
	"RequestAuthentication.jwt_rules": 1, "Telemetry.selector": 0.5, "Telemetry.targetRef": 0,
	"Telemetry.targetRefs": 0, "ProviderRef.name": 1, "Telemetry.tracing": 0.5, "Telemetry.metrics": 0.5,
	"Telemetry.access_logging": 0.5, "WasmPlugin.targetRef": 0, "WasmPlugin.targetRefs": 0, "WasmPlugin.url": 1,
	"WasmConfig.url": 1, "EnvVar.name": 1, "TrafficExtension.targetRefs": 0,
	"WasmPlugin.image_pull_secret": 0, "WasmConfig.image_pull_secret": 0, // docs/differences.md
	"WasmPlugin.sha256": 0.5, "LuaConfig.inline_code": 1, "Literal.value": 1, "Environment.name": 1,
	"RequestHeader.name": 1, "Formatter.value": 1, "Filter.expression": 1,
	// The settings of the mesh that need other servers, or that say where the judge itself works.
	"MeshConfig.root_namespace": 0, "MeshConfig.config_sources": 0, "MeshConfig.ca": 0, "MeshConfig.certificates": 0,
	"MeshConfig.ca_certificates": 0, "MeshConfig.discovery_selectors": 0,
	"MeshConfig.ingress_class": 0, "MeshConfig.ingress_service": 0, "MeshConfig.ingress_selector": 0,
	"MeshConfig.ingress_controller_mode": 0, "MeshConfig.default_service_export_to": 0.03,
	"MeshConfig.extension_providers": 0, "MeshConfig.service_scope_configs": 0,
	"MeshConfig.proxy_listen_port": 0.03, "MeshConfig.proxy_inbound_listen_port": 0.03,
	"MeshConfig.default_providers": 0.3, "MeshConfig.default_traffic_policy": 0.3, "MeshConfig.dns_refresh_rate": 0.1, "MeshConfig.service_entry_visibility": 0,
	"ProxyConfig.binary_path": 0, "ProxyConfig.custom_config_file": 0,
	"ProxyConfig.proxy_bootstrap_template_path": 0, "ProxyConfig.readiness_probe": 0, "ProxyConfig.image": 0,
	"ProxyConfig.private_key_provider": 0.05, "HttpHeader.value": 1, "HttpService.path": 1, "HttpHeader.env_name": 0,
	"ServiceSettings.hosts": 1, "ServiceSettings.settings": 1,
	".service": 1,
}

func init() {
	for _, p := range []string{
		"EnvoyExternalAuthorizationHttpProvider", "EnvoyExternalAuthorizationGrpcProvider", "ZipkinTracingProvider",
		"DatadogTracingProvider", "SkyWalkingTracingProvider",
		"OpenTelemetryTracingProvider", "EnvoyHttpGrpcV3LogProvider", "EnvoyTcpGrpcV3LogProvider", "EnvoyOpenTelemetryLogProvider",
	} {
		likely[p+".service"], likely[p+".port"] = 1, 1
	}
}

// needed are the oneofs, without istio., that are always set.
var needed = map[string]bool{
	"networking.v1alpha3.StringMatch.match_type":                         true,
	"networking.v1alpha3.HTTPFaultInjection.Delay.http_delay_type":       true,
	"networking.v1alpha3.HTTPFaultInjection.Abort.error_type":            true,
	"networking.v1alpha3.LoadBalancerSettings.lb_policy":                 true,
	"networking.v1alpha3.LoadBalancerSettings.ConsistentHashLB.hash_key": true,
	"telemetry.v1alpha1.Tracing.CustomTag.type":                          true,
	"telemetry.v1alpha1.MetricSelector.metric_match":                     true,
	"extensions.v1alpha1.TrafficExtension.filter_config":                 true, "networking.v1alpha3.HTTPBody.specifier": true,
	"mesh.v1alpha1.Tracing.CustomTag.type": true, "mesh.v1alpha1.MeshConfig.ExtensionProvider.HttpHeader.header_value": true,
}

var durations = []string{"1s", "2500ms", "10s", "1h", "5ms", "90s", "0s"}

var times = map[string][]string{
	"TCPSettings.connect_timeout": {"1s", "5s", "1500ms", "5ms"}, "MeshConfig.connect_timeout": {"1s", "5s", "1500ms"}, "ClientTLSSettings.x": nil,
	"MeshConfig.protocol_detection_timeout": {"0s", "1s", "100ms"}, "HTTPCookie.ttl": {"0s", "10s"},
	"TcpKeepalive.time": {"1s", "60s"}, "TcpKeepalive.interval": {"1s", "75s"},
	"MeshConfig.dns_refresh_rate": {"1s", "90s"}, // 0s: docs/differences.md
	"ProxyConfig.drain_duration":  {"5s", "45s"}, "ProxyConfig.termination_drain_duration": {"5s"},
}

var structs = []map[string]any{{}, {"a": "b"}, {"a": map[string]any{"b": []any{1.0, true, nil, "x"}}, "n": 3.5}}

const (
	hostNames = "web web.alpha web.alpha.svc.cluster.local api.alpha.svc.cluster.local api db.alpha.svc.cluster.local " +
		"head.alpha.svc.cluster.local six.alpha.svc.cluster.local " +
		"far.alpha.svc.cluster.local web.beta.svc.cluster.local shop.beta.svc.cluster.local " +
		"tools.beta.svc.cluster.local a.example.com b.example.com c.example.com a.example.com b.example.com"
	wildcards = " *.example.com *.alpha.svc.cluster.local *"
	addresses = "10.42.0.1 10.42.0.2 10.40.1.1 203.0.113.7 fd00:42::2 2001:db8::7"
	ranges    = " 10.42.0.0/24 203.0.113.0/24 2001:db8::/64 10.96.1.1"
)

func words(s string) []string { return strings.Fields(s) }

// texts are what fields of strings may well hold, by MESSAGE.FIELD or .FIELD; those of a map's keys
// with .key behind.
var texts = map[string][]string{
	".hosts": words(hostNames + wildcards), ".host": words(hostNames),
	"DestinationRule.host": words(hostNames + wildcards),
	"ServiceEntry.hosts":   words("a.example.com b.example.com c.example.com *.example.com d.internal"),
	"Server.hosts": words(
		"* a.example.com *.example.com alpha/* ./a.example.com */b.example.com web.alpha.svc.cluster.local alpha/web.alpha.svc.cluster.local c.example.com",
	),
	"IstioEgressListener.hosts": words(
		"./* */* alpha/* beta/* ~/* */a.example.com ./web.alpha.svc.cluster.local beta/shop.beta.svc.cluster.local */*.example.com istio-system/*",
	),
	"Operation.hosts": words("a.example.com *.example.com * web.alpha a.* a.example.com:80"), "Operation.not_hosts": words("a.example.com *.example.com b.*"),
	"ServiceSettings.hosts":      words("*.alpha.svc.cluster.local web.beta.svc.cluster.local *"),
	"TunnelSettings.target_host": words("a.example.com 10.0.0.1"), "TunnelSettings.protocol": words("CONNECT POST"),
	".gateways": words("mesh mesh gw0 gw1 alpha/gw0 beta/gw0 istio-system/gw0 istio-system/gw1"), ".export_to": words("* . beta alpha ~"),
	"MeshConfig.default_service_export_to":          words("* ."),
	"MeshConfig.default_virtual_service_export_to":  words("* ."),
	"MeshConfig.default_destination_rule_export_to": words("* ."),
	".subset": words("v1 v1 v2 other"), "Subset.name": words("v1 v2 v1 v2 other"),
	".source_labels.key": {"app", "version"}, ".source_labels": words("client web v1 v2"),
	".labels.key": {"app", "version", "app"}, ".labels": words("web api vm v1 v2 client shop"),
	".match_labels.key": {"app", "app", "version"}, ".match_labels": words("web api client gateway v1 vm six"),
	".selector.key": {"istio"}, ".selector": words("ingressgateway ingressgateway egressgateway"),
	".matchLabels.key": {"team"}, ".matchLabels": {"a", "b"},
	".source_namespace": words("alpha beta"), "Delegate.name": words("vs0 vs1 vs2 vs3"), "Delegate.namespace": words("alpha beta"),
	".uri": words("/x / /a/b a.example.com"), ".authority": words("a.example.com b.example.com web"),
	".scheme": words("http https"), ".prefix_rewrite": words("/y /"),
	"StringMatch.exact": words("/x x POST a.example.com http"), "StringMatch.prefix": words("/x / /a/ x"),
	"StringMatch.regex":                    words("/.* .*x.* [a-z]+ .* a|b"),
	"HTTPMatchRequest.headers.key":         words("x-a x-b :path @request.auth.claims.iss cookie"),
	"HTTPMatchRequest.without_headers.key": words("x-a x-b @request.auth.claims[a.b]"),
	".query_params.key":                    words("q p"),
	"RegexRewrite.match":                   words("/(.*) [a-z]+"), "RegexRewrite.rewrite": words(`/\1 x`),
	".retry_on":    words("5xx connect-failure,refused-stream 503,reset retriable-4xx,gateway-error 5xx,409"),
	".grpc_status": words("UNAVAILABLE NOT_FOUND"), ".http2_error": words("x"),
	".allow_origin": words("* https://a.example.com"), ".allow_methods": words("GET POST"),
	".allow_headers": words("x-a x-b"), ".expose_headers": words("x-c"),
	"HeaderOperations.set.key": words("x-a x-b Host :authority"), "HeaderOperations.set": words("v %REQ(X)% a%b"),
	"HeaderOperations.add": words("v w"), "HeaderOperations.remove": words("x-a x-c"),
	".sni_hosts":           words("a.example.com *.example.com web.alpha.svc.cluster.local *.alpha.svc.cluster.local"),
	".destination_subnets": words(addresses + ranges), ".source_subnet": words("10.0.0.0/8 10.42.0.1"),
	".addresses":            words(addresses + ranges + " 240.240.0.7"),
	"WorkloadEntry.address": words(strings.ReplaceAll(addresses, "10.40.1.1 ", "") + " e.example.com f.example.com unix:///tmp/s"),
	".ports.key":            words("http tcp http-a"),
	"ServicePort.name":      words("http tcp https grpc http-a tls x"), "ServicePort.protocol": words("HTTP TCP HTTPS TLS GRPC HTTP2 MONGO UDP HTTP TCP"),
	"Port.name": words("http tcp https grpc http-a tls x"), "Port.protocol": words("HTTP HTTP HTTPS HTTPS TLS TCP GRPC HTTP2 MONGO HTTP_PROXY"),
	"SidecarPort.name": words("http tcp https grpc http-a x"), "SidecarPort.protocol": words("HTTP HTTP TCP GRPC HTTPS TLS HTTP2 HTTP_PROXY MONGO"),
	".network": words("net1 net2"), ".locality": words("r1/z1 r1/z2 r2/z1/s r2 r3"), ".service_account": words("web vm"), ".account": words("web"),
	"Distribute.from":   words("r1/* r1/z1/* * r2/z1/*"),
	"Distribute.to.key": words("r1/* r1/z1/* r2/* r1/z2/* r2/z1/*"), "Failover.from": words("r1 r2 r3"),
	"Failover.to":        words("r2 r3 r1"),
	".failover_priority": words("topology.kubernetes.io/region topology.kubernetes.io/zone version=v1 app topology.istio.io/network"),
	".http_header_name":  words("x-a :path"), ".http_query_parameter_name": words("q"),
	"HTTPCookie.name": words("c"), "HTTPCookie.path": words("/ /p"), "Attribute.name": words("SameSite HttpOnly"),
	"Attribute.value":     words("Lax x"),
	".client_certificate": words("/c/cert.pem"), ".private_key": words("/c/key.pem"),
	".ca_certificates": words("/c/ca.pem"), ".ca_crl": words("/c/crl.pem"),
	".server_certificate": words("/s/cert.pem"),
	".credential_name":    words("secret configmap://ca sds://name kubernetes://alpha/name"),
	".credential_names":   words("rsa ecc"), ".ca_cert_credential_name": words("ca-of-it configmap://alpha/ca"),
	".subject_alt_names": words("spiffe://cluster.local/ns/alpha/sa/web a.example.com *.example.com"), ".sni": words("sni.example.com a.example.com"),
	".verify_certificate_hash": {strings.Repeat("ab", 32)}, ".verify_certificate_spki": {"NvqYIYSbgK2vCJpQhObf77vv+bQWtc5ek5RIOwPiC9A="},
	".cipher_suites":                words("ECDHE-RSA-AES128-GCM-SHA256 AES256-GCM-SHA384 ECDHE-ECDSA-AES256-GCM-SHA384 bogus"),
	".ecdh_curves":                  words("P-256 X25519 P-384 X25519MLKEM768 bogus"),
	".default_endpoint":             words("127.0.0.1:8080 0.0.0.0:8080 unix:///tmp/app [::1]:8080 127.0.0.1:9000"),
	".bind":                         words("127.0.0.1 0.0.0.0 10.40.1.1 :: 127.0.0.2"),
	"Source.principals":             words("cluster.local/ns/alpha/sa/web */sa/web cluster.local/* *"),
	"Source.not_principals":         words("cluster.local/ns/alpha/sa/web */sa/x"),
	"Source.request_principals":     words("iss/sub * iss/* */sub"),
	"Source.not_request_principals": words("iss/sub iss/*"), "Source.namespaces": words("alpha beta a* *a *"),
	"Source.not_namespaces":   words("alpha *b"),
	"Source.service_accounts": words("web alpha/web"), "Source.not_service_accounts": words("web beta/shop"),
	"Source.ip_blocks": words("10.0.0.0/8 10.1.2.3 2001:db8::/32"), "Source.not_ip_blocks": words("10.1.0.0/16"),
	"Source.remote_ip_blocks": words("10.0.0.0/8"), "Source.not_remote_ip_blocks": words("10.1.2.3"),
	".trust_domains": words("cluster.local other a*"), ".not_trust_domains": words("other"),
	"Operation.ports": words("80 8080 9000"), "Operation.not_ports": words("8080 443"),
	"Operation.methods": words("GET POST * P*"), "Operation.not_methods": words("DELETE"),
	"Operation.paths": words("/x /a/* *.html * /a/{*}/b /{**} /x"), "Operation.not_paths": words("/admin /admin/* /{*}/z"),
	"Condition.key": words("request.headers[x-a] source.ip remote.ip source.namespace source.principal " +
		"request.auth.principal request.auth.audiences request.auth.presenter request.auth.claims[iss] " +
		"request.auth.claims[a][b] destination.ip destination.port connection.sni " +
		"experimental.envoy.filters.network.mongo_proxy[db] source.serviceAccount source.trustDomain"),
	"Condition.values": words("x 10.0.0.0/8 alpha 8080 cluster.local/ns/alpha/sa/web * a* *b"), "Condition.not_values": words("y 10.1.0.0/16 beta"),
	"ExtensionProvider.name": words("envoy-ext-authz-http envoy-ext-authz-grpc missing"), "ProviderRef.name": providers,
	"DefaultProviders.tracing":        words("zipkin opentelemetry datadog skywalking"),
	"DefaultProviders.metrics":        words("prometheus"),
	"DefaultProviders.access_logging": words("envoy-file-access-log envoy-http-als envoy-otel-als envoy-tcp-als"),
	"JWTRule.issuer":                  words("iss other"), "JWTRule.jwks": {`{"keys":[{"kty":"RSA","e":"AQAB","kid":"a",` +
		`"n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMs"}]}`},
	"JWTRule.audiences": words("aud other"), "JWTHeader.name": words("x-jwt authorization"),
	"JWTHeader.prefix": {"Bearer ", "x"}, ".from_params": words("token t"), ".from_cookies": words("session"),
	".output_payload_to_header": words("x-payload"),
	"ClaimToHeader.header":      words("x-claim x-sub"), "ClaimToHeader.claim": words("sub a.b"), ".space_delimited_claims": words("scope roles"),
	".custom_tags.key":   words("tag-a tag-b"),
	".tag_overrides.key": words("x source_app request_host destination_version"),
	"TagOverride.value":  words(`"v" request.host xds.node.id`), ".custom_metric": words("my_metric requests_total"),
	"Filter.expression": {"response.code >= 400", "has(request.headers['x'])", "true"}, "Formatter.value": words("%REQ(X)% x"),
	".url":    words("oci://ghcr.io/a/b:1 file:///a.wasm https://a.example.com/a.wasm docker.io/a:latest"),
	".sha256": {strings.Repeat("ab", 32)}, ".image_pull_secret": words("pull"), ".verification_key": {""},
	"EnvVar.name":  words("A B"),
	".inline_code": {"function envoy_on_request(h) end"}, ".plugin_name": words("p root"),
	".trust_domain": words("cluster.local td.example"), ".trust_domain_aliases": words("cluster.local old.example"),
	".access_log_file":            words("/dev/stdout /dev/null"),
	".access_log_format":          {"%REQ(X)% x\n", `{"a":"%REQ(X)%"}`, ""},
	".inbound_cluster_stat_name":  words("%SERVICE%_%SERVICE_PORT% in"),
	".outbound_cluster_stat_name": words("%SERVICE_FQDN%|%SUBSET_NAME%|%SERVICE_PORT_NAME% out"),
	".service": words(
		"tools.beta.svc.cluster.local beta/tools.beta.svc.cluster.local web.alpha.svc.cluster.local a.example.com missing.example.com",
	), ".path_prefix": words("/check"), ".status_on_error": words("403 503"),
	".include_headers_in_check": words("x-a x-b*"), ".include_request_headers_in_check": words("x-a *-b"),
	".include_additional_headers_in_check.key": words("x-add"), ".headers_to_upstream_on_allow": words("x-a x-*"),
	".headers_to_downstream_on_deny": words("x-a"), ".headers_to_downstream_on_allow": words("x-b *x"),
	".path": words("/p /dev/stdout"), ".address": words("zipkin.example.com:9411 tools.beta:9411 10.1.1.1:9411"),
	".filter_state_objects_to_log": words("fs wasm.x"), ".text": {"%REQ(X)%\n", "plain"},
	".discovery_address": words("istiod.istio-system.svc:15012"), ".config_path": words("./etc/istio/proxy"),
	".service_cluster": words("istio-proxy x"), ".statsd_udp_address": words("10.1.1.1:8125"),
	".envoy_metrics_service_address": words("10.1.1.1:9000"),
	".proxy_metadata.key":            words("ISTIO_META_X DNS_CAPTURE"), ".proxy_metadata": words("true x"),
	".operator": words("In NotIn Exists"),
}

// numbers are the same for numbers.
var numbers = map[string][]int{
	".port": {80, 80, 8080, 443, 9000, 7070}, ".number": {80, 80, 443, 9000, 7070, 8000, 3306, 5432},
	"Port.number": {80, 80, 443, 8080, 9090, 31400, 15443}, "ServicePort.number": {80, 443, 9000, 3306, 8080},
	"SidecarPort.number": {80, 8080, 9000, 9090, 7070},
	".target_port":       {8080, 9000, 81}, "TunnelSettings.target_port": {443}, ".weight": {0, 10, 50, 100, 1},
	".to": {100, 50, 30, 20}, ".ports": {80, 8081, 9000}, "WorkloadEntry.weight": {0, 1, 5, 20},
	".status": {200, 404, 503}, ".redirect_code": {301, 302, 307, 308, 0}, ".http_status": {400, 503, 418},
	".percent": {0, 10, 100}, ".attempts": {0, 1, 3, -1}, ".port_level_mtls": {8080, 9000, 80, 8443},
	".max_requests_per_connection": {0, 1, 100}, ".proxy_listen_port": {15001, 16001},
	".proxy_inbound_listen_port": {15006, 16006}, ".proxy_http_port": {0, 15002},
	".outlier_detection_http_error_codes":   {500, 503, 429},
	".http2_initial_stream_window_size":     {65535, 1 << 20},
	".http2_initial_connection_window_size": {65535, 1 << 20}, ".http_max_concurrent_streams": {1, 100},
	".table_size": {65537, 1031, 5}, ".max_ejection_percent": {0, 10, 100}, ".min_health_percent": {0, 50},
	".sampling": {1}, ".concurrency": {0, 2}, ".status_port": {15020, 15021}, ".priority": {-5, 0, 1, 10},
}

// mends make what filled fields of a message say fit together.
var mends = map[string]func(*gen, protoreflect.Message){
	"networking.v1alpha3.HTTPRoute": func(g *gen, m protoreflect.Message) {
		r := m.Interface().(*networking.HTTPRoute)
		switch {
		case r.Delegate != nil:
			kept := &networking.HTTPRoute{Name: r.Name, Match: r.Match, Delegate: r.Delegate}
			proto.Reset(r)
			proto.Merge(r, kept)
		case r.Redirect != nil:
			r.Route, r.DirectResponse, r.Rewrite, r.Fault, r.Retries = nil, nil, nil, nil, nil
		case r.DirectResponse != nil:
			r.Route, r.Rewrite = nil, nil
		}
		if r.Rewrite != nil && r.Rewrite.UriRegexRewrite != nil {
			r.Rewrite.Uri = ""
		}
		if r.Mirror != nil && len(r.Mirrors) > 0 {
			r.Mirror = nil
		}
		if r.Retries != nil && r.Retries.Attempts < 0 {
			r.Retries.Attempts = 0
		}
	},
	"networking.v1alpha3.HTTPRetry": func(_ *gen, m protoreflect.Message) {
		r := m.Interface().(*networking.HTTPRetry)
		r.Attempts = max(r.Attempts, 0) // docs/differences.md
		if r.Attempts == 0 {
			r.PerTryTimeout, r.RetryOn, r.Backoff = nil, "", nil
		}
	},
	"networking.v1alpha3.VirtualService": func(g *gen, m protoreflect.Message) {
		if v := m.Interface().(*networking.VirtualService); len(v.Http)+len(v.Tcp)+len(v.Tls) == 0 {
			v.Tcp = []*networking.TCPRoute{{Route: []*networking.RouteDestination{{Destination: &networking.Destination{Host: pick(g.r, words(hostNames))}}}}}
		}
	},
	"networking.v1alpha3.Server": func(g *gen, m protoreflect.Message) {
		s := m.Interface().(*networking.Server)
		secure := s.Port.Protocol == "HTTPS" || s.Port.Protocol == "TLS"
		switch {
		case secure && s.Tls == nil:
			s.Tls = &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: "secret"}
		case !secure && s.Tls != nil && s.Port.Protocol != "TCP":
			s.Tls = &networking.ServerTLSSettings{HttpsRedirect: s.Tls.HttpsRedirect}
		}
		s.DefaultEndpoint = ""
	},
	"networking.v1alpha3.ServerTLSSettings": func(g *gen, m protoreflect.Message) {
		t := m.Interface().(*networking.ServerTLSSettings)
		t.HttpsRedirect = t.HttpsRedirect && g.chance(0.1)
		switch t.Mode {
		case networking.ServerTLSSettings_PASSTHROUGH, networking.ServerTLSSettings_AUTO_PASSTHROUGH, networking.ServerTLSSettings_ISTIO_MUTUAL:
			t.ServerCertificate, t.PrivateKey, t.CaCertificates, t.CredentialName, t.CredentialNames, t.TlsCertificates, t.CaCertCredentialName, t.CaCrl = "",
				"", "", "", nil, nil, "", ""
		default:
			if t.CredentialName != "" || len(t.CredentialNames) > 0 || g.chance(0.5) {
				t.ServerCertificate, t.PrivateKey, t.CaCertificates, t.TlsCertificates, t.CaCrl = "", "", "", nil, ""
				if t.CredentialName != "" || len(t.CredentialNames) == 0 {
					t.CredentialName, t.CredentialNames = "secret", nil
				}
			} else if len(t.TlsCertificates) == 0 {
				t.ServerCertificate, t.PrivateKey = "/s/cert.pem", "/s/key.pem"
				if t.Mode == networking.ServerTLSSettings_MUTUAL {
					t.CaCertificates = "/s/ca.pem"
				}
			} else {
				t.ServerCertificate, t.PrivateKey = "", ""
			}
		}
	},
	"networking.v1alpha3.ClientTLSSettings": func(g *gen, m protoreflect.Message) {
		t := m.Interface().(*networking.ClientTLSSettings)
		switch t.Mode {
		case networking.ClientTLSSettings_MUTUAL:
			if t.CredentialName == "" {
				t.ClientCertificate, t.PrivateKey = "/c/cert.pem", "/c/key.pem"
			} else {
				t.ClientCertificate, t.PrivateKey, t.CaCertificates, t.CaCrl = "", "", "", ""
			}
		case networking.ClientTLSSettings_SIMPLE:
			t.ClientCertificate, t.PrivateKey = "", ""
			if t.CredentialName != "" {
				t.CaCertificates, t.CaCrl = "", ""
			}
		default:
			t.ClientCertificate, t.PrivateKey, t.CaCertificates, t.CredentialName, t.CaCrl, t.InsecureSkipVerify = "", "", "", "", "", nil
			if t.Mode == networking.ClientTLSSettings_ISTIO_MUTUAL && g.chance(0.7) {
				t.Sni, t.SubjectAltNames = "", nil
			}
		}
		if t.InsecureSkipVerify.GetValue() {
			t.CaCertificates, t.SubjectAltNames = "", nil
		}
	},
	"networking.v1alpha3.LoadBalancerSettings": func(_ *gen, m protoreflect.Message) {
		b := m.Interface().(*networking.LoadBalancerSettings)
		if b.Warmup != nil {
			b.WarmupDurationSecs = nil //lint:ignore SA1019 proxies still get what it says
		}
		if b.GetConsistentHash() != nil {
			b.Warmup = nil
			b.WarmupDurationSecs = nil //lint:ignore SA1019 as above
		}
	},
	"networking.v1alpha3.LocalityLoadBalancerSetting": func(g *gen, m protoreflect.Message) {
		l := m.Interface().(*networking.LocalityLoadBalancerSetting)
		if len(l.Distribute) > 0 {
			l.Failover, l.FailoverPriority = nil, nil
			l.Distribute = l.Distribute[:1]
			for k := range l.Distribute[0].To {
				l.Distribute[0].To = map[string]uint32{k: 100}
				break
			}
			if g.chance(0.5) {
				l.Distribute[0].To = map[string]uint32{"r1/*": 70, "r2/z1/*": 30}
			}
		}
		if len(l.Failover) > 0 {
			l.Failover = []*networking.LocalityLoadBalancerSetting_Failover{{From: "r1", To: pick(g.r, []string{"r2", "r3"})}}
		}
	},
	"networking.v1alpha3.TrafficPolicy": func(g *gen, m protoreflect.Message) {
		if p := m.Interface().(*networking.TrafficPolicy); g.chance(0.7) {
			p.ProxyProtocol = nil
		}
	},
	"networking.v1alpha3.OutlierDetection": func(_ *gen, m protoreflect.Message) {
		m.Interface().(*networking.OutlierDetection).ConsecutiveErrors = 0 //lint:ignore SA1019 istiod refuses it
	},
	"networking.v1alpha3.ServiceEntry": func(g *gen, m protoreflect.Message) {
		e := m.Interface().(*networking.ServiceEntry)
		if e.WorkloadSelector != nil {
			e.Endpoints = nil
			if e.Resolution == networking.ServiceEntry_NONE {
				e.Resolution = networking.ServiceEntry_STATIC
			}
		}
		if e.Resolution == networking.ServiceEntry_DYNAMIC_DNS { // docs/differences.md; state 085 has them
			e.Resolution = networking.ServiceEntry_NONE
		}
		if e.Resolution == networking.ServiceEntry_NONE {
			e.Endpoints = nil
		}
		seen, names := map[uint32]bool{}, map[string]bool{}
		var ports []*networking.ServicePort
		for _, p := range e.Ports {
			if !seen[p.Number] && !names[p.Name] {
				ports = append(ports, p)
			}
			seen[p.Number], names[p.Name] = true, true
		}
		e.Ports = ports
		for _, w := range e.Endpoints {
			name := strings.HasSuffix(w.Address, ".com")
			if e.Resolution == networking.ServiceEntry_STATIC && name {
				w.Address = pick(g.r, words("10.42.0.7 10.42.0.8 2001:db8::9"))
			}
			if w.Address == "" && w.Network == "" {
				w.Address = "10.42.0.9"
			}
			for k := range w.Ports {
				if !names[k] {
					delete(w.Ports, k)
				}
			}
		}
		if e.Resolution == networking.ServiceEntry_STATIC && g.chance(0.5) {
			e.Addresses = nil
		}
		http := slices.ContainsFunc(e.Ports, func(p *networking.ServicePort) bool { return p.Protocol != "TCP" })
		if len(e.Addresses) > 1 && http { // istiod names virtual hosts by either (docs/differences.md)
			e.Addresses = e.Addresses[:1]
		}
		for _, h := range e.Hosts {
			if strings.HasPrefix(h, "*") && e.Resolution != networking.ServiceEntry_STATIC {
				e.Resolution, e.Endpoints = networking.ServiceEntry_NONE, nil
			}
		}
	},
	"networking.v1alpha3.Sidecar": func(g *gen, m protoreflect.Message) {
		s := m.Interface().(*networking.Sidecar)
		seen := map[uint32]bool{}
		var in []*networking.IstioIngressListener
		for _, l := range s.Ingress {
			if !seen[l.Port.Number] {
				in = append(in, l)
			}
			seen[l.Port.Number] = true
			if g.chance(0.8) {
				l.Tls = nil
			}
			if strings.HasPrefix(l.DefaultEndpoint, "unix") && g.chance(0.5) {
				l.DefaultEndpoint = "127.0.0.1:8081"
			}
			l.Bind = pick(g.r, []string{"", "", "", l.Bind})
		}
		s.Ingress = in
		for i, l := range s.Egress {
			if i == len(s.Egress)-1 && g.chance(0.7) {
				l.Port, l.Bind = nil, ""
			} else if l.Port == nil {
				l.Port = &networking.SidecarPort{Number: uint32(9100 + i), Protocol: pick(g.r, words("HTTP TCP")), Name: "x"}
			}
		}
	},
	"security.v1beta1.AuthorizationPolicy": func(g *gen, m protoreflect.Message) {
		p := m.Interface().(*security.AuthorizationPolicy)
		switch {
		case p.Action == security.AuthorizationPolicy_CUSTOM && p.GetProvider() == nil:
			p.ActionDetail = &security.AuthorizationPolicy_Provider{Provider: &security.AuthorizationPolicy_ExtensionProvider{Name: pick(g.r, providers[:2])}}
		case p.Action != security.AuthorizationPolicy_CUSTOM:
			p.ActionDetail = nil
		}
	},
	"security.v1beta1.JWTRule": func(g *gen, m protoreflect.Message) {
		m.Interface().(*security.JWTRule).Timeout = nil
	},
	"security.v1beta1.PeerAuthentication": func(g *gen, m protoreflect.Message) {
		if p := m.Interface().(*security.PeerAuthentication); p.Selector == nil {
			p.PortLevelMtls = nil
		}
	},
	"networking.v1alpha3.EnvoyFilter": func(g *gen, m protoreflect.Message) {
		f := m.Interface().(*networking.EnvoyFilter)
		for range 1 + g.r.IntN(3) {
			p := g.patch()
			f.ConfigPatches = append(f.ConfigPatches, p)
			if p.Patch.Value.GetFields()["config_discovery"] != nil { // somebody has to answer
				f.ConfigPatches = append(f.ConfigPatches, &networking.EnvoyFilter_EnvoyConfigObjectPatch{ApplyTo: networking.EnvoyFilter_EXTENSION_CONFIG,
					Patch: &networking.EnvoyFilter_Patch{Operation: networking.EnvoyFilter_Patch_ADD, Value: structOf(lastOf(patches).values[0])}})
			}
		}
	},
	"mesh.v1alpha1.MeshConfig.ExtensionProvider.HttpHeader": func(g *gen, m protoreflect.Message) { // without a name both refuse the settings
		m.Set(m.Descriptor().Fields().ByName("name"), protoreflect.ValueOfString(pick(g.r, words("x-meta x-other"))))
	},
	// nor without these
	"mesh.v1alpha1.MeshConfig.ExtensionProvider.OpenTelemetryTracingProvider.DynatraceSampler.DynatraceApi": func(g *gen, m protoreflect.Message) {
		api := m.Interface().(*mesh.MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider_DynatraceSampler_DynatraceApi)
		api.Service, api.Port = "tools.beta.svc.cluster.local", 80
		if api.Http != nil {
			api.Http.Path = "/samples"
		}
	},
	"mesh.v1alpha1.ProxyConfig": func(g *gen, m protoreflect.Message) {
		if p := m.Interface().(*mesh.ProxyConfig); p.ControlPlaneAuthPolicy == mesh.AuthenticationPolicy_INHERIT { // both refuse it
			p.ControlPlaneAuthPolicy = mesh.AuthenticationPolicy_NONE
		}
	},
	"mesh.v1alpha1.ProxyConfig.ConnectionSettings": func(g *gen, m protoreflect.Message) {
		// Smaller numbers are refused in the mesh's settings, and left out of a proxy's own.
		for field, least := range map[protoreflect.Name]int32{
			"http_max_concurrent_streams": 1, "listener_connection_limit": 1, "global_downstream_connection_limit": 1,
			"http2_initial_stream_window_size": 65535, "http2_initial_connection_window_size": 65535,
		} {
			if f := m.Descriptor().Fields().ByName(field); m.Has(f) {
				n := m.Get(f).Message().Interface().(*wrapperspb.Int32Value)
				n.Value = max(n.Value, least)
			}
		}
	},
	"mesh.v1alpha1.MeshConfig.ExtensionProvider.OpenTelemetryTracingProvider": func(g *gen, m protoreflect.Message) {
		if g.chance(0.7) {
			m.Clear(m.Descriptor().Fields().ByName("http"))
		} else {
			m.Clear(m.Descriptor().Fields().ByName("grpc"))
		}
	},
}

// patches are what EnvoyFilters apply, with their values. None merges into a wrapped value that
// istiod sets, such as bind_to_port: there all that share the wrapper change with it, until istiod
// starts anew (docs/differences.md).
var patches = []struct {
	to     networking.EnvoyFilter_ApplyTo
	values []string
}{
	{networking.EnvoyFilter_CLUSTER, []string{
		`{"connect_timeout": "7s"}`, `{"circuit_breakers": {"thresholds": [{"max_connections": 7}]}}`,
		`{"per_connection_buffer_limit_bytes": 1000, "dns_lookup_family": "V4_ONLY"}`,
		`{"outlier_detection": {"consecutive_5xx": 0, "enforcing_success_rate": 5}}`,
		`{"lb_policy": "RING_HASH", "ring_hash_lb_config": {"minimum_ring_size": 3}}`,
		`{"metadata": {"filter_metadata": {"istio": {"x": 1}, "y": {"z": [1]}}}}`,
		`{"upstream_connection_options": {"tcp_keepalive": {"keepalive_time": 9}}}`,
		`{"common_lb_config": {"healthy_panic_threshold": {"value": 7}}}`, `{"alt_stat_name": "alt"}`,
		`{"respect_dns_ttl": false, "dns_refresh_rate": "3s"}`,
		`{"typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {"@type": ` +
			`"type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions", ` +
			`"common_http_protocol_options": {"idle_timeout": "11s"}, "use_downstream_protocol_config": ` +
			`{"http2_protocol_options": {"max_concurrent_streams": 9}}}}}`,
		`{"filters": [{"name": "f", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.sni_cluster.v3.SniCluster"}}]}`,
		`{"transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": {"@type": ` +
			`"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "sni": "patched"}}}`,
		`{"name": "added", "type": "STATIC", "connect_timeout": "1s", "load_assignment": {"cluster_name": "added", ` +
			`"endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "10.1.1.1", ` +
			`"port_value": 80}}}}]}]}}`,
	}},
	{networking.EnvoyFilter_LISTENER, []string{
		`{"per_connection_buffer_limit_bytes": 2000}`,
		`{"socket_options": [{"level": 1, "name": 2, "int_value": 3}]}`,
		`{"listener_filters_timeout": "0s", "continue_on_listener_filters_timeout": false}`,
		`{"connection_balance_config": {"exact_balance": {}}}`, `{"tcp_backlog_size": 5, "freebind": true}`,
		`{"access_log": [{"name": "l"}]}`, `{"stat_prefix": "sp", "traffic_direction": "OUTBOUND"}`,
		`{"name": "added", "address": {"socket_address": {"address": "127.0.0.1", "port_value": 9999}}, "filter_chains": [{"filters": [{"name": "f"}]}]}`,
	}},
	{networking.EnvoyFilter_FILTER_CHAIN, []string{
		`{"transport_socket_connect_timeout": "3s"}`, `{"filter_chain_match": {"server_names": ["x.example.com"]}}`,
		`{"metadata": {"filter_metadata": {"a": {"b": "c"}}}}`, `{"name": "added", "filters": [{"name": "f"}]}`,
		`{"filter_chain_match": {"transport_protocol": "tls", "destination_port": 77}}`, `{"transport_socket": {"name": ` +
			`"envoy.transport_sockets.tls", "typed_config": {"@type": ` +
			`"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext", ` +
			`"common_tls_context": {"tls_params": {"ecdh_curves": ["P-256"]}}, "require_client_certificate": false}}}`,
	}},
	{networking.EnvoyFilter_NETWORK_FILTER, []string{
		`{"typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", ` +
			`"idle_timeout": "5s", "stat_prefix": "patched", "max_connect_attempts": 3}}`,
		`{"typed_config": {"@type": ` +
			`"type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", ` +
			`"common_http_protocol_options": {"idle_timeout": "0s", "max_requests_per_connection": 5}, ` +
			`"use_remote_address": false, "upgrade_configs": [{"upgrade_type": "x"}], "xff_num_trusted_hops": 4}}`,
		`{"name": "n", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.sni_cluster.v3.SniCluster"}}`,
	}},
	{networking.EnvoyFilter_HTTP_FILTER, []string{
		`{"name": "lua", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua", "inline_code": "x"}}`,
		`{"name": "envoy.filters.http.router", "typed_config": {"@type": ` +
			`"type.googleapis.com/envoy.extensions.filters.http.router.v3.Router", "dynamic_stats": false, ` +
			`"start_child_span": true}}`,
		`{"typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router", ` +
			`"suppress_envoy_headers": true, "strict_check_headers": ["x-envoy-max-retries"]}}`,
		`{"name": "ext", "config_discovery": {"config_source": {"ads": {}}, "type_urls": ["type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"]}}`,
		`{"name": "envoy.filters.http.cors", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua", "inline_code": "y"}}`,
		`{"name": "plain", "disabled": true}`,
	}},
	{networking.EnvoyFilter_ROUTE_CONFIGURATION, []string{
		`{"request_headers_to_add": [{"header": {"key": "a", "value": "b"}}]}`, `{"internal_only_headers": ["x"]}`, `{"ignore_port_in_host_matching": false}`,
	}},
	{networking.EnvoyFilter_VIRTUAL_HOST, []string{
		`{"require_tls": "ALL"}`, `{"retry_policy": {"num_retries": 0, "retry_on": "5xx"}}`,
		`{"domains": ["added.example.com"]}`,
		`{"name": "added", "domains": ["added.example.com"], "routes": [{"match": {"prefix": "/"}, "direct_response": {"status": 200}}]}`,
		`{"typed_per_filter_config": {"lua": {"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.LuaPerRoute", "disabled": true}}}`,
		`{"include_request_attempt_count": false, "virtual_clusters": [{"name": "v"}]}`,
	}},
	{networking.EnvoyFilter_HTTP_ROUTE, []string{
		`{"route": {"timeout": "3s", "retry_policy": {"num_retries": 9}}}`, `{"route": {"cluster": "patched"}}`,
		`{"direct_response": {"status": 201}}`, `{"match": {"prefix": "/patched"}}`,
		`{"decorator": {"operation": "patched", "propagate": false}}`,
		`{"name": "added", "match": {"path": "/added"}, "redirect": {"host_redirect": "x"}}`,
		`{"response_headers_to_remove": ["x-r"], "metadata": {"filter_metadata": {"istio": {"c": "d"}}}}`,
	}},
	{networking.EnvoyFilter_LISTENER_FILTER, []string{
		`{"name": "envoy.filters.listener.proxy_protocol", "typed_config": {"@type": ` +
			`"type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol"}}`,
	}},
	{networking.EnvoyFilter_EXTENSION_CONFIG, []string{
		`{"name": "ext", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua", "inline_code": "z"}}`,
	}},
}

// operations that go with what is patched; all others with nothing.
var operations = map[networking.EnvoyFilter_ApplyTo]string{
	networking.EnvoyFilter_CLUSTER:             "MERGE MERGE MERGE_AND_REPLACE_LIST ADD REMOVE",
	networking.EnvoyFilter_LISTENER:            "MERGE MERGE MERGE_AND_REPLACE_LIST ADD REMOVE",
	networking.EnvoyFilter_FILTER_CHAIN:        "MERGE MERGE MERGE_AND_REPLACE_LIST ADD REMOVE",
	networking.EnvoyFilter_NETWORK_FILTER:      "MERGE MERGE INSERT_BEFORE INSERT_AFTER INSERT_FIRST ADD REMOVE REPLACE",
	networking.EnvoyFilter_HTTP_FILTER:         "MERGE MERGE INSERT_BEFORE INSERT_AFTER INSERT_FIRST ADD REMOVE REPLACE",
	networking.EnvoyFilter_ROUTE_CONFIGURATION: "MERGE MERGE_AND_REPLACE_LIST",
	networking.EnvoyFilter_VIRTUAL_HOST:        "MERGE MERGE MERGE_AND_REPLACE_LIST ADD REMOVE",
	networking.EnvoyFilter_HTTP_ROUTE:          "MERGE MERGE MERGE_AND_REPLACE_LIST ADD REMOVE INSERT_BEFORE INSERT_AFTER INSERT_FIRST",
	networking.EnvoyFilter_LISTENER_FILTER:     "INSERT_FIRST INSERT_BEFORE ADD REMOVE", networking.EnvoyFilter_EXTENSION_CONFIG: "ADD",
}

func structOf(text string) *structpb.Struct {
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return s
}

func lastOf[V any](list []V) V { return list[len(list)-1] }

// namesItself are the values that can stand alone.
func namesItself(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return structOf(v).Fields["name"] == nil })
}

// patch is one of an EnvoyFilter.
func (g *gen) patch() *networking.EnvoyFilter_EnvoyConfigObjectPatch {
	type match = networking.EnvoyFilter_EnvoyConfigObjectMatch
	p := pick(g.r, patches)
	out := &networking.EnvoyFilter_EnvoyConfigObjectPatch{ApplyTo: p.to, Match: &match{}, Patch: &networking.EnvoyFilter_Patch{}}
	op := pick(g.r, words(operations[p.to]))
	out.Patch.Operation = networking.EnvoyFilter_Patch_Operation(networking.EnvoyFilter_Patch_Operation_value[op])
	value := structOf(pick(g.r, p.values))
	if named := namesItself(p.values); len(named) > 0 && op != "MERGE" && op != "MERGE_AND_REPLACE_LIST" {
		value = structOf(pick(g.r, named)) // Envoy refuses what has no name, or a route that matches nothing: differences.md says what becomes of it
	}
	if op != "REMOVE" {
		out.Patch.Value = value
	}
	m := out.Match
	m.Context = networking.EnvoyFilter_PatchContext(g.r.IntN(4))
	if g.chance(0.1) {
		m.Proxy = &networking.EnvoyFilter_ProxyMatch{ProxyVersion: pick(g.r, []string{`^1\.31.*`, `^1\.2.*`})}
	}
	some := func(p float64, of string) string {
		if g.chance(p) {
			return pick(g.r, words(of))
		}
		return ""
	}
	port := func() uint32 {
		if g.chance(0.3) {
			return pick(g.r, []uint32{80, 8080, 9000, 443, 15006})
		}
		return 0
	}
	switch p.to {
	case networking.EnvoyFilter_CLUSTER:
		m.ObjectTypes = &networking.EnvoyFilter_EnvoyConfigObjectMatch_Cluster{Cluster: &networking.EnvoyFilter_ClusterMatch{PortNumber: port(),
			Service: some(0.5, hostNames), Subset: some(0.15, "v1 v2"),
			Name: some(0.15, "outbound|80||web.alpha.svc.cluster.local BlackHoleCluster InboundPassthroughCluster PassthroughCluster inbound|80||")}}
		if op == "REMOVE" && m.GetCluster().Service == "" {
			m.GetCluster().Service = "web.alpha.svc.cluster.local"
		}
	case networking.EnvoyFilter_ROUTE_CONFIGURATION, networking.EnvoyFilter_VIRTUAL_HOST, networking.EnvoyFilter_HTTP_ROUTE:
		r := &networking.EnvoyFilter_RouteConfigurationMatch{
			PortNumber: port(), PortName: some(0.1, "http http-a"),
			Gateway: some(0.15, "istio-system/gw0 alpha/gw0"),
			Name:    some(0.15, "80 http.80 9000 InboundPassthroughCluster inbound|80||"),
		}
		if p.to != networking.EnvoyFilter_ROUTE_CONFIGURATION && g.chance(0.5) {
			r.Vhost = &networking.EnvoyFilter_RouteConfigurationMatch_VirtualHostMatch{
				Name:       some(0.5, "web.alpha.svc.cluster.local:80 a.example.com:80 allow_any inbound|http|80"),
				DomainName: some(0.2, "web.alpha a.example.com"),
			}
			if p.to == networking.EnvoyFilter_HTTP_ROUTE && g.chance(0.5) {
				r.Vhost.Route = &networking.EnvoyFilter_RouteConfigurationMatch_RouteMatch{
					Name:   some(0.3, "default x allow_any"),
					Action: networking.EnvoyFilter_RouteConfigurationMatch_RouteMatch_Action(g.r.IntN(4)),
				}
			}
		}
		m.ObjectTypes = &networking.EnvoyFilter_EnvoyConfigObjectMatch_RouteConfiguration{RouteConfiguration: r}
	case networking.EnvoyFilter_EXTENSION_CONFIG:
	default:
		l := &networking.EnvoyFilter_ListenerMatch{PortNumber: port(), Name: some(0.15, "virtualInbound virtualOutbound 0.0.0.0_80 10.96.1.1_9000")}
		if p.to == networking.EnvoyFilter_LISTENER_FILTER {
			l.ListenerFilter = some(0.5, "envoy.filters.listener.tls_inspector envoy.filters.listener.original_dst")
		} else if p.to != networking.EnvoyFilter_LISTENER && g.chance(0.7) {
			l.FilterChain = &networking.EnvoyFilter_ListenerMatch_FilterChainMatch{
				Name: some(0.1, "0.0.0.0_8080 virtualInbound"), Sni: some(0.08, "a.example.com"),
				TransportProtocol:    some(0.1, "tls raw_buffer"),
				ApplicationProtocols: some(0.05, "istio h2,http/1.1"), DestinationPort: port(),
			}
			if p.to == networking.EnvoyFilter_NETWORK_FILTER || p.to == networking.EnvoyFilter_HTTP_FILTER {
				name := pick(g.r,
					words("envoy.filters.network.http_connection_manager envoy.filters.network.tcp_proxy envoy.filters.network.http_connection_manager n"))
				if p.to == networking.EnvoyFilter_HTTP_FILTER {
					name = "envoy.filters.network.http_connection_manager"
				}
				l.FilterChain.Filter = &networking.EnvoyFilter_ListenerMatch_FilterMatch{Name: name}
				if p.to == networking.EnvoyFilter_HTTP_FILTER && g.chance(0.7) {
					l.FilterChain.Filter.SubFilter = &networking.EnvoyFilter_ListenerMatch_SubFilterMatch{
						Name: pick(g.r, words("envoy.filters.http.router envoy.filters.http.cors envoy.filters.http.fault istio.metadata_exchange")),
					}
				}
			}
		}
		m.ObjectTypes = &networking.EnvoyFilter_EnvoyConfigObjectMatch_Listener{Listener: l}
	}
	return out
}

// weighted picks a kind.
func weighted(r *rand.Rand) kind {
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}
	n := r.IntN(sum)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	panic("unreachable")
}
