package wasm

import (
	"fmt"
	"net/url"
	"path"
	"strings"
)

// target is an entry of allow.http.
type target struct {
	// scheme and path are empty where any will do.
	scheme, host, path string
}

// parseTarget reads `host`, `host:port` or `scheme://host/path`, each with `*` for any number of
// characters. A `*` of the host never reaches into the path.
func parseTarget(pattern string) (target, error) {
	scheme, rest, isURL := strings.Cut(pattern, "://")
	if !isURL {
		scheme, rest = "", pattern
	}
	host, p, hasPath := strings.Cut(rest, "/")
	if host == "" || strings.ContainsAny(host, "@?# ") || isURL && scheme != "http" && scheme != "https" {
		return target{}, fmt.Errorf("%q is neither a host, such as api.example.org, nor the beginning of a URL, such as https://api.example.org/*", pattern)
	}
	t := target{scheme: scheme, host: strings.ToLower(host)}
	if hasPath {
		t.path = "/" + p
	}
	return t, nil
}

// covers reports whether a URL is granted. u is clean: see checkURL.
func (t target) covers(u *url.URL) bool {
	host := strings.ToLower(u.Host)
	if !strings.Contains(t.host, ":") {
		host = strings.ToLower(u.Hostname())
	}
	whole := u.EscapedPath()
	if u.RawQuery != "" {
		whole += "?" + u.RawQuery
	}
	return (t.scheme == "" || t.scheme == u.Scheme) && glob(t.host, host) && (t.path == "" || glob(t.path, whole))
}

// checkURL refuses what could be read in two ways.
func checkURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q: only http and https can be fetched", raw)
	case u.Host == "" || u.User != nil || u.Opaque != "":
		return nil, fmt.Errorf("%q has no host, or a user", raw)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	if clean := path.Clean(u.Path); clean != u.Path && clean+"/" != u.Path {
		return nil, fmt.Errorf("%q: the path has empty segments or dots; write it as %s", raw, clean)
	}
	return u, nil
}

// glob reports whether the whole of s is what the pattern describes; `*` stands for any number of
// characters.
func glob(pattern, s string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return s == first
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for {
		var piece string
		piece, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(s, piece)
		}
		at := strings.Index(s, piece)
		if at < 0 {
			return false
		}
		s = s[at+len(piece):]
	}
}
