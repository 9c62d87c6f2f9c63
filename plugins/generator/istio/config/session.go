package config

import "strings"

// Labels of services whose sessions stay with an endpoint, one that drains too: their values name a
// cookie (NAME or NAME:PATH), or a header.
const (
	cookieLabel = "istio.io/persistent-session"
	headerLabel = "istio.io/persistent-session-header"
)

// Session is what says in a request which endpoint has its session: a cookie, or a header.
type Session struct{ Cookie, Path, Header string }

// Session is that of the service's requests; false where sessions stay nowhere. A cookie goes
// before a header.
func (s *Service) Session() (Session, bool) {
	if cookie := s.Labels[cookieLabel]; cookie != "" {
		name, path, given := strings.Cut(cookie, ":")
		if !given {
			path = "/"
		}
		return Session{Cookie: name, Path: path}, true
	}
	header := s.Labels[headerLabel]
	return Session{Header: header}, header != ""
}
