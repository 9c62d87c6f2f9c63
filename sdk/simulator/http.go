package simulator

import (
	"net/http"
	"strconv"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// http follows a request through a connection manager.
func (w *walk) http(m *hcmv3.HttpConnectionManager) {
	switch {
	case w.opaque:
		w.end(Closed, "the filter chain expects HTTP in plain text and the client speaks TLS")
		return
	case !w.connection.http():
		w.end(Closed, "the filter chain expects HTTP and the client speaks something else")
		return
	case w.stream == nil:
		w.end(Unknown, "the filter chain routes HTTP: which request?")
		return
	}
	if fault := w.stream.receive(m, w.local.Port()); fault != "" {
		w.answer(http.StatusBadRequest, "", fault, "the request is malformed")
		return
	}
	if !w.routing(m) {
		return
	}
	w.resolve()
	for _, f := range m.HttpFilters {
		if w.out.Verdict != "" {
			return
		}
		w.filtered(f)
	}
	if w.out.Verdict == "" {
		w.end(Unknown, "no filter routes the request")
	}
}

// routing finds the route configuration.
func (w *walk) routing(m *hcmv3.HttpConnectionManager) bool {
	name := m.GetRds().GetRouteConfigName()
	switch {
	case m.GetRouteConfig() != nil:
		w.stream.routes = m.GetRouteConfig()
	case name != "":
		w.stream.routes = w.routes(name)
	default:
		w.end(Unknown, "routes are chosen by scopes")
		return false
	}
	if w.stream.routes == nil {
		w.stream.routes = &routev3.RouteConfiguration{Name: name}
		w.step("routes", name, "there is no such route configuration")
		return true
	}
	w.out.Way.RouteConfiguration = w.stream.routes.Name
	w.step("routes", w.stream.routes.Name, "%d virtual hosts", len(w.stream.routes.VirtualHosts))
	return true
}

// filtered runs a filter.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/http_filters
func (w *walk) filtered(f *hcmv3.HttpFilter) {
	config := w.extension(f.Name, f.GetTypedConfig(), f.GetConfigDiscovery())
	disabled := f.Disabled
	if override := w.override(f.Name); override != nil {
		disabled = override.Disabled
	}
	if disabled {
		w.step("filter", f.Name, "it is off for this route")
		return
	}
	var (
		router routerv3.Router
		cors   corsv3.Cors
		fault  faultv3.HTTPFault
		jwt    jwtv3.JwtAuthentication
		rbac   rbacv3.RBAC
		asks   extauthzv3.ExtAuthz
	)
	switch {
	case typed(config, &router):
		w.forward()
	case typed(config, &cors):
		w.cors(f.Name)
	case typed(config, &fault):
		w.fault(f.Name, &fault)
	case typed(config, &jwt):
		w.authenticate(f.Name, &jwt)
	case typed(config, &rbac):
		w.authorize(f.Name, &rbac)
	case typed(config, &asks):
		w.external(f.Name, &asks)
	case harmless(config):
	default:
		w.assume("filter %s lets the request through as it is", f.Name)
	}
}

// override is what the route says of a filter, as FilterConfig; nil: nothing of that kind.
func (w *walk) override(name string) *routev3.FilterConfig {
	var c routev3.FilterConfig
	if !w.perRoute(name, &c) {
		return nil
	}
	return &c
}

// perRoute reads what the route, the virtual host or all of them say of a filter, the closest
// first.
func (w *walk) perRoute(name string, into proto.Message) bool {
	s := w.stream
	a := s.route.GetTypedPerFilterConfig()[name]
	if a == nil {
		a = s.host.GetTypedPerFilterConfig()[name]
	}
	if a == nil {
		a = s.routes.GetTypedPerFilterConfig()[name]
	}
	var wrapped routev3.FilterConfig
	if !typed(a, into) {
		return typed(a, &wrapped) && typed(wrapped.Config, into)
	}
	return true
}

// answer ends the request with an answer of the proxy's own. Headers that the route adds are on it.
// Those who speak gRPC are told in its way.
func (w *walk) answer(status int, body, details, format string, args ...any) {
	w.end(Answered, format, args...)
	if w.out.Answer.Header == nil {
		w.out.Answer.Header = http.Header{}
	}
	if w.stream.grpc() {
		w.out.Answer.Header.Set("Grpc-Status", strconv.Itoa(int(grpcStatus(status))))
		put(w.out.Answer.Header, "Grpc-Message", body)
		status, body = http.StatusOK, ""
	}
	w.out.Answer.Status, w.out.Answer.Body, w.out.Answer.Details = status, body, details
}

// grpcStatus: https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md
func grpcStatus(http int) codes.Code {
	switch http {
	case 400:
		return codes.Internal
	case 401:
		return codes.Unauthenticated
	case 403:
		return codes.PermissionDenied
	case 404:
		return codes.Unimplemented
	case 429, 502, 503, 504:
		return codes.Unavailable
	}
	return codes.Unknown
}
