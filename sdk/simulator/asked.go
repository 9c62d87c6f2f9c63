package simulator

import (
	"cmp"
	"net/netip"

	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// What policies ask of a connection or of a request, if there is one.

func (w *walk) matchesURLPath(m *matcherv3.PathMatcher) bool {
	return w.stream != nil && matchString(m.GetPath(), w.stream.plainPath())
}

func (w *walk) matchesMetadata(m *matcherv3.MetadataMatcher) bool {
	if w.stream == nil {
		return metadata{}.matches(m)
	}
	return w.stream.metadata.matches(m)
}

func (w *walk) matchesSourced(m *rbacconfigv3.SourcedMetadata) bool {
	if m.GetMetadataSource() != rbacconfigv3.MetadataSource_DYNAMIC {
		w.assume("metadata of the route doesn't match a policy")
		return false
	}
	return w.matchesMetadata(m.GetMetadataMatcher())
}

// serverName is what the client asks for, if the proxy has seen it.
func (w *walk) serverName() string {
	if w.connection.TLS != nil && !w.opaque {
		return cmp.Or(w.sni, w.connection.TLS.SNI)
	}
	return w.sni
}

func (w *walk) remote() netip.Addr {
	if w.stream == nil {
		return w.connection.Source.Addr()
	}
	return w.stream.remote
}

// external: a server of one's own is asked, if what earlier filters found says so.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/ext_authz_filter
func (w *walk) external(name string, f *extauthzv3.ExtAuthz) {
	var route extauthzv3.ExtAuthzPerRoute
	if w.perRoute(name, &route) && route.GetDisabled() {
		w.step("filter", name, "it is off for this route")
		return
	}
	if f.FilterEnabledMetadata != nil && !w.stream.metadata.matches(f.FilterEnabledMetadata) {
		w.step("filter", name, "it isn't asked: the metadata that it wants isn't there")
		return
	}
	server := cmp.Or(f.GetGrpcService().GetEnvoyGrpc().GetClusterName(), f.GetHttpService().GetServerUri().GetCluster())
	if !w.drawn(f.GetFilterEnabled().GetDefaultValue(), f.FilterEnabled != nil) {
		return
	}
	w.step("filter", name, "it asks %s", server)
	w.assume("%s, which %s asks, lets the request through as it is", server, name)
}
