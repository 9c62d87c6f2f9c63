package simulator

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// forward does what the route says. It is the filter router.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/router_filter
func (w *walk) forward() {
	s := w.stream
	if s.host != nil && s.host.RequireTls != routev3.VirtualHost_NONE && s.scheme != "https" {
		w.redirectTo(http.StatusMovedPermanently, "https://"+s.Host+s.Path)
		return
	}
	switch action := s.route.GetAction().(type) {
	case *routev3.Route_Route:
		w.upstream(action.Route)
	case *routev3.Route_Redirect:
		w.answered(nil)
		w.redirectTo(redirectStatus[action.Redirect.ResponseCode], s.location(action.Redirect, s.route.Match))
	case *routev3.Route_DirectResponse:
		w.answered(nil)
		d := action.DirectResponse
		w.answer(int(d.Status), source(d.Body), "direct_response", "the route answers itself")
	case nil:
		if s.route != nil {
			w.end(Unknown, "the route has no action")
			return
		}
		w.answer(http.StatusNotFound, "", "route_not_found", "no route matches %s %s%s", s.Method, s.Host, s.Path)
	default:
		w.end(Unknown, "the route's action is for servers that are no proxies")
	}
}

// answered puts on answers what the route, its host and its table say.
func (w *walk) answered(c *routev3.WeightedCluster_ClusterWeight) {
	if w.out.Answer.Header == nil {
		w.out.Answer.Header = http.Header{}
	}
	for _, of := range w.stream.mutations(c) {
		of.response(w.out.Answer.Header, w.stream)
	}
}

var redirectStatus = map[routev3.RedirectAction_RedirectResponseCode]int{
	routev3.RedirectAction_MOVED_PERMANENTLY:  http.StatusMovedPermanently,
	routev3.RedirectAction_FOUND:              http.StatusFound,
	routev3.RedirectAction_SEE_OTHER:          http.StatusSeeOther,
	routev3.RedirectAction_TEMPORARY_REDIRECT: http.StatusTemporaryRedirect,
	routev3.RedirectAction_PERMANENT_REDIRECT: http.StatusPermanentRedirect,
}

func (w *walk) redirectTo(status int, location string) {
	w.answer(status, "", "direct_response", "the route redirects to %s", location)
	w.out.Answer.Header.Set("Location", location)
}

// location:
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/route/v3/route_components.proto#config-route-v3-redirectaction
func (s *stream) location(r *routev3.RedirectAction, m *routev3.RouteMatch) string {
	scheme := cmp.Or(r.GetSchemeRedirect(), s.scheme)
	if r.GetHttpsRedirect() {
		scheme = "https"
	}
	host, port := hostPort(cmp.Or(r.HostRedirect, s.Host))
	switch {
	case r.PortRedirect != 0:
		port = portText(uint16(r.PortRedirect))
	case scheme == s.scheme || r.HostRedirect != "":
	case s.scheme == "http" && port == "80", s.scheme == "https" && port == "443":
		port = ""
	}
	if port != "" {
		host += ":" + port
	}
	return scheme + "://" + host + s.redirectPath(r, m)
}

func (s *stream) redirectPath(r *routev3.RedirectAction, m *routev3.RouteMatch) string {
	plain := s.plainPath()
	_, query, has := strings.Cut(s.Path, "?")
	switch {
	case r.GetPathRedirect() != "":
		plain = r.GetPathRedirect()
		has = has && !strings.Contains(plain, "?")
	case r.GetPrefixRewrite() != "":
		plain = rewritePrefix(plain, m, r.GetPrefixRewrite())
	case r.GetRegexRewrite() != nil:
		plain = rewriteRegex(plain, r.GetRegexRewrite())
	}
	if has && !r.StripQuery {
		plain += "?" + query
	}
	return plain
}

// rewritePrefix replaces what a route has matched.
func rewritePrefix(plain string, m *routev3.RouteMatch, by string) string {
	if m.GetSafeRegex() != nil {
		return by // for all of it
	}
	matched := cmp.Or(m.GetPrefix(), m.GetPath(), m.GetPathSeparatedPrefix())
	if len(matched) > len(plain) {
		return plain
	}
	return by + plain[len(matched):]
}

var group = regexp.MustCompile(`\\(\d|\\)`)

// rewriteRegex:
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/type/matcher/v3/regex.proto#type-matcher-v3-regexmatchandsubstitute
func rewriteRegex(s string, r *matcherv3.RegexMatchAndSubstitute) string {
	re, err := regexp.Compile(r.GetPattern().GetRegex())
	if err != nil {
		return s
	}
	by := group.ReplaceAllStringFunc(strings.ReplaceAll(r.Substitution, "$", "$$"), func(g string) string {
		if g == `\\` {
			return `\`
		}
		return "${" + g[1:] + "}"
	})
	return re.ReplaceAllString(s, by)
}

// source of text; what stands in files and variables isn't read.
func source(d *corev3.DataSource) string {
	if b := d.GetInlineBytes(); b != nil {
		return string(b)
	}
	return d.GetInlineString()
}
