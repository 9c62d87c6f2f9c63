package simulator

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

func TestLocation(t *testing.T) {
	for name, c := range map[string]struct {
		redirect, scheme, host, want string
	}{
		"host":                        {`{"hostRedirect": "b.example"}`, "http", "a.example", "http://b.example/x/y?q"},
		"scheme":                      {`{"httpsRedirect": true}`, "http", "a.example", "https://a.example/x/y?q"},
		"scheme, with the port of it": {`{"httpsRedirect": true}`, "http", "a.example:80", "https://a.example/x/y?q"},
		"scheme, with another port":   {`{"schemeRedirect": "https"}`, "http", "a.example:8080", "https://a.example:8080/x/y?q"},
		"back to plain text":          {`{"schemeRedirect": "http"}`, "https", "a.example:443", "http://a.example/x/y?q"},
		"port":                        {`{"portRedirect": 8443}`, "http", "a.example:80", "http://a.example:8443/x/y?q"},
		"path":                        {`{"pathRedirect": "/new"}`, "http", "a.example", "http://a.example/new?q"},
		"path with a query":           {`{"pathRedirect": "/new?other"}`, "http", "a.example", "http://a.example/new?other"},
		"without the query":           {`{"pathRedirect": "/new", "stripQuery": true}`, "http", "a.example", "http://a.example/new"},
		"prefix":                      {`{"prefixRewrite": "/z"}`, "http", "a.example", "http://a.example/z/y?q"},
		"regex": {
			`{"regexRewrite": {"pattern": {"regex": "/(x)/(y)"}, "substitution": "/\\2/\\1"}}`, "http", "a.example",
			"http://a.example/y/x?q",
		},
		"IPv6": {`{"portRedirect": 81}`, "http", "[::1]:80", "http://[::1]:81/x/y?q"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &routev3.RedirectAction{}
			if err := protojson.Unmarshal([]byte(c.redirect), r); err != nil {
				t.Fatal(err)
			}
			s := newStream(Request{Host: c.host, Path: "/x/y?q"}, Connection{})
			s.scheme = c.scheme
			m := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/x"}}
			if got := s.location(r, m); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestRewriteRegex(t *testing.T) {
	r := &routev3.RouteAction{}
	if err := protojson.Unmarshal([]byte(`{"regexRewrite": {"pattern": {"regex": "a(.)"}, "substitution": "$\\1\\\\\\0"}}`), r); err != nil {
		t.Fatal(err)
	}
	if got := rewriteRegex("/ab/ac", r.RegexRewrite); got != `/$b\ab/$c\ac` {
		t.Error(got)
	}
}
