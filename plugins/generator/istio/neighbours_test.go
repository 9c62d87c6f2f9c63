package istio

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Objects of namespace evil of which Envoy would refuse a whole resource that others are in, too.
// They are what reaches the generator where nobody has checked them before.

// evilRoute is a virtual service of evil's own host, at sidecars and at a gateway; its first route
// has what is given, such as `timeout: -1s`.
func evilRoute(t *testing.T, more string) *pb.TableRows {
	return rows(config.VirtualServices, spec(t, "evil/v", &networking.VirtualService{}, `
hosts: [other.evil.svc.cluster.local]
gateways: [mesh, default/gw]
http:
- {`+more+`}
- route: [{destination: {host: other.evil.svc.cluster.local}}]
`))
}

// forward is the destination that evil's routes have.
const forward = `route: [{destination: {host: other.evil.svc.cluster.local}}], `

func serviceOf(host, namespace, address string) *pb.Row {
	row := sdk.ServiceRow(&sdk.Service{Host: host, Namespace: namespace, Name: host, Addresses: []string{address},
		Ports: []*sdk.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}})
	row.Created = int64(len(address)) // who is there first has the shorter address
	return row
}

// neighbours are a mesh with a host of demo's and one of evil's, each with a route, for a sidecar
// (1) and a gateway (2).
func neighbours(t *testing.T) *world {
	w := newWorld(t)
	w.commit(rows(state.Services, serviceOf("hello.example", "demo", "10.96.0.1"), serviceOf("other.evil.svc.cluster.local", "evil", "10.96.0.2")),
		demoRoute(t, "1"), evilRoute(t, strings.TrimSuffix(forward, ", ")),
		rows(config.Gateways, spec(t, "default/gw", &networking.Gateway{},
			`{selector: {istio: gateway}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}`)))
	w.attach(1, proxy(sidecarID, nil, nil))
	w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"istio": "gateway"}}))
	return w
}

// demoRoute is demo's virtual service, with a header of a value.
func demoRoute(t *testing.T, value string) *pb.TableRows {
	return rows(config.VirtualServices, spec(t, "demo/v", &networking.VirtualService{}, `
hosts: [hello.example]
gateways: [mesh, default/gw]
http: [{headers: {response: {set: {x-demo: "`+value+`"}}}, route: [{destination: {host: hello.example}}]}]
`))
}

// ofDemo is what the two proxies get of demo's, by name: its virtual hosts, and resources that
// are named after it. Each route configuration is what Envoy takes.
func (w *world) ofDemo() map[string][]byte {
	w.t.Helper()
	out := map[string][]byte{}
	w.takenRoutes(1, "http_proxy")
	for connection, name := range map[uint64]string{1: "80", 2: "http.80"} {
		c := w.takenRoutes(connection, name)
		for _, h := range c.VirtualHosts {
			if strings.HasPrefix(h.Name, "hello.example") {
				out[fmt.Sprint(connection, " ", h.Name)] = encode.Bytes(h)
			}
		}
		for _, typeURL := range []string{encode.ClusterType, encode.ListenerType} {
			for name, body := range w.get(connection, typeURL) {
				if strings.Contains(name, "hello.example") || typeURL == encode.ListenerType {
					out[fmt.Sprint(connection, " ", typeURL, " ", name)] = body
				}
			}
		}
	}
	return out
}

// takenRoutes are a route configuration of a proxy, which Envoy takes.
func (w *world) takenRoutes(connection uint64, name string) *routev3.RouteConfiguration {
	w.t.Helper()
	c := &routev3.RouteConfiguration{}
	if err := proto.Unmarshal(w.get(connection, encode.RouteType, name)[name], c); err != nil {
		w.t.Fatal(err)
	}
	if err := envoyrules.CheckAll(c); err != nil || len(c.VirtualHosts) < 2 {
		w.t.Errorf("%s of connection %d, of %d virtual hosts: %v", name, connection, len(c.VirtualHosts), err)
	}
	return c
}

