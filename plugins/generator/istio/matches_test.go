package istio

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// never is what a match becomes that no request and no connection can fulfil: it isn't there.
const never = ""

// matchRow is one way in which a field of a match may be set, and what Envoy is told to look for.
type matchRow struct{ field, match, want string }

// complete fails for fields of a match without a row: a new one of the API has to be said.
func complete(t *testing.T, m proto.Message, all []matchRow) {
	t.Helper()
	tried := map[string]bool{}
	for _, r := range all {
		tried[r.field] = true
	}
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if name := fields.Get(i).JSONName(); !tried[name] {
			t.Errorf("nothing says what %s of %s means", name, m.ProtoReflect().Descriptor().Name())
		}
	}
}

// said is a message in JSON, always the same text.
func said(t *testing.T, m proto.Message) string {
	t.Helper()
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestEveryFieldOfAnHTTPMatch: each field of a match of requests narrows what a route takes, or
// the route isn't there; none is passed over.
func TestEveryFieldOfAnHTTPMatch(t *testing.T) {
	const all = `{"prefix":"/","caseSensitive":true}`
	header := func(name, how string) string {
		return `{"prefix":"/","caseSensitive":true,"headers":[{"name":"` + name + `",` + how + `}]}`
	}
	table := []matchRow{
		{"name", `{name: x}`, all},
		{"uri", `{uri: {exact: /a}}`, `{"path":"/a","caseSensitive":true}`},
		{"uri", `{uri: {prefix: /a}}`, `{"prefix":"/a","caseSensitive":true}`},
		{"uri", `{uri: {regex: /a.*}}`, `{"safeRegex":{"regex":"/a.*"},"caseSensitive":true}`},
		{"scheme", `{scheme: {exact: https}}`, header(":scheme", `"stringMatch":{"exact":"https"}`)},
		{"method", `{method: {regex: G.*}}`, header(":method", `"stringMatch":{"safeRegex":{"regex":"G.*"}}`)},
		{"authority", `{authority: {prefix: a}}`, header(":authority", `"stringMatch":{"prefix":"a"}`)},
		{"headers", `{headers: {x-a: {exact: "1"}}}`, header("x-a", `"stringMatch":{"exact":"1"}`)},
		{"headers", `{headers: {x-a: {}}}`, header("x-a", `"presentMatch":true`)},
		{"port", `{port: 80}`, all},
		{"port", `{port: 81}`, never},
		{"sourceLabels", `{sourceLabels: {app: client}}`, all},
		{"sourceLabels", `{sourceLabels: {app: client, tier: x}}`, never},
		{"gateways", `{gateways: [mesh]}`, all},
		{"gateways", `{gateways: [default/gw]}`, never},
		{"queryParams", `{queryParams: {a: {exact: "1"}}}`, `{"prefix":"/","caseSensitive":true,"queryParameters":[{"name":"a","stringMatch":{"exact":"1"}}]}`},
		{"ignoreUriCase", `{uri: {exact: /a}, ignoreUriCase: true}`, `{"path":"/a","caseSensitive":false}`},
		{"withoutHeaders", `{withoutHeaders: {x-a: {exact: "1"}}}`,
			header("x-a", `"stringMatch":{"exact":"1"},"invertMatch":true,"treatMissingHeaderAsEmpty":true`)},
		{"withoutHeaders", `{withoutHeaders: {x-a: {}}}`, header("x-a", `"presentMatch":true,"invertMatch":true`)},
		{"sourceNamespace", `{sourceNamespace: default}`, all},
		{"sourceNamespace", `{sourceNamespace: other}`, never},
		{"statPrefix", `{statPrefix: x}`, all},
	}
	complete(t, &networking.HTTPMatchRequest{}, table)
	w := matching(t)
	for _, r := range table {
		w.commit(rows(config.VirtualServices, spec(t, "demo/v", &networking.VirtualService{}, `
hosts: [hello.example]
gateways: [mesh, default/gw]
http:
- {match: [`+r.match+`], route: [{destination: {host: hello.example, subset: matched}}]}
- {route: [{destination: {host: hello.example}}]}`)))
		var got []string
		for _, h := range w.takenRoutes(1, "80").VirtualHosts {
			for _, route := range h.Routes {
				if strings.Contains(route.GetRoute().GetCluster(), "|matched|") {
					got = append(got, said(t, route.Match))
				}
			}
		}
		if got := strings.Join(got, " "); got != r.want {
			t.Errorf("%s: %s, want %s", r.match, got, r.want)
		}
	}
}

// TestEveryFieldOfAConnectionMatch: the same of matches of TCP and TLS.
func TestEveryFieldOfAConnectionMatch(t *testing.T) {
	const all = `{}` // of the listener at the service's address
	tcp := []matchRow{
		{"destinationSubnets", `{destinationSubnets: [10.96.0.7/32]}`, `{"prefixRanges":[{"addressPrefix":"10.96.0.7","prefixLen":32}]}`},
		{"sourceSubnet", `{sourceSubnet: 10.0.0.0/8}`, all}, // as in istiod; validation warns of it
		{"port", `{port: 9000}`, all},
		{"port", `{port: 9001}`, never},
		{"sourceLabels", `{sourceLabels: {app: client}}`, all},
		{"sourceLabels", `{sourceLabels: {app: other}}`, never},
		{"gateways", `{gateways: [mesh]}`, all},
		{"gateways", `{gateways: [default/gw]}`, never},
		{"sourceNamespace", `{sourceNamespace: default}`, all},
		{"sourceNamespace", `{sourceNamespace: other}`, never},
	}
	w := matching(t)
	for _, r := range tcp {
		w.commit(rows(config.VirtualServices, spec(t, "demo/tcp", &networking.VirtualService{}, `
hosts: [raw.example]
gateways: [mesh, default/gw]
tcp: [{match: [`+r.match+`], route: [{destination: {host: raw.example, subset: matched}}]}]`)))
		if got := w.chainsTo(t, "|9000|matched|"); got != r.want {
			t.Errorf("tcp %s: %s, want %s", r.match, got, r.want)
		}
	}
	complete(t, &networking.L4MatchAttributes{}, tcp)

	secure := []matchRow{
		{"sniHosts", `{sniHosts: [sure.example]}`, `{"serverNames":["sure.example"]}`},
		{"destinationSubnets", `{sniHosts: [sure.example], destinationSubnets: [10.96.0.7/32]}`,
			`{"prefixRanges":[{"addressPrefix":"10.96.0.7","prefixLen":32}],"serverNames":["sure.example"]}`},
		{"port", `{sniHosts: [sure.example], port: 9443}`, `{"serverNames":["sure.example"]}`},
		{"port", `{sniHosts: [sure.example], port: 9444}`, never},
		{"sourceLabels", `{sniHosts: [sure.example], sourceLabels: {app: client}}`, `{"serverNames":["sure.example"]}`},
		{"sourceLabels", `{sniHosts: [sure.example], sourceLabels: {app: other}}`, never},
		{"gateways", `{sniHosts: [sure.example], gateways: [mesh]}`, `{"serverNames":["sure.example"]}`},
		{"gateways", `{sniHosts: [sure.example], gateways: [default/gw]}`, never},
		{"sourceNamespace", `{sniHosts: [sure.example], sourceNamespace: default}`, `{"serverNames":["sure.example"]}`},
		{"sourceNamespace", `{sniHosts: [sure.example], sourceNamespace: other}`, never},
	}
	for _, r := range secure {
		w.commit(rows(config.VirtualServices, spec(t, "demo/tls", &networking.VirtualService{}, `
hosts: [sure.example]
gateways: [mesh, default/gw]
tls: [{match: [`+r.match+`], route: [{destination: {host: sure.example, subset: matched}}]}]`)))
		if got := w.chainsTo(t, "|9443|matched|"); got != r.want {
			t.Errorf("tls %s: %s, want %s", r.match, got, r.want)
		}
	}
	complete(t, &networking.TLSMatchAttributes{}, secure)
}

// matching is a mesh for a sidecar (1) of the namespace default with the label app: client.
func matching(t *testing.T) *world {
	w := newWorld(t)
	port := func(host string, number uint32, protocol, address string) *pb.Row {
		return sdk.ServiceRow(&sdk.Service{Host: host, Namespace: "demo", Name: host, Addresses: []string{address},
			Ports: []*sdk.Port{{Number: number, Name: strings.ToLower(protocol), Protocol: protocol}}})
	}
	subset := func(host string) *pb.Row {
		return spec(t, "demo/"+host, &networking.DestinationRule{}, `{host: `+host+`, subsets: [{name: matched, labels: {a: b}}]}`)
	}
	w.commit(rows(state.Services, port("hello.example", 80, "HTTP", "10.96.0.1"), port("other.example", 80, "HTTP", "10.96.0.2"),
		port("raw.example", 9000, "TCP", "10.96.0.3"), port("sure.example", 9443, "TLS", "10.96.0.4")),
		rows(config.DestinationRules, subset("hello.example"), subset("raw.example"), subset("sure.example")))
	w.attach(1, proxy(sidecarID, nil, map[string]any{"LABELS": map[string]any{"app": "client"}}))
	return w
}

// chainsTo are the matches of the filter chains that lead to a cluster, of all listeners.
func (w *world) chainsTo(t *testing.T, cluster string) string {
	t.Helper()
	var out []string
	for _, body := range w.get(1, encode.ListenerType) {
		l := &listenerv3.Listener{}
		if err := proto.Unmarshal(body, l); err != nil {
			t.Fatal(err)
		}
		for _, c := range append(l.FilterChains, l.DefaultFilterChain) {
			if strings.Contains(c.String(), cluster) {
				out = append(out, said(t, c.FilterChainMatch))
			}
		}
	}
	return strings.Join(out, " ")
}
