package analysis

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

const route = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: www, namespace: shop}
spec:
  hosts: [www.example.com]
  gateways: [infra/public, mesh]
  http:
  - route:
    - destination: {host: reviews, subset: v2}
    mirror: {host: copy.other.svc.cluster.local}
`

const gateway = `---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: public, namespace: infra}
spec:
  selector: {istio: gw}
  servers:
  - hosts: ["shop/*.example.com"]
    port: {number: 443, name: https, protocol: HTTPS}
    tls: {mode: SIMPLE, credentialName: www}
`

// codesOf analyses a text and returns the codes and fields of what is found.
func codesOf(t *testing.T, text string) (list []string) {
	t.Helper()
	var r Reader
	r.Add("a.yaml", []byte(text))
	for _, f := range r.All() {
		list = append(list, f.Code+" "+f.Field)
	}
	slices.Sort(list)
	return list
}

func TestKubernetesObjectsSayWhatThereIs(t *testing.T) {
	const services = `---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: reviews, namespace: shop}, spec: {ports: [{port: 80, name: http}], selector: {app: reviews}}}
- {apiVersion: v1, kind: Service, metadata: {name: copy, namespace: other}, spec: {ports: [{port: 80, name: http}]}}
- {apiVersion: v1, kind: Secret, metadata: {name: www, namespace: infra}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: gw, namespace: infra}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {istio: gw}}}}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews, namespace: shop}
spec: {host: reviews.shop.svc.cluster.local, subsets: [{name: v2}]}
`
	if got := codesOf(t, route+gateway+services); len(got) > 0 {
		t.Errorf("found %v", got)
	}
	want := []string{
		"IST0101 spec.gateways[0]", "IST0101 spec.http[0].mirror.host",
		"IST0101 spec.http[0].route[0].destination.host", "IST0101 spec.http[0].route[0].destination.subset", "IST0132 spec.gateways[0]",
	}
	if got := codesOf(t, route); !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	other := strings.ReplaceAll(services, "{name: www, namespace: infra}", "{name: old, namespace: infra}")
	if got := codesOf(t, route+gateway+other); !slices.Equal(got, []string{"IST0101 spec.servers[0].tls.credentialName"}) {
		t.Errorf("found %v", got)
	}
}

// Gateways whose selector no workload has, and gateways that no VirtualService is bound to.
func TestGatewaysThatNobodyHas(t *testing.T) {
	const workload = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gw, namespace: infra}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {istio: gw}}}}
---
apiVersion: v1
kind: Secret
metadata: {name: www, namespace: infra}
`
	const bound = `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: www, namespace: shop}
spec:
  hosts: [www.example.com]
  gateways: [infra/public]
  http: [{directResponse: {status: 200}}]
`
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"good":                       {gateway + workload + bound, nil},
		"selected by no workload":    {strings.Replace(gateway, "istio: gw", "istio: gv", 1) + workload + bound, []string{"IST0101 spec.selector"}},
		"without a virtual service":  {gateway + workload, []string{"COX3003 metadata.name"}},
		"of another name than bound": {gateway + workload + strings.Replace(bound, "infra/public", "infra/publik", 1), []string{"COX3003 metadata.name", "IST0101 spec.gateways[0]", "IST0132 spec.gateways[0]"}},
	} {
		if got := codesOf(t, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}

func TestWhatMatchesTake(t *testing.T) {
	prefix := func(s string) *networking.StringMatch {
		return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: s}}
	}
	exact := func(s string) *networking.StringMatch {
		return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: s}}
	}
	type match = networking.HTTPMatchRequest
	header := map[string]*networking.StringMatch{"x": exact("1")}
	for _, c := range []struct {
		name            string
		wider, narrower *match
		want            bool
	}{
		{"nothing takes all", &match{}, &match{Uri: prefix("/a"), Headers: header}, true},
		{"a prefix takes a longer one", &match{Uri: prefix("/a")}, &match{Uri: prefix("/a/b")}, true},
		{"and an exact path", &match{Uri: prefix("/a")}, &match{Uri: exact("/ab")}, true},
		{"but no shorter one", &match{Uri: prefix("/a/b")}, &match{Uri: prefix("/a")}, false},
		{"a header narrows", &match{Uri: prefix("/a"), Headers: header}, &match{Uri: prefix("/a")}, false},
		{"the same header does not", &match{Headers: header}, &match{Headers: header, Uri: exact("/a")}, true},
		{"a port narrows", &match{Port: 80}, &match{}, false},
		{"a gateway narrows", &match{Gateways: []string{"a"}}, &match{}, false},
		{"and takes itself", &match{Gateways: []string{"a", "b"}}, &match{Gateways: []string{"b"}}, true},
		{"without headers only the same", &match{WithoutHeaders: header}, &match{WithoutHeaders: header, Name: "n"}, true},
		{"and nothing else", &match{WithoutHeaders: header}, &match{WithoutHeaders: header, Port: 80}, false},
	} {
		if got := takes(c.wider, c.narrower); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestSuppression(t *testing.T) {
	f := kinds.Fault{Code: "IST0101", Kind: "VirtualService", Namespace: "shop", Name: "www"}
	for text, want := range map[string]bool{
		"IST0101=VirtualService www.shop": true, "IST0101=VirtualService *.shop": true, "IST0101=* *": true,
		"IST0102=VirtualService www.shop": false, "IST0101=Gateway www.shop": false, "IST0101=VirtualService www.other": false,
	} {
		s, err := ParseSuppression(text)
		if err != nil || s.Covers(f) != want {
			t.Errorf("%s: %v, %v", text, s.Covers(f), err)
		}
	}
	for _, text := range []string{"", "IST0101", "IST0101=Gateway", "=Gateway a.b", "IST0101=Gateway [a"} {
		if _, err := ParseSuppression(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestRowsKeepTheirPlaces(t *testing.T) {
	payload, err := proto.Marshal(&networking.VirtualService{Hosts: []string{"a"}, Http: []*networking.HTTPRoute{{
		Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "a"}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{"dir/a.yaml:3:5": "dir/a.yaml:3:5", "registry": "registry:1:1", "": ":1:1"} {
		var r Reader
		if err := r.AddRow(kinds.VirtualService, &pb.Row{Key: "shop/a", Source: source, Payload: payload}); err != nil {
			t.Fatal(err)
		}
		got := r.All()
		if len(got) != 1 || got[0].Place() != want || got[0].Severity != finding.Error || got[0].Namespace != "shop" {
			t.Errorf("%q: %v", source, got)
		}
	}
	var r Reader
	if err := r.AddRow("example.com/Other", &pb.Row{}); err != nil || len(r.Input.Resources) > 0 {
		t.Errorf("another kind: %v", err)
	}
	if err := r.AddRow(kinds.VirtualService, &pb.Row{Key: "a/b", Payload: []byte{0xff}}); err == nil {
		t.Error("a row that is none is taken")
	}
}

// TestRelativePatches: what needs something to be there and has no priority is warned of, but not
// what has no effect anyway or a warning of its own.
func TestRelativePatches(t *testing.T) {
	const text = `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: f, namespace: shop, annotations: {galley.istio.io/analyze-suppress: IST0133}}
spec:
  priority: PRIORITY
  configPatches: [{applyTo: TO, match: {context: ANY, PROXY}, patch: {operation: OP, value: {name: a}}}]
`
	for _, c := range []struct {
		to, operation, proxy string
		want                 bool
	}{
		{"HTTP_FILTER", "INSERT_BEFORE", "", true}, {"HTTP_FILTER", "INSERT_AFTER", "", true}, {"HTTP_FILTER", "INSERT_FIRST", "", false}, {"CLUSTER", "ADD", "", false},
		{"HTTP_FILTER", "INSERT_BEFORE", "proxy: {proxyVersion: '1.31'}", false}, {"CLUSTER", "MERGE", "", false}, {"VIRTUAL_HOST", "REPLACE", "", true},
		{"HTTP_FILTER", "REPLACE", "", true}, {"CLUSTER", "REPLACE", "", false}, {"VIRTUAL_HOST", "REMOVE", "", true}, {"ROUTE_CONFIGURATION", "REMOVE", "", false},
	} {
		for _, priority := range []string{"0", "10"} {
			var want []string
			if c.want && priority == "0" {
				want = []string{"IST0151 spec.configPatches[0].patch.operation"}
			}
			if got := codesOf(t, strings.NewReplacer("PRIORITY", priority, "TO", c.to, "OP", c.operation, "PROXY", c.proxy).Replace(text)); !slices.Equal(got, want) {
				t.Errorf("%s of %s, priority %s: found %v, want %v", c.operation, c.to, priority, got, want)
			}
		}
	}
}

// TestProtocolsOfServiceEntries: those that a client may see together must agree, however they
// write it; each is warned of once.
func TestProtocolsOfServiceEntries(t *testing.T) {
	entry := func(namespace, name, exportTo string, ports ...string) string {
		return `---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ` + name + `, namespace: ` + namespace + `}
spec: {hosts: [api.example.com], exportTo: [` + exportTo + `], resolution: DNS, ports: [` + strings.Join(ports, ", ") + `]}
`
	}
	const http, tcp, small, other = "{number: 80, name: a, protocol: HTTP}", "{number: 80, name: a, protocol: TCP}", "{number: 80, name: a, protocol: http}", "{number: 81, name: b, protocol: TCP}"
	const grpc = "{number: 81, name: b, protocol: GRPC}"
	const one = "IST0177 spec.ports"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"the same":                             {entry("a", "x", "", http) + entry("a", "y", "", http), nil},
		"written otherwise":                    {entry("a", "x", "", http) + entry("a", "y", "", small), nil},
		"different":                            {entry("a", "x", "", http) + entry("b", "y", "", tcp), []string{one, one}},
		"of different ports":                   {entry("a", "x", "", http) + entry("a", "y", "", other), nil},
		"twice, told once":                     {entry("a", "x", "", http, other) + entry("a", "y", "", tcp, grpc), []string{one, one}},
		"in namespaces apart":                  {entry("a", "x", ".", http) + entry("b", "y", ".", tcp), nil},
		"in one namespace":                     {entry("a", "x", ".", http) + entry("b", "y", "a", tcp), []string{one, one}},
		"one for all":                          {entry("a", "x", ".", http) + entry("b", "y", `"*"`, tcp), []string{one, one}},
		"one for all, and one that is like it": {entry("a", "x", ".", http) + entry("b", "y", ".", tcp) + entry("c", "z", `"*"`, tcp), []string{one, one}},
	} {
		got := codesOf(t, c.text)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}

// TestListeners: ServiceEntries whose connections sidecars can't tell apart are told so, those that
// are one service or that no client sees together are not.
func TestListeners(t *testing.T) {
	entry := func(name, exportTo, address, protocol string, port int, end string) string {
		return fmt.Sprintf(`---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: %[1]s}
spec: {hosts: [%[1]s.example.com], exportTo: [%[2]s], addresses: [%[3]s], resolution: STATIC,
  ports: [{number: %[5]d, name: p, protocol: %[4]s}], endpoints: [{address: %[6]s}]}
`, name, exportTo, address, protocol, port, end)
	}
	const one, at, end = listenerClash + " spec.ports", "10.9.0.1", "10.0.0.1"
	const number = listenerClash + " spec.ports[0].number"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"TCP twice": {entry("a", "", at, "TCP", 70, end) + entry("b", "", at, "TCP", 70, end),
			[]string{one, one}},
		"without addresses": {entry("a", "", "", "MONGO", 70, end) + entry("b", "", "", "MONGO", 70, end),
			[]string{one, one}},
		"at other ports":      {entry("a", "", at, "TCP", 70, end) + entry("b", "", at, "TCP", 71, end), nil},
		"at other addresses":  {entry("a", "", at, "TCP", 70, end) + entry("b", "", "10.9.0.2", "TCP", 70, end), nil},
		"in namespaces apart": {entry("a", ".", at, "TCP", 70, end) + entry("b", ".", at, "TCP", 70, end), nil},
		"one for all": {entry("a", ".", at, "TCP", 70, end) + entry("b", "", at, "TCP", 70, end),
			[]string{one, one}},
		"HTTP and TCP": {entry("a", "", at, "HTTP", 70, end) + entry("b", "", at, "TCP", 70, "10.0.0.2"),
			[]string{one}},
		"TLS and TLS":   {entry("a", "", at, "TLS", 70, end) + entry("b", "", at, "TLS", 70, end), nil},
		"HTTP and HTTP": {entry("a", "", at, "HTTP", 70, end) + entry("b", "", at, "HTTP", 70, end), nil},
		"one workload's port": {entry("a", "", at, "HTTP", 70, end) + entry("b", "", "10.9.0.2", "TLS", 70, end),
			[]string{one, one}},
		"UDP":                {entry("a", "", at, "UDP", 70, end) + entry("b", "", at, "UDP", 70, end), nil},
		"a sidecar's own":    {entry("a", "", "", "MONGO", 15001, end), []string{number}},
		"one at an address":  {entry("a", "", at, "TCP", 15001, end), nil},
		"HTTP, at every one": {entry("a", "", at, "HTTP", 15006, end), []string{number}},
		"one host, two objects": {entry("a", "", at, "TCP", 70, end) + strings.Replace(entry("a", "", at, "TCP", 70,
			end), "name: a", "name: c", 1), nil},
	} {
		if got := codesOf(t, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
	var text strings.Builder
	for i := range 2000 {
		text.WriteString(entry(fmt.Sprintf("n%d", i), "", "", "MONGO", 70, end))
	}
	for _, r := range analyzed(t, finding.Example{Documents: text.String()}) {
		if len(r.Message) > 400 {
			t.Fatalf("of 2000 it is told in %d characters: %.200s", len(r.Message), r.Message)
		}
	}
}

// TestPlainBackends: what a control plane that runs has derived of a BackendTLSPolicy is known as
// one, and rules that speak TLS, or stand beside the policy, are told nothing.
func TestPlainBackends(t *testing.T) {
	const host = "web.shop.svc.cluster.local"
	rule := func(namespace, name, host string, tls bool) Resource {
		policy := &networking.TrafficPolicy{}
		if tls {
			policy.Tls = &networking.ClientTLSSettings{}
		}
		spec := &networking.DestinationRule{Host: host, TrafficPolicy: policy}
		return Resource{Resource: finding.Resource{Kind: "DestinationRule", Namespace: namespace, Name: name, Spec: spec}}
	}
	derived := rule("shop", "web~istio-autogenerated-k8s-gateway", host, true)
	derived.derived, derived.Annotations = true, map[string]string{parents: "BackendTLSPolicy/shop.front"}
	for name, c := range map[string]struct {
		rule Resource
		told bool
	}{
		"of another namespace": {rule("bank", "web", host, false), true},
		"a wildcard":           {rule("bank", "all", "*.shop.svc.cluster.local", false), true},
		"another host":         {rule("bank", "db", "db.shop.svc.cluster.local", false), false},
		"with TLS":             {rule("bank", "web", host, true), false},
		"beside the policy":    {rule("shop", "web", "web", false), false},
		"for the whole mesh":   {rule("istio-system", "web", host, false), false},
	} {
		var told []string
		for _, r := range Analyze(Input{Resources: []Resource{derived, c.rule}}) {
			if r.Code == plainBackend {
				told = append(told, r.Message)
			}
		}
		if len(told) > 0 != c.told || c.told && !strings.Contains(told[0], "BackendTLSPolicy shop/front") {
			t.Errorf("%s: told %q", name, told)
		}
	}
}

// TestHostsForSidecars: what VirtualServices say of one host is a clash where some namespace sees
// both; istioctl, beside a real one, says the same of each of these.
func TestHostsForSidecars(t *testing.T) {
	route := func(namespace, host, exportTo string) string {
		return `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: v, namespace: ` + namespace + `}
spec: {hosts: ["` + host + `"], exportTo: [` + exportTo + `], http: [{route: [{destination: {host: api.example.com}}]}]}
`
	}
	const all, own = `"*"`, `"."`
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"for all and for all":             {route("a", "h.com", "") + route("b", "h.com", all), 2},
		"for all and for its own":         {route("a", "h.com", "") + route("b", "h.com", own), 2},
		"for one namespace":               {route("a", "h.com", own) + route("b", "h.com", "a"), 2},
		"for namespaces apart":            {route("a", "h.com", own) + route("b", "h.com", own), 0},
		"all of three":                    {route("a", "h.com", own) + route("b", "h.com", "a") + route("c", "h.com", ""), 3},
		"a wildcard of its own":           {route("a", "*.com", own) + route("b", "h.com", ""), 2},
		"beside a wildcard for all":       {route("a", "h.com", own) + route("b", "*.com", ""), 2},
		"wildcards that overlap":          {route("a", "*.h.com", own) + route("b", "*.com", ""), 2},
		"a wildcard and what it is above": {route("a", "*.com", own) + route("b", "com", ""), 0},
		"both for all, of other length":   {route("a", "*.com", "") + route("b", "h.com", ""), 0},
		"short and whole names":           {route("a", "web", own) + route("b", "web.a.svc.cluster.local", ""), 2},
		"short names in namespaces":       {route("a", "web", "") + route("b", "web", ""), 0},
	} {
		found := 0
		for _, code := range codesOf(t, c.text) {
			if strings.HasPrefix(code, meshHostClash) {
				found++
			}
		}
		if found != c.want {
			t.Errorf("%s: %d are found, not %d", name, found, c.want)
		}
	}
}

// TestDefaultsOfTheMesh: what doesn't say whom it is for is exported as the mesh's settings say.
func TestDefaultsOfTheMesh(t *testing.T) {
	const clash = `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: v, namespace: a}
spec: {hosts: [h.com], http: [{route: [{destination: {host: api.example.com}}]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: v, namespace: b}
spec: {hosts: [h.com], http: [{route: [{destination: {host: api.example.com}}]}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: e, namespace: a}
spec: {hosts: [api.example.com], resolution: DNS, ports: [{number: 80, name: a, protocol: HTTP}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: e, namespace: b}
spec: {hosts: [api.example.com], resolution: DNS, ports: [{number: 80, name: a, protocol: TCP}]}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: s, namespace: b}
spec: {egress: [{hosts: ["a/h.com"]}]}
`
	own := []string{"."}
	for name, c := range map[string]struct {
		settings *mesh.MeshConfig
		want     []string
	}{
		"for all":          {nil, []string{meshHostClash, meshHostClash, protocolClash, protocolClash, hiddenHost}},
		"services":         {&mesh.MeshConfig{DefaultServiceExportTo: own}, []string{meshHostClash, meshHostClash, hiddenHost}},
		"virtual services": {&mesh.MeshConfig{DefaultVirtualServiceExportTo: own}, []string{protocolClash, protocolClash}},
	} {
		var r Reader
		r.Add("a.yaml", []byte(clash))
		r.Input.Mesh = c.settings
		var got []string
		for _, f := range r.All() {
			if f.Code == meshHostClash || f.Code == protocolClash || f.Code == hiddenHost {
				got = append(got, f.Code)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}

// TestNoObject: documents that are no objects, of which files may have very many, are not kept.
func TestNoObject(t *testing.T) {
	r := Reader{Check: validation.New().Check}
	r.Add("some.yaml", []byte("---\na: 1\n---\nmetadata: {name: a}\n---\n{apiVersion: v2, kind: Service, metadata: {name: a}}\n"))
	if n := len(r.Input.Resources); n > 0 {
		t.Errorf("%d are kept: %+v", n, r.Input.Resources)
	}
}

// TestProxyAnnotation: settings of a pod's proxy that no proxy could run with are told as those
// that can't be read.
func TestProxyAnnotation(t *testing.T) {
	for text, wrong := range map[string]bool{"statusPort: 0": true, "nonsense: [": true, "statusPort: 15099": false, "": false} {
		r := Reader{}
		r.Add("pod.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {proxy.istio.io/config: '"+text+
			"'}}\nspec: {containers: [{name: c, image: c}]}\n"))
		told := slices.ContainsFunc(r.All(), func(f kinds.Fault) bool { return f.Code == badAnnotation })
		if told != wrong {
			t.Errorf("%q: told as wrong: %v, want %v", text, told, wrong)
		}
	}
}
