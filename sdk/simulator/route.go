package simulator

import (
	"cmp"
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// resolve chooses the virtual host and the route, anew if a filter asks for it.
func (w *walk) resolve() {
	s, way := w.stream, &w.out.Way
	s.route, way.VirtualHost, way.Route, way.RouteNumber = nil, "", "", 0
	var domain string
	s.host, domain = virtualHost(s.routes, s.Host)
	if s.host == nil {
		w.step("virtual host", "none", "of %s has a domain for %s", s.routes.Name, s.Host)
		return
	}
	way.VirtualHost = s.host.Name
	w.step("virtual host", s.host.Name, "%s is in %s", s.Host, domain)
	if s.host.Matcher != nil {
		w.assume("the matching tree of virtual host %s chooses no route", s.host.Name)
	}
	for i, r := range s.host.Routes {
		if why, ok := w.matches(r.Match); ok {
			s.route = r
			way.Route, way.RouteNumber = cmp.Or(r.Name, fmt.Sprint("#", i+1)), i+1
			w.step("route", way.Route, "the first that matches: %s%s", why, from(r))
			return
		}
	}
	w.step("route", "none", "of the virtual host's %d matches", len(s.host.Routes))
}

// from names the resource that a route comes from, where those who made it say so, as Istio's
// control planes do.
func from(r *routev3.Route) string {
	if name := r.GetMetadata().GetFilterMetadata()["istio"].GetFields()["config"].GetStringValue(); name != "" {
		return "; from " + name
	}
	return ""
}

// matches reports whether a route is for the request, and why.
//
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/route/v3/route_components.proto#config-route-v3-routematch
func (w *walk) matches(m *routev3.RouteMatch) (why string, ok bool) {
	s := w.stream
	why, ok = s.matchesPath(m)
	switch {
	case !ok,
		!every(m.GetHeaders(), s.matchesHeader),
		!every(m.GetQueryParameters(), s.matchesQuery),
		!every(m.GetCookies(), s.matchesCookie),
		m.GetGrpc() != nil && !s.grpc(),
		m.GetTlsContext() != nil && !w.matchesTLS(m.TlsContext),
		!every(m.GetDynamicMetadata(), s.metadata.matches):
		return "", false
	}
	if len(m.GetFilterState()) > 0 {
		w.assume("filter state doesn't match a route that asks for it")
		return "", false
	}
	for _, h := range m.GetHeaders() {
		why += ", header " + h.Name
	}
	for _, q := range m.GetQueryParameters() {
		why += ", parameter " + q.Name
	}
	if len(m.GetDynamicMetadata()) > 0 {
		why += ", metadata"
	}
	return why, w.drawn(m.GetRuntimeFraction().GetDefaultValue(), m.GetRuntimeFraction() != nil)
}

// drawn: a route for a part of requests. The walk takes those that are for more than half.
func (w *walk) drawn(f *typev3.FractionalPercent, asked bool) bool {
	p := fraction(f)
	if asked && p > 0 && p < 100 {
		w.assume("the request isn't among the %g %% that chance takes elsewhere", min(p, 100-p))
	}
	return !asked || p >= 50
}

// fraction in percent.
func fraction(f *typev3.FractionalPercent) float64 {
	n := float64(f.GetNumerator())
	switch f.GetDenominator() {
	case typev3.FractionalPercent_TEN_THOUSAND:
		return min(n/100, 100)
	case typev3.FractionalPercent_MILLION:
		return min(n/10_000, 100)
	}
	return min(n, 100)
}

func (s *stream) matchesPath(m *routev3.RouteMatch) (why string, ok bool) {
	p := s.plainPath()
	fold := func(s string) string { return s }
	if m.CaseSensitive != nil && !m.CaseSensitive.Value {
		fold = strings.ToLower
	}
	switch spec := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		return "prefix " + spec.Prefix, strings.HasPrefix(fold(p), fold(spec.Prefix))
	case *routev3.RouteMatch_Path:
		return "path " + spec.Path, fold(p) == fold(spec.Path)
	case *routev3.RouteMatch_SafeRegex:
		return "regex " + spec.SafeRegex.GetRegex(), matchRegex(spec.SafeRegex.GetRegex(), p)
	case *routev3.RouteMatch_PathSeparatedPrefix:
		rest, ok := strings.CutPrefix(fold(p), fold(spec.PathSeparatedPrefix))
		return "path prefix " + spec.PathSeparatedPrefix, ok && (rest == "" || rest[0] == '/')
	case *routev3.RouteMatch_ConnectMatcher_:
		return "CONNECT", s.Method == "CONNECT"
	}
	return "", false
}

func (s *stream) matchesQuery(m *routev3.QueryParameterMatcher) bool {
	values, has := s.query()[m.Name]
	switch spec := m.GetQueryParameterMatchSpecifier().(type) {
	case *routev3.QueryParameterMatcher_PresentMatch:
		return has == spec.PresentMatch
	case *routev3.QueryParameterMatcher_StringMatch:
		return has && matchString(spec.StringMatch, values[0])
	}
	return has
}

func (s *stream) matchesCookie(m *routev3.CookieMatcher) bool {
	value, has := s.cookie(m.Name)
	return has && matchString(m.GetStringMatch(), value) != m.InvertMatch
}

func (s *stream) cookie(name string) (string, bool) {
	for _, line := range s.Header["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			if key, value, _ := strings.Cut(strings.TrimSpace(pair), "="); key == name {
				return strings.Trim(value, `"`), true
			}
		}
	}
	return "", false
}

func (s *stream) grpc() bool {
	kind, _ := s.header("content-type")
	return kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+")
}

func (w *walk) matchesTLS(m *routev3.RouteMatch_TlsContextMatchOptions) bool {
	presented := w.connection.TLS != nil && !w.opaque && w.connection.TLS.Peer != nil
	return (m.Presented == nil || m.Presented.Value == presented) && (m.Validated == nil || m.Validated.Value == presented)
}
