package simulator

import (
	"net/http"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

func TestVirtualHosts(t *testing.T) {
	rc := &routev3.RouteConfiguration{}
	for _, d := range []string{"*", "*.example", "*.b.example", "a.*", "a.b.*", "a.example", "port.example:8080", "*-x.example"} {
		rc.VirtualHosts = append(rc.VirtualHosts, &routev3.VirtualHost{Name: d, Domains: []string{d}})
	}
	for host, want := range map[string]string{
		"a.example": "a.example", "A.EXAMPLE": "a.example", "c.example": "*.example", "c.b.example": "*.b.example", "a.c.org": "a.*", "a.b.org": "a.b.*",
		"a.b.example": "*.b.example", "org": "*", ".example": "*", "port.example:8080": "port.example:8080", "port.example": "*.example",
		"a.example:80": "a.*", "c-x.example": "*-x.example",
	} {
		v, _ := virtualHost(rc, host)
		if v.GetName() != want {
			t.Errorf("%s: virtual host %q, want %q", host, v.GetName(), want)
		}
	}
	rc.IgnorePortInHostMatching = true
	if v, _ := virtualHost(rc, "a.example:80"); v.GetName() != "a.example" {
		t.Errorf("a.example:80 without its port: virtual host %q", v.GetName())
	}
}

func TestRouteMatches(t *testing.T) {
	h := func(name, value string) http.Header { return http.Header{http.CanonicalHeaderKey(name): {value}} }
	for name, c := range map[string]struct {
		match string
		r     Request
		want  bool
	}{
		"prefix":                  {`{"prefix": "/a"}`, Request{Path: "/ab?c"}, true},
		"prefix in another case":  {`{"prefix": "/A", "caseSensitive": false}`, Request{Path: "/ab"}, true},
		"prefix, with its case":   {`{"prefix": "/A"}`, Request{Path: "/ab"}, false},
		"path without its query":  {`{"path": "/a"}`, Request{Path: "/a?b"}, true},
		"path that goes on":       {`{"path": "/a"}`, Request{Path: "/a/"}, false},
		"segments":                {`{"pathSeparatedPrefix": "/a"}`, Request{Path: "/a/b"}, true},
		"segments, exactly":       {`{"pathSeparatedPrefix": "/a"}`, Request{Path: "/a?x"}, true},
		"part of a segment":       {`{"pathSeparatedPrefix": "/a"}`, Request{Path: "/ab"}, false},
		"regex, the whole":        {`{"safeRegex": {"regex": "/a|/b"}}`, Request{Path: "/bc"}, false},
		"regex without the query": {`{"safeRegex": {"regex": "/a."}}`, Request{Path: "/ab?c"}, true},
		"header": {
			`{"prefix": "/", "headers": [{"name": "x", "stringMatch": {"exact": "1"}}]}`,
			Request{Header: h("x", "1")}, true,
		},
		"header that is missing, inverted": {
			`{"prefix": "/", "headers": [{"name": "x", "stringMatch": {"exact": "1"}, "invertMatch": true}]}`,
			Request{}, false,
		},
		"header that is missing, as empty": {
			`{"prefix": "/", "headers": [{"name": "x", "stringMatch": {"exact": "1"}, "invertMatch": true, "treatMissingHeaderAsEmpty": true}]}`,
			Request{}, true,
		},
		"header that is not to be there": {`{"prefix": "/", "headers": [{"name": "x", "presentMatch": true, "invertMatch": true}]}`, Request{}, true},
		"header that is there all the same": {
			`{"prefix": "/", "headers": [{"name": "x", "presentMatch": true, "invertMatch": true}]}`,
			Request{Header: h("x", "1")}, false,
		},
		"header's range": {
			`{"prefix": "/", "headers": [{"name": "x", "rangeMatch": {"start": "1", "end": "3"}}]}`,
			Request{Header: h("x", "3")}, false,
		},
		"header's name alone": {`{"prefix": "/", "headers": [{"name": "x"}]}`, Request{Header: h("x", "")}, true},
		"method":              {`{"prefix": "/", "headers": [{"name": ":method", "stringMatch": {"exact": "GET"}}]}`, Request{}, true},
		"authority": {
			`{"prefix": "/", "headers": [{"name": ":authority", "stringMatch": {"prefix": "a"}}]}`,
			Request{Host: "b"}, false,
		},
		"parameter": {
			`{"prefix": "/", "queryParameters": [{"name": "q", "stringMatch": {"exact": "1%202"}}]}`,
			Request{Path: "/?q=1%202"}, true,
		},
		"parameter that is missing":         {`{"prefix": "/", "queryParameters": [{"name": "q", "stringMatch": {"exact": ""}}]}`, Request{}, false},
		"parameter that is not to be there": {`{"prefix": "/", "queryParameters": [{"name": "q", "presentMatch": false}]}`, Request{}, true},
		"cookie": {
			`{"prefix": "/", "cookies": [{"name": "c", "stringMatch": {"exact": "1"}}]}`,
			Request{Header: h("Cookie", "b=2; c=1")}, true,
		},
		"gRPC":                  {`{"prefix": "/", "grpc": {}}`, Request{Header: h("Content-Type", "application/grpc+proto")}, true},
		"not gRPC":              {`{"prefix": "/", "grpc": {}}`, Request{Header: h("Content-Type", "application/grpc-web")}, false},
		"without a certificate": {`{"prefix": "/", "tlsContext": {"presented": true}}`, Request{}, false},
		"nobody":                {`{"prefix": "/", "runtimeFraction": {"defaultValue": {"numerator": 0}}}`, Request{}, false},
		"everybody": {
			`{"prefix": "/", "runtimeFraction": {"defaultValue": {"numerator": 1000000, "denominator": "MILLION"}}}`,
			Request{}, true,
		},
		"metadata that isn't there": {
			`{"prefix": "/", "dynamicMetadata": [{"filter": "f", "path": [{"key": "k"}], "value": {"presentMatch": true}}]}`,
			Request{}, false,
		},
		"metadata that isn't there, inverted": {
			`{"prefix": "/", "dynamicMetadata": [{"filter": "f", "path": [{"key": "k"}], "value": {"presentMatch": true}, "invert": true}]}`,
			Request{}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &routev3.RouteMatch{}
			if err := protojson.Unmarshal([]byte(c.match), m); err != nil {
				t.Fatal(err)
			}
			w := &walk{Config: &Config{}, out: &Outcome{}, stream: newStream(c.r, Connection{})}
			if _, got := w.matches(m); got != c.want {
				t.Errorf("%s: %v", c.match, got)
			}
		})
	}
}
