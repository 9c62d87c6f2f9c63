package route

import (
	"slices"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// one makes the only route of an HTTPRoute (JSON).
func one(t *testing.T, spec string, s Source) *routev3.Route {
	t.Helper()
	h := &networking.HTTPRoute{}
	if err := protojson.Unmarshal([]byte(spec), h); err != nil {
		t.Fatal(err)
	}
	got := Build(&config.VirtualService{Spec: &networking.VirtualService{Http: []*networking.HTTPRoute{h}}}, s)
	if len(got) != 1 {
		t.Fatalf("%s makes %d routes", spec, len(got))
	}
	return got[0]
}

const toA = `"route": [{"destination": {"host": "a"}}]`

func TestNamesOfMatches(t *testing.T) {
	for spec, want := range map[string]string{
		`{` + toA + `}`:              "",
		`{"name": "r", ` + toA + `}`: "r",
		`{"name": "r", "match": [{"name": "m"}], ` + toA + `}`: "r.m",
		`{"match": [{"name": "m"}], ` + toA + `}`:              ".m",
	} {
		if got := one(t, spec, source()).Name; got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

// A match that names gateways asks nothing else of who sends.
func TestGatewaysOfMatches(t *testing.T) {
	one(t, `{"match": [{"gateways": ["mesh"], "sourceLabels": {"app": "x"}, "sourceNamespace": "y"}], `+toA+`}`, source())
}

// TestRedirects: the port that clients are told. The usual one goes without saying where the host
// that they asked for names no port: at a listener of the usual port, or with a host of its own.
func TestRedirects(t *testing.T) {
	for _, c := range []struct {
		spec string
		at   uint32 // the listener's port
		tls  bool
		want uint32
	}{
		{`{"uri": "/a"}`, 80, false, 0},
		{`{"uri": "/a"}`, 8000, false, 0},
		{`{"scheme": "https"}`, 8000, false, 0},
		{`{"port": 8080}`, 80, false, 8080},
		{`{"port": 80}`, 80, false, 0},
		{`{"port": 80}`, 8000, false, 80},
		{`{"port": 80}`, 443, true, 80},
		{`{"port": 443}`, 443, true, 0},
		{`{"port": 443}`, 8443, true, 443},
		{`{"port": 443, "scheme": "https"}`, 80, false, 0},
		{`{"port": 443, "scheme": "https"}`, 8000, false, 443},
		{`{"port": 443, "scheme": "https", "authority": "b.example"}`, 8000, false, 0},
		{`{"port": 80, "scheme": "https"}`, 80, false, 80},
		{`{"derivePort": "FROM_REQUEST_PORT"}`, 80, false, 0},
		{`{"derivePort": "FROM_REQUEST_PORT"}`, 8000, false, 8000},
		{`{"derivePort": "FROM_REQUEST_PORT", "scheme": "https"}`, 80, false, 80},
		{`{"derivePort": "FROM_PROTOCOL_DEFAULT"}`, 80, false, 0},
		{`{"derivePort": "FROM_PROTOCOL_DEFAULT", "scheme": "https"}`, 80, false, 0},
		{`{"derivePort": "FROM_PROTOCOL_DEFAULT", "scheme": "https"}`, 8000, false, 443},
		{`{"derivePort": "FROM_PROTOCOL_DEFAULT", "scheme": "https", "authority": "b.example"}`, 8000, false, 0},
		{`{"derivePort": "FROM_PROTOCOL_DEFAULT", "scheme": "http"}`, 8000, false, 80},
		{`{"derivePort": "FROM_PROTOCOL_DEFAULT"}`, 8443, true, 443},
	} {
		s := source()
		s.TLS, s.Port = c.tls, c.at
		if got := one(t, `{"redirect": `+c.spec+`}`, s).GetRedirect().GetPortRedirect(); got != c.want {
			t.Errorf("%s at port %d, TLS %v: port %d, want %d", c.spec, c.at, c.tls, got, c.want)
		}
	}
}

func TestHeaders(t *testing.T) {
	const to = `"route": [{"destination": {"host": "a"}, "headers": {"request": {"set": {"host": "of.destination"}}}}]`
	for spec, want := range map[string]string{
		`{` + to + `}`: "of.destination",
		`{"headers": {"request": {"set": {"Host": "of.route"}}}, ` + to + `}`:                                         "of.route",
		`{"headers": {"request": {"add": {":authority": "added"}}}, ` + toA + `}`:                                     "added",
		`{"headers": {"request": {"set": {"host": "of.route"}}}, "rewrite": {"authority": "of.rewrite"}, ` + to + `}`: "of.rewrite",
		`{"headers": {"request": {"add": {"host": "added"}, "set": {"host": "set"}}}, ` + toA + `}`:                   "set",
	} {
		if got := one(t, spec, source()).GetRoute().GetHostRewriteLiteral(); got != want {
			t.Errorf("%s: host %q, want %q", spec, got, want)
		}
	}
	r := one(t, `{"headers": {
		"request": {"set": {":path": "/x", "x-a": "1"}, "add": {"host": "h", "x-b": "2"}, "remove": [":method", "Host", "x-c"]},
		"response": {"set": {"host": "h", "x-d": "3"}, "remove": [":status", "x-e"]}}, `+toA+`}`, source())
	if len(r.RequestHeadersToAdd) != 2 || r.RequestHeadersToAdd[0].Header.Key != "x-a" || r.RequestHeadersToAdd[1].Header.Key != "x-b" ||
		!slices.Equal(r.RequestHeadersToRemove, []string{"x-c"}) {
		t.Error("of requests: ", r.RequestHeadersToAdd, r.RequestHeadersToRemove)
	}
	if len(r.ResponseHeadersToAdd) != 1 || !slices.Equal(r.ResponseHeadersToRemove, []string{"x-e"}) {
		t.Error("of responses: ", r.ResponseHeadersToAdd, r.ResponseHeadersToRemove)
	}
}

func TestHashes(t *testing.T) {
	rule := &networking.DestinationRule{}
	if err := protojson.Unmarshal([]byte(`{
		"trafficPolicy": {"loadBalancer": {"consistentHash": {"httpHeaderName": "all"}},
			"portLevelSettings": [{"port": {"number": 90}, "loadBalancer": {"consistentHash": {"httpHeaderName": "port"}}},
				{"port": {"number": 91}, "loadBalancer": {"simple": "RANDOM"}},
				{"port": {"number": 1}, "loadBalancer": {"consistentHash": {"httpHeaderName": "first"}}}]},
		"subsets": [
			{"name": "own", "trafficPolicy": {"loadBalancer": {"consistentHash": {"httpHeaderName": "subset"}}}},
			{"name": "other", "trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}},
			{"name": "ports", "trafficPolicy": {"portLevelSettings": [{"port": {"number": 90}, "loadBalancer": {"consistentHash": {"httpHeaderName": "both"}}}]}}]
	}`), rule); err != nil {
		t.Fatal(err)
	}
	s := source()
	s.Rule = func(string) *networking.DestinationRule { return rule }
	for destination, want := range map[string]string{
		`{"host": "a"}`:                                            "all",
		`{"host": "a", "port": {"number": 90}}`:                    "port",
		`{"host": "a", "port": {"number": 91}}`:                    "all",
		`{"host": "a", "port": {"number": 1}}`:                     "first",
		`{"host": "a", "subset": "own"}`:                           "subset",
		`{"host": "a", "subset": "own", "port": {"number": 90}}`:   "subset",
		`{"host": "a", "subset": "other"}`:                         "all",
		`{"host": "a", "subset": "ports"}`:                         "all",
		`{"host": "a", "subset": "ports", "port": {"number": 90}}`: "both",
	} {
		action := one(t, `{"route": [{"destination": `+destination+`}]}`, s).GetRoute()
		if len(action.HashPolicy) != 1 || action.HashPolicy[0].GetHeader().GetHeaderName() != want {
			t.Errorf("%s: %v, want %s", destination, action.HashPolicy, want)
		}
		if len(action.RetryPolicy.RetryHostPredicate) != 0 {
			t.Errorf("%s: what hashes alike is sent to the same host again", destination)
		}
	}
	shared := one(t, `{"route": [{"destination": {"host": "a"}, "weight": 1}, {"destination": {"host": "b"}, "weight": 1}]}`, s).GetRoute()
	if len(shared.HashPolicy) != 2 || len(shared.RetryPolicy.RetryHostPredicate) != 1 {
		t.Error("of several destinations: ", shared)
	}
}

func TestFaults(t *testing.T) {
	for spec, want := range map[string]string{
		`{"delay": {"fixedDelay": "2s"}}`:               `{"delay": {"fixedDelay": "2s", "percentage": {}}}`,
		`{"delay": {"fixedDelay": "2s", "percent": 7}}`: `{"delay": {"fixedDelay": "2s", "percentage": {"numerator": 7}}}`,
		`{"delay": {"fixedDelay": "2s", "percentage": {"value": 0.5}}}`: `{"delay": {"fixedDelay": "2s", ` +
			`"percentage": {"numerator": 5000, "denominator": "MILLION"}}}`,
		`{"delay": {"exponentialDelay": "2s"}, "abort": {"http2Error": ""}}`: `{}`,
		`{"abort": {"httpStatus": 500}}`:                                     `{"abort": {"httpStatus": 500}}`,
	} {
		in := &networking.HTTPFaultInjection{}
		if err := protojson.Unmarshal([]byte(spec), in); err != nil {
			t.Fatal(err)
		}
		got := fault(in)
		wanted := got.ProtoReflect().New().Interface()
		if err := protojson.Unmarshal([]byte(want), wanted); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, wanted) {
			t.Errorf("%s: %v, want %v", spec, got, wanted)
		}
	}
}

func TestRoutesThatTakeAll(t *testing.T) {
	for uri, want := range map[string]bool{
		`{"prefix": "/"}`: true, `{"regex": ".*"}`: true, `{"regex": "*"}`: false, `{"exact": "/"}`: false, `{"prefix": "/a"}`: false,
	} {
		if got := TakesAll(one(t, `{"match": [{"uri": `+uri+`}], `+toA+`}`, source())); got != want {
			t.Errorf("%s: %v", uri, got)
		}
	}
	for _, more := range []string{`"headers": {"a": {"exact": "b"}}`, `"queryParams": {"a": {"exact": "b"}}`} {
		if TakesAll(one(t, `{"match": [{"uri": {"prefix": "/"}, `+more+`}], `+toA+`}`, source())) {
			t.Errorf("with %s, too", more)
		}
	}
}
