package simulator

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// stream is a request on its way through HTTP filters.
type stream struct {
	Request
	scheme   string
	metadata metadata
	// remote is who sent it, perhaps by way of other proxies.
	remote netip.Addr

	routes *routev3.RouteConfiguration
	host   *routev3.VirtualHost
	route  *routev3.Route
}

func newStream(r Request, c Connection) *stream {
	s := &stream{Request: r, scheme: "http", metadata: metadata{}, remote: c.Source.Addr()}
	s.Header = http.Header{}
	for name, values := range r.Header {
		s.Header[http.CanonicalHeaderKey(name)] = append([]string(nil), values...)
	}
	if s.Method == "" {
		s.Method = http.MethodGet
	}
	if s.Path == "" {
		s.Path = "/"
	}
	return s
}

// header is the value of a header, also of HTTP/2's own, and whether it is there.
func (s *stream) header(name string) (string, bool) {
	switch strings.ToLower(name) {
	case ":authority", "host":
		return s.Host, true
	case ":path":
		return s.Path, true
	case ":method":
		return s.Method, true
	case ":scheme":
		return s.scheme, true
	}
	values, ok := s.Header[http.CanonicalHeaderKey(name)]
	return strings.Join(values, ","), ok
}

func (s *stream) matchesHeader(m *routev3.HeaderMatcher) bool {
	value, has := s.header(m.Name)
	return matchHeader(m, value, has)
}

// plainPath is the path without query and fragment.
func (s *stream) plainPath() string { return s.Path[:strings.IndexAny(s.Path+"?", "?#")] }

// query are the parameters as they stand there, escaped.
func (s *stream) query() url.Values {
	values := url.Values{}
	_, query, _ := strings.Cut(s.Path, "?")
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); name != "" {
			values.Add(name, value)
		}
	}
	return values
}

// receive does what the connection manager does to each request before the filters. It returns what
// is wrong with it.
//
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto
func (s *stream) receive(m *hcmv3.HttpConnectionManager, port uint16) (fault string) {
	if s.Host == "" {
		return "missing_host_header"
	}
	s.stripHost(m, port)
	s.remote = s.origin(m)
	return s.normalize(m)
}

func (s *stream) stripHost(m *hcmv3.HttpConnectionManager, port uint16) {
	host, given := hostPort(s.Host)
	if given != "" && (m.GetStripAnyHostPort() || m.StripMatchingHostPort && given == portText(port)) {
		s.Host = host
	}
	if host, given := hostPort(s.Host); m.StripTrailingHostDot && strings.HasSuffix(host, ".") {
		s.Host = strings.TrimSuffix(host, ".")
		if given != "" {
			s.Host += ":" + given
		}
	}
}

// hostPort is a host with the port that it names; empty: it names none.
func hostPort(host string) (name, port string) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return host, ""
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	return name, port
}

// origin is the address that the request comes from, as far as proxies on the way are trusted.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_conn_man/headers#x-forwarded-for
func (s *stream) origin(m *hcmv3.HttpConnectionManager) netip.Addr {
	text, _ := s.header("x-forwarded-for")
	var hops []string
	if text != "" {
		hops = strings.Split(text, ",")
	}
	back := int(m.XffNumTrustedHops)
	if m.GetUseRemoteAddress().GetValue() {
		back--
	}
	if at := len(hops) - 1 - back; back >= 0 && at >= 0 {
		if a, err := netip.ParseAddr(strings.TrimSpace(hops[at])); err == nil {
			return a
		}
	}
	return s.remote
}

var (
	slashes        = regexp.MustCompile(`/{2,}`)
	escapedSlashes = regexp.MustCompile(`(?i)%2f|%5c`)
	escapes        = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
)

// unreserved undoes an escape that needn't be one (RFC 3986, section 2.3).
func unreserved(escape string) string {
	plain, err := url.PathUnescape(escape)
	if err == nil && strings.ContainsAny(plain, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") {
		return plain
	}
	return escape
}

func (s *stream) normalize(m *hcmv3.HttpConnectionManager) (fault string) {
	plain := s.plainPath()
	rest := s.Path[len(plain):]
	if escapedSlashes.MatchString(plain) {
		switch m.PathWithEscapedSlashesAction {
		case hcmv3.HttpConnectionManager_REJECT_REQUEST:
			return "path_normalization_failed"
		case hcmv3.HttpConnectionManager_UNESCAPE_AND_FORWARD, hcmv3.HttpConnectionManager_UNESCAPE_AND_REDIRECT:
			plain = escapedSlashes.ReplaceAllStringFunc(plain,
				func(e string) string { return map[bool]string{true: "/", false: `\`}[strings.EqualFold(e, "%2f")] })
		}
	}
	if m.GetNormalizePath().GetValue() && strings.HasPrefix(plain, "/") {
		plain = clean(strings.ReplaceAll(escapes.ReplaceAllStringFunc(plain, unreserved), `\`, "/"))
	}
	if m.MergeSlashes {
		plain = slashes.ReplaceAllString(plain, "/")
	}
	s.Path = plain + rest
	return ""
}

// clean removes dots as RFC 3986, section 6, says. Doubled slashes stay.
func clean(p string) string {
	segments := []string{}
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	for i, part := range parts {
		last := i == len(parts)-1
		switch part {
		case ".":
			if last {
				segments = append(segments, "")
			}
		case "..":
			segments = segments[:max(0, len(segments)-1)]
			if last {
				segments = append(segments, "")
			}
		default:
			segments = append(segments, part)
		}
	}
	return "/" + strings.Join(segments, "/")
}
