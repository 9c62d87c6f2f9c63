package simulator

import (
	"net/http"

	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// cors answers browsers that ask whether they may, and puts on other answers what browsers look
// for.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/cors_filter
func (w *walk) cors(name string) {
	var p corsv3.CorsPolicy
	origin, has := w.stream.header("origin")
	if !has || !w.perRoute(name, &p) || p.FilterEnabled != nil && fraction(p.FilterEnabled.DefaultValue) < 100 {
		return
	}
	allowed := some(p.AllowOriginStringMatch, func(m *matcherv3.StringMatcher) bool { return matchString(m, origin) })
	h := http.Header{}
	if allowed {
		h.Set("Access-Control-Allow-Origin", origin)
		if p.AllowCredentials.GetValue() {
			h.Set("Access-Control-Allow-Credentials", "true")
		}
	}
	if !w.stream.preflight() {
		if allowed {
			put(h, "Access-Control-Expose-Headers", p.ExposeHeaders)
			w.out.Answer.Header = h
		}
		return
	}
	if !allowed && (p.ForwardNotMatchingPreflights == nil || p.ForwardNotMatchingPreflights.Value) {
		return
	}
	if allowed {
		put(h, "Access-Control-Allow-Methods", p.AllowMethods)
		put(h, "Access-Control-Allow-Headers", p.AllowHeaders)
		put(h, "Access-Control-Max-Age", p.MaxAge)
	}
	w.out.Answer.Header = h
	w.answer(http.StatusOK, "", "cors_response", "a browser asks whether it may: origin %s", origin)
}

// preflight reports whether a browser asks before it sends what it wants to.
func (s *stream) preflight() bool {
	method, _ := s.header("access-control-request-method")
	origin, _ := s.header("origin")
	return s.Method == http.MethodOptions && method != "" && origin != ""
}

func put(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}