var evilObjects = []struct {
	name string
	rows func(t *testing.T) *pb.TableRows
	// why is a part of what is told of it; empty: nothing is, as istiod says nothing.
	why string
}{
	{"host in capitals", func(*testing.T) *pb.TableRows {
		return rows(state.Services, serviceOf("HELLO.example", "evil", "10.96.0.30"))
	}, ""},
	{"host in capitals, with the root's dot", func(*testing.T) *pb.TableRows {
		return rows(state.Services, serviceOf("Hello.Example.", "evil", "10.96.0.30"))
	}, ""},
	{"short name in capitals", func(*testing.T) *pb.TableRows {
		return rows(state.Services, serviceOf("Other.Evil.svc.cluster.local", "evil", "10.96.0.30"))
	}, ""},
	{"unknown operator", route(forward + `headers: {request: {set: {x: "%NOPE%"}}}`), `unknown command operator "NOPE"`},
	{"percent sign alone", route(forward + `headers: {response: {add: {x: "50%"}}}`), "unterminated variable"},
	{"operator without its argument", route(forward + `headers: {request: {add: {x: "%REQ%"}}}`), "needs an argument"},
	{"operator with another's argument", route(forward + `headers: {response: {set: {x: "%PATH(x)%"}}}`), "command operator PATH"},
	{"expression", route(forward + `headers: {response: {set: {x: "%CEL(1+)%"}}}`), "command operator CEL"},
	{
		"operator at one destination",
		route(`route: [{weight: 1, destination: {host: a}}, {weight: 1, destination: {host: b}, headers: {request: {set: {x: "%NOPE%"}}}}]`),
		"weighted_clusters",
	},
	{"weights", route(
		`route: [{weight: 2147483647, destination: {host: a}}, {weight: 2147483647, destination: {host: b}}, {weight: 2147483647, destination: {host: c}}]`,
	), "the sum of weights"},
	{"no weights", route(`route: [{destination: {host: a}}, {destination: {host: b}}]`), "WeightedCluster"},
	{"long header value", route(forward + `headers: {request: {set: {x: "` + strings.Repeat("a", 20000) + `"}}}`), "Value"},
	{"line break in a header", route(forward + `headers: {request: {set: {x: "a\nb"}}}`), "Value"},
	{"empty header", route(forward + `headers: {request: {remove: [""]}}`), "RequestHeadersToRemove"},
	{"no expression in a match", route(forward + `match: [{uri: {regex: "("}}]`), "invalid regex"},
	{"look-around", route(forward + `match: [{headers: {a: {regex: "(?=a)"}}}]`), "invalid regex"},
	{"character that proxies don't know", route(forward + `match: [{queryParams: {a: {regex: "\\x{100}"}}}]`), "invalid regex"},
	{"large expression", route(forward + `rewrite: {uriRegexRewrite: {match: "([a-z]{1,900}[0-9]){1,19}", rewrite: "/"}}`), "invalid regex"},
	{"header match without a name", route(forward + `match: [{headers: {"": {exact: a}}}]`), "Name"},
	{"line break in an authority", route(forward + `rewrite: {authority: "a\nb"}`), "HostRewriteLiteral"},
	{"line break in a redirect", route(`redirect: {authority: "a\nb"}`), "HostRedirect"},
	{"status of a response", route(`directResponse: {status: 99}`), "Status"},
	{"negative timeout", route(forward + `timeout: -1s`), "a duration of -1 seconds"},
	{"long timeout", route(forward + `timeout: 9223372036s`), "a duration of 9223372036 seconds"},
	{"long pause between tries", route(forward + `retries: {attempts: 1, backoff: 9223372036s}`), "a duration of"},
	{"status of a fault", route(forward + `fault: {abort: {httpStatus: 700, percentage: {value: 1}}}`), "HttpStatus"},
	{"origin", route(forward + `corsPolicy: {allowOrigins: [{regex: "["}]}`), "invalid regex"},
	{"cookie without a name", func(t *testing.T) *pb.TableRows {
		return rows(config.DestinationRules, spec(t, "evil/d", &networking.DestinationRule{}, `
host: other.evil.svc.cluster.local
trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {name: "", ttl: 1s}}}}`))
	}, "Cookie"},
	{"header to hash without a name", func(t *testing.T) *pb.TableRows {
		return rows(config.DestinationRules, spec(t, "evil/d", &networking.DestinationRule{}, `
host: other.evil.svc.cluster.local
trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: ""}}}`))
	}, "HeaderName"},
}

func route(more string) func(t *testing.T) *pb.TableRows {
	return func(t *testing.T) *pb.TableRows { return evilRoute(t, more) }
}

// TestOneTenantsObjectLosesItsOwnPiece: what demo's proxies get of demo stays as it is, demo's next
// edit arrives, and who is told is evil.
func TestOneTenantsObjectLosesItsOwnPiece(t *testing.T) {
	for _, c := range evilObjects {
		t.Run(c.name, func(t *testing.T) {
			w := neighbours(t)
			before := w.ofDemo()
			if len(before) < 4 {
				t.Fatalf("only %v", keysOf(before))
			}
			w.commit(c.rows(t))
			after := w.ofDemo()
			for name, body := range before {
				if !bytes.Equal(after[name], body) {
					t.Errorf("%s is no longer what it was", name)
				}
			}
			told := w.out.since()
			if c.why == "" && told != "" || !strings.Contains(told, c.why) {
				t.Errorf("told %q, want %q", told, c.why)
			}
			if strings.Contains(told, "demo/") || c.why != "" && !strings.Contains(told, "evil/") {
				t.Errorf("who is told: %s", told)
			}
			w.commit(demoRoute(t, "2"))
			edits := 0
			for name, body := range w.ofDemo() {
				if strings.Contains(name, ":80") && !bytes.Equal(body, before[name]) && bytes.Contains(body, []byte("x-demo")) {
					edits++
				}
			}
			if edits != 2 {
				t.Errorf("demo's edit arrived in %d places of 2", edits)
			}
		})
	}
}
