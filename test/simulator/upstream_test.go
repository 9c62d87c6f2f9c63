package simulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/simulator"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// secret signs tokens.
const secret = "nobody's secret, thirty-two bytes or more"

func token(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","kid":"k"}`)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

// ways are paths of testdata/upstream.yaml, each with what follows it.
var ways = []string{
	"/prefix", "/prefix/a?b", "/prefixes", "/root/a", "/exact?x", "/seg", "/seg/a", "/re12?x",
	"/rewritten/abc/123?x", "/literal", "/by-header", "/by-path/p.example",
	"/mutated", "/weighted", "/named", "/subset/two", "/subset/three", "/second", "/down",
	"/jwt/b?token=" + token(`{"iss":"b"}`), "/jwt/a?access_token=" + token(`{"iss":"a","aud":"x"}`),
}

var asked = [][]string{
	nil, {"x-t-one: 1", "x-t-two: 2", "x-t-host: h.example", "x-t-gone: soon"}, {"x-t-list: a", "x-t-level: own"}, {"x-t-cluster: two"}, {"x-t-cluster: none"},
	{"x-t-fault: 1"}, {"origin: https://a.example"}, {"origin: https://evil.org"}, {"content-type: application/grpc"},
}

// tokens are headers.
func tokens() [][]string {
	bearer := "authorization: Bearer "
	all := [][]string{
		nil, {bearer + "x"}, {bearer + "x.y.z"}, {"authorization: Basic abc"},
		{"x-t-token: Token " + token(`{"iss":"b"}`)}, {"x-t-token: " + token(`{"iss":"b"}`)},
	}
	for _, claims := range []string{
		`{"iss":"a","aud":"x"}`, `{"iss":"a","aud":["y","x"],"sub":"boss"}`, `{"iss":"a","aud":"z"}`, `{"iss":"a"}`,
		`{"iss":"b"}`, `{"iss":"c","aud":"x"}`, `{"aud":"x"}`,
		`{"iss":"a","aud":"x","exp":1000}`, `{"iss":"a","aud":"x","nbf":99999999999}`, `{"iss":"a","aud":"x","sub":"s","deep":{"er":"d"}}`,
	} {
		all = append(all, []string{bearer + token(claims)})
	}
	return append(all,
		[]string{bearer + token(`{"iss":"a","aud":"x"}`), "x-t-token: Token " + token(`{"iss":"b"}`)},
		[]string{bearer + token(`{"iss":"a","aud":"x","scope":"read write"}`), "x-t-scope: 1"},
		[]string{bearer + token(`{"iss":"a","aud":"x","scope":"read"}`), "x-t-scope: 1"})
}

// TestUpstream asks an Envoy and the simulator what becomes of requests until they are at a
// backend.
func TestUpstream(t *testing.T) {
	one, two := echo(t, "one"), echo(t, "two")
	for _, specific := range []bool{false, true} {
		t.Run(fmt.Sprint("the most specific mutation wins: ", specific), func(t *testing.T) {
			port := wait.Port(t)
			config := start(t, "upstream", map[string]any{
				"Port": port, "Specific": specific,
				"Keys": `{"keys":[{"kty":"oct","kid":"k","alg":"HS256","k":"` + base64.RawURLEncoding.EncodeToString([]byte(secret)) + `"}]}`,
				"One":  endpoint(one, ""), "Two": endpoint(two, ""), "OneDown": endpoint(one, ", health_status: UNHEALTHY"),
				"OneLabelled": endpoint(one, ", metadata: {filter_metadata: {envoy.lb: {version: one}}}"),
				"TwoLabelled": endpoint(two, ", metadata: {filter_metadata: {envoy.lb: {version: two}}}"),
			})
			client := &client{t: t, address: fmt.Sprint("127.0.0.1:", port)}
			defer client.close()
			names := map[string]string{one: "one", two: "two"}
			for _, q := range calls() {
				got, o := arrived(config, port, q, names)
				if want := client.ask(q); got.String() != want.String() {
					t.Errorf("%s: the simulator says %s, Envoy %s\n%s", q, got, want, o)
				}
			}
		})
	}
}

func calls() (all []question) {
	for _, way := range ways {
		for _, h := range asked {
			all = append(all, question{"GET", "host.example", way, h})
		}
	}
	for _, way := range []string{"a", "b", "audience", "any", "all", "optional", "either", "failed", "none"} {
		for _, h := range tokens() {
			all = append(all, question{"GET", "host.example", "/jwt/" + way, h})
		}
	}
	for _, origin := range []string{"https://a.example", "https://evil.org"} {
		all = append(all, question{"OPTIONS", "host.example", "/jwt/a", []string{"origin: " + origin, "access-control-request-method: GET"}})
	}
	return all
}

func endpoint(address, more string) string {
	_, port, _ := strings.Cut(address, ":")
	return "{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: " + port + "}}}" + more + "}"
}

// sight is what a backend sees.
func sight(name, host, path string, h http.Header) string {
	seen := map[string][]string{}
	for key, values := range h {
		if strings.HasPrefix(key, "X-T-") || key == "Authorization" || key == "X-Forwarded-Host" {
			seen[key] = values
		}
	}
	b, err := json.Marshal(map[string]any{"name": name, "host": host, "path": path, "headers": seen})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func echo(t *testing.T, name string) (address string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(sight(name, r.Host, r.RequestURI, r.Header)))
	}))
	t.Cleanup(s.Close)
	return net.JoinHostPort("127.0.0.1", s.Listener.Addr().String()[strings.LastIndex(s.Listener.Addr().String(), ":")+1:])
}

// arrived is what the simulator says of a request, as the backend would answer it.
func arrived(config *simulator.Config, port int, q question, names map[string]string) (reply, *simulator.Outcome) {
	r := walk(config, port, q)
	if o := r.why; o.Verdict == simulator.Forwarded {
		s := o.Upstream.Clusters[0]
		r.status, r.body = http.StatusOK, sight(names[s.Endpoints[0].Address], s.Request.Host, s.Request.Path, s.Request.Header)
	}
	return r, r.why
}
