package route

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statefulv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/stateful_session/v3"
	cookiev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/stateful_session/cookie/v3"
	headerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/stateful_session/header/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/type/http/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// SessionFilter is the filter that sends requests to the endpoint of their session.
const SessionFilter = "envoy.filters.http.stateful_session"

// SessionFor are the settings of a virtual host for the filter. Cookies last as long as the client
// runs: how long an endpoint does nobody knows.
func SessionFor(s config.Session) map[string]*anypb.Any {
	var state *corev3.TypedExtensionConfig
	if s.Cookie != "" {
		state = &corev3.TypedExtensionConfig{
			Name:        "envoy.http.stateful_session.cookie",
			TypedConfig: encode.Any(&cookiev3.CookieBasedSessionState{Cookie: &httpv3.Cookie{Name: s.Cookie, Path: s.Path}}),
		}
	} else {
		state = &corev3.TypedExtensionConfig{
			Name:        "envoy.http.stateful_session.header",
			TypedConfig: encode.Any(&headerv3.HeaderBasedSessionState{Name: s.Header}),
		}
	}
	return map[string]*anypb.Any{SessionFilter: encode.Any(&statefulv3.StatefulSessionPerRoute{
		Override: &statefulv3.StatefulSessionPerRoute_StatefulSession{StatefulSession: &statefulv3.StatefulSession{SessionState: state}},
	})}
}
