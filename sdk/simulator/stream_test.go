package simulator

import (
	"net/http"
	"testing"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

func manager(t *testing.T, text string) *hcmv3.HttpConnectionManager {
	t.Helper()
	m := &hcmv3.HttpConnectionManager{}
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestReceive(t *testing.T) {
	for name, c := range map[string]struct{ manager, host, path, wantHost, wantPath, fault string }{
		"as it is":                 {`{}`, "a:80", "/a/../b", "a:80", "/a/../b", ""},
		"no host":                  {`{}`, "", "/", "", "/", "missing_host_header"},
		"any port":                 {`{"stripAnyHostPort": true}`, "a:81", "/", "a", "/", ""},
		"the listener's port":      {`{"stripMatchingHostPort": true}`, "a:80", "/", "a", "/", ""},
		"not the listener's port":  {`{"stripMatchingHostPort": true}`, "a:81", "/", "a:81", "/", ""},
		"a dot at the end":         {`{"stripTrailingHostDot": true}`, "a.:80", "/", "a:80", "/", ""},
		"dots":                     {`{"normalizePath": true}`, "a", "/a/./b/../c?d=/../", "a", "/a/c?d=/../", ""},
		"dots that lead out":       {`{"normalizePath": true}`, "a", "/../%2e%2e/a", "a", "/a", ""},
		"escapes":                  {`{"normalizePath": true}`, "a", "/%61%20%2f", "a", "/a%20%2f", ""},
		"a folder":                 {`{"normalizePath": true}`, "a", "/a/b/..", "a", "/a/", ""},
		"backslashes":              {`{"normalizePath": true}`, "a", `/a\b`, "a", "/a/b", ""},
		"slashes stay":             {`{"normalizePath": true}`, "a", "//a", "a", "//a", ""},
		"slashes merge":            {`{"normalizePath": true, "mergeSlashes": true}`, "a", "//a///b", "a", "/a/b", ""},
		"escaped slashes":          {`{"pathWithEscapedSlashesAction": "UNESCAPE_AND_FORWARD", "normalizePath": true}`, "a", "/a%2fb%5Cc", "a", "/a/b/c", ""},
		"escaped slashes, refused": {`{"pathWithEscapedSlashesAction": "REJECT_REQUEST"}`, "a", "/a%2Fb", "a", "/a%2Fb", "path_normalization_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(Request{Host: c.host, Path: c.path}, Connection{})
			fault := s.receive(manager(t, c.manager), 80)
			if fault != c.fault || s.Host != c.wantHost || s.Path != c.wantPath {
				t.Errorf("%q %s %s, want %q %s %s", fault, s.Host, s.Path, c.fault, c.wantHost, c.wantPath)
			}
		})
	}
}

func TestOrigin(t *testing.T) {
	for name, c := range map[string]struct{ manager, forwarded, want string }{
		"nobody in between":         {`{}`, "", "10.0.0.9"},
		"the last one":              {`{}`, "1.1.1.1, 2.2.2.2", "2.2.2.2"},
		"behind a trusted one":      {`{"xffNumTrustedHops": 1}`, "1.1.1.1, 2.2.2.2", "1.1.1.1"},
		"more trust than there are": {`{"xffNumTrustedHops": 2}`, "1.1.1.1, 2.2.2.2", "10.0.0.9"},
		"an edge":                   {`{"useRemoteAddress": true}`, "1.1.1.1", "10.0.0.9"},
		"an edge behind another":    {`{"useRemoteAddress": true, "xffNumTrustedHops": 1}`, "1.1.1.1, 2.2.2.2", "2.2.2.2"},
		"nonsense":                  {`{}`, "me", "10.0.0.9"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Request{Host: "a", Header: http.Header{}}
			put(r.Header, "X-Forwarded-For", c.forwarded)
			s := newStream(r, Connection{Source: addr("10.0.0.9:1")})
			if got := s.origin(manager(t, c.manager)).String(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
