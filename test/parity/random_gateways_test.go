package parity

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

var kindsMade = flag.String("kinds", "all",
	"kinds of random meshes and histories: istio, gateway (with Ingresses), both, or all: one after the other")

// dice say what a random object says.
type dice struct{ r *rand.Rand }

func (d dice) chance(p float64) bool { return d.r.Float64() < p }

// one returns a word of a list.
func (d dice) one(list string) string { return pick(d.r, strings.Fields(list)) }

// of returns an element of a list.
func (d dice) of(list ...string) string { return pick(d.r, list) }

// some returns what is said, or nothing.
func (d dice) some(p float64, text string) string {
	if d.chance(p) {
		return text
	}
	return ""
}

// list makes from least to most elements, in brackets.
func (d dice) list(least, most int, element func(int) string) string {
	var all []string
	for i := range least + d.r.IntN(most-least+1) {
		all = append(all, element(i))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// mapping joins fields of a mapping, without those that are empty.
func mapping(all ...string) string {
	return "{" + strings.Join(slices.DeleteFunc(all, func(f string) bool { return f == "" }), ", ") + "}"
}

// kindsOfMesh are the kinds of which a mesh, or a history, has objects: Istio's (of a history also
// Services, pods and slices), and those of the Gateway API with Ingresses.
type kindsOfMesh struct{ istio, gateway bool }

// kindsOf are those of the nth: it changes from one to the next.
func kindsOf(n uint64) kindsOfMesh {
	switch *kindsMade {
	case "istio":
		return kindsOfMesh{istio: true}
	case "gateway":
		return kindsOfMesh{gateway: true}
	case "both":
		return kindsOfMesh{true, true}
	case "all":
		return []kindsOfMesh{{true, false}, {false, true}, {true, true}}[n%3]
	}
	panic("no such kinds: " + *kindsMade)
}

// newMesh makes the nth of the seed.
func newMesh(n uint64, valid func(map[string]any) bool, refused *int) (m randomMesh) {
	g := newGen(*seed, n)
	makes := kindsOf(n)
	if makes.istio {
		m = g.newMesh(valid, refused)
	} else {
		m.objects = []map[string]any{settingsOf("{}\n")}
		m.proxies = []proxy{
			newProxy("sidecar", "client", "client", "alpha", "10.40.0.9", map[string]any{"version": "v1"}),
			newProxy("sidecar", "web-1", "web", "alpha", "10.40.1.1", map[string]any{"version": "v1"}),
			newProxy("sidecar", "shop-1", "shop", "beta", "10.41.2.1", map[string]any{"version": "v1"}),
			newProxy("router", "gateway-1", "gateway", rootNamespace, "10.49.1.1",
				map[string]any{"istio": "ingressgateway"}),
		}
	}
	m.makes = makes
	if makes.gateway {
		of := gatewayObjects{dice{rand.New(rand.NewPCG(*seed, 1<<32+n))}}
		set(m.objects[0], "ingressService", "gateway")
		m.objects = append(m.objects, of.objects(8+of.r.IntN(20))...)
		m.proxies = append(m.proxies, proxiesOfGateways()...)
	}
	return m
}

// set adds to the settings of a mesh.
func set(o map[string]any, key string, value any) {
	data := o["data"].(map[string]any)
	settings := map[string]any{}
	if err := yaml.Unmarshal([]byte(data["mesh"].(string)), &settings); err != nil {
		panic(err)
	}
	settings[key] = value
	text, err := yaml.Marshal(settings)
	if err != nil {
		panic(err)
	}
	data["mesh"] = string(text)
}

// isOfGateways reports whether an object is of the Gateway API, or an Ingress.
func isOfGateways(o map[string]any) bool {
	group, _, _ := strings.Cut(o["apiVersion"].(string), "/")
	return strings.HasPrefix(group, "gateway.networking.") || group == "networking.k8s.io"
}

// collect deletes what was deployed for Gateways that are no more, as Kubernetes' garbage collector
// does: by its owner's UID, for one of the name may have come again.
func (c *cluster) collect(t *testing.T) {
	t.Helper()
	living := map[types.UID]bool{}
	list, err := c.objects.Resource(markers).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		living[list.Items[i].GetUID()] = true
	}
	for _, at := range deployed {
		list, err := c.objects.Resource(at).List(context.Background(),
			metav1.ListOptions{LabelSelector: "gateway.istio.io/managed"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			owners := o.GetOwnerReferences()
			lives := func(owner metav1.OwnerReference) bool { return owner.Kind != "Gateway" || living[owner.UID] }
			if len(owners) > 0 && !slices.ContainsFunc(owners, lives) {
				c.remove(t, at, o)
			}
		}
	}
}

var (
	ofCondition = regexp.MustCompile(`\[\["(\w+)",null\]\]`)
	bracketed   = regexp.MustCompile(`\[.*\]`)
)

// sorts are the sorts of differences of what is written: kind and path, without names.
func (r report) sorts() (sorts []string) {
	for _, difference := range r.differences {
		lines := strings.Split(difference, "\n    ")
		kind, _, _ := strings.Cut(lines[0], " ")
		if len(lines) == 1 {
			_, who, _ := strings.Cut(lines[0], ": ")
			who, _, _ = strings.Cut(who, ":")
			lines = append(lines, who)
		}
		for _, line := range lines[1:] {
			path, _, _ := strings.Cut(line, ": istiod ")
			s := "written " + kind + " " +
				bracketed.ReplaceAllString(ofCondition.ReplaceAllString(strings.TrimSpace(path), "($1)"), "[]")
			if !slices.Contains(sorts, s) {
				sorts = append(sorts, s)
			}
		}
	}
	return sorts
}

func (r report) text() string {
	if len(r.differences) == 0 {
		return ""
	}
	return strings.Join(r.differences, "\n") + "\n"
}

// judge fails the test where too little is equal of statuses and of what is deployed.
func (r report) judge(t *testing.T) {
	t.Helper()
	if s, d := r.statuses.share(), r.deployed.share(); s < *statuses || d < *statuses {
		t.Errorf("%.2f %% of statuses and %.2f %% of deployed objects are equal; %v are wanted", s, d, *statuses)
	}
}

// gatewayWorld is what random objects of the Gateway API and Ingresses have in common beside the
// world: proxies of the Gateways that there may be, secrets, and classes.
const gatewayWorld = `
{apiVersion: v1, kind: Secret, metadata: {name: good, namespace: alpha}, type: kubernetes.io/tls, data: {tls.crt: '${certificate}', tls.key: '${key}'}}
---
{apiVersion: v1, kind: Secret, metadata: {name: good, namespace: beta}, type: kubernetes.io/tls, data: {tls.crt: '${certificate}', tls.key: '${key}'}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: root, namespace: alpha}, data: {ca.crt: "${root}"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: root, namespace: beta}, data: {ca.crt: "${root}"}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: istio}, spec: {controller: istio.io/ingress-controller}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: mine}, spec: {controller: istio.io/ingress-controller}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: nginx}, spec: {controller: example.com/nginx}}
`

// edge is a Gateway that there may be: its proxy is there all the time.
type edge struct{ namespace, name, address string }

var edges = []edge{{"alpha", "edge", "10.49.2.1"}, {"alpha", "inner", "10.49.2.2"}, {"beta", "far", "10.49.2.3"}}

func (e edge) labels() map[string]any {
	return map[string]any{
		"gateway.networking.k8s.io/gateway-name": e.name, "gateway.networking.k8s.io/gateway-class-name": "istio",
		"istio.io/gateway-name": e.name, "gateway.istio.io/managed": "istio.io-gateway-controller",
	}
}

// worldOfGateways are the manifests of it.
func worldOfGateways() string {
	out := gatewayWorld
	for _, e := range edges {
		out += fmt.Sprintf("---\n{apiVersion: v1, kind: Pod, metadata: {name: %[1]s-1, namespace: %[2]s, labels: {app: %[1]s-istio, "+
			"gateway.networking.k8s.io/gateway-name: %[1]s, gateway.networking.k8s.io/gateway-class-name: istio, istio.io/gateway-name: %[1]s, "+
			"gateway.istio.io/managed: istio.io-gateway-controller}}, "+
			"spec: {nodeName: node-0, serviceAccountName: %[1]s-istio, containers: [{name: app, image: app}]}, "+
			"status: {phase: Running, podIP: %[3]s, podIPs: [{ip: %[3]s}], conditions: [{type: Ready, status: 'True'}]}}\n", e.name, e.namespace, e.address)
		out += fmt.Sprintf("---\n{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: %[1]s-istio, namespace: %[2]s, "+
			"labels: {kubernetes.io/service-name: %[1]s-istio, endpointslice.kubernetes.io/managed-by: parity}}, addressType: IPv4, "+
			"endpoints: [{addresses: [%[3]s], conditions: {ready: true, serving: true}, nodeName: node-0, "+
			"targetRef: {kind: Pod, name: %[1]s-1, namespace: %[2]s}}], ports: [{name: status-port, port: 15021}, {name: http, port: 80}]}\n",
			e.name, e.namespace, e.address)
	}
	return out
}

// proxiesOfGateways are those of the Gateways.
func proxiesOfGateways() (all []proxy) {
	for _, e := range edges {
		all = append(all, newProxy("router", e.name+"-1", e.name+"-istio", e.namespace, e.address, e.labels()))
	}
	return all
}

// gatewayObjects makes objects of the Gateway API, Ingresses, and what these speak of.
type gatewayObjects struct{ dice }

// gatewayKind is one of them, and how often it comes. Objects have few names, so that they meet,
// and come again in histories.
type gatewayKind struct {
	weight int
	make   func(gatewayObjects) string
}

var gatewayKinds = []gatewayKind{
	{3, gatewayObjects.gateway}, {2, gatewayObjects.listenerSet}, {7, gatewayObjects.httpRoute}, {3,
		gatewayObjects.grpcRoute},
	{2, gatewayObjects.tlsRoute}, {2, gatewayObjects.tcpRoute}, {3, gatewayObjects.grant}, {2,
		gatewayObjects.backendPolicy},
	{3, gatewayObjects.ingress}, {1, gatewayObjects.entry},
}

// object makes one.
func (d gatewayObjects) object() map[string]any {
	sum := 0
	for _, k := range gatewayKinds {
		sum += k.weight
	}
	n := d.r.IntN(sum)
	for _, k := range gatewayKinds {
		if n -= k.weight; n < 0 {
			return parsed("%s", k.make(d))
		}
	}
	panic("unreachable")
}

// objects makes some that have each a name of its own, with a Gateway at least, in the order in
// which they are to be made.
func (d gatewayObjects) objects(count int) []map[string]any {
	all := map[string]map[string]any{}
	put := func(o map[string]any) { all[name(o)] = o }
	put(parsed("%s", d.gatewayOf(edges[0])))
	for range count {
		put(d.object())
	}
	var out []map[string]any
	for _, key := range ordered(all) {
		out = append(out, all[key])
	}
	slices.SortStableFunc(out, byAge)
	return out
}

// byAge is the order in which objects are made: of those that want the same thing the older one is
// the first by name, too, whether both were made in one second or not.
func byAge(a, b map[string]any) int {
	title := func(o map[string]any) string {
		meta := o["metadata"].(map[string]any)
		return fmt.Sprintf("%s.%s", meta["name"], meta["namespace"])
	}
	return cmp.Or(cmp.Compare(a["kind"].(string), b["kind"].(string)), cmp.Compare(title(a), title(b)))
}

const gatewayAPI = "apiVersion: gateway.networking.k8s.io/v1"

func (d gatewayObjects) namespace() string { return d.one("alpha alpha alpha beta") }

func object(kind, name, namespace, more, spec string) string {
	return fmt.Sprintf("{%s, metadata: {name: %s, namespace: %s%s}, spec: %s}", kind, name, namespace, more, spec)
}

func (d gatewayObjects) gateway() string { return d.gatewayOf(pick(d.r, edges)) }

func (d gatewayObjects) gatewayOf(e edge) string {
	class := "istio"
	if d.chance(0.08) {
		class = d.one("istio-remote nobody")
	}
	return object(gatewayAPI+", kind: Gateway", e.name, e.namespace, d.some(0.1,
		", annotations: {networking.istio.io/service-type: ClusterIP}"), mapping(
		"gatewayClassName: "+class,
		d.some(0.12, "addresses: ["+d.of(
			"{type: Hostname, value: gateway.istio-system.svc.cluster.local}",
			"{type: IPAddress, value: 198.51.100.77}",
			"{type: Hostname, value: nobody.alpha.svc.cluster.local}",
			"{value: gateway.istio-system.svc.cluster.local, type: Hostname}")+"]"),
		d.some(0.1, "infrastructure: {labels: {of: it}, annotations: {more: text}}"),
		d.some(0.5, "allowedListeners: {namespaces: {from: "+d.of("All", "Same", "None",
			"Selector, selector: {matchLabels: {team: b}}")+"}}"),
		d.some(0.08, "tls: {frontend: {default: {validation: {caCertificateRefs: ["+d.root()+"]}}}}"),
		"listeners: "+d.list(1, 5, d.listener),
	))
}

func (d gatewayObjects) root() string {
	return fmt.Sprintf("{group: '', kind: ConfigMap, name: %s}", d.one("root root root missing"))
}

func (d gatewayObjects) hostname() string {
	return d.one("a.example.com a.example.com b.example.com '*.example.com' '*.example.com' '*.com' x.a.example.com '*.a.example.com' c.example.org")
}

// listener is the nth of a Gateway, or of a ListenerSet.
func (d gatewayObjects) listener(n int) string {
	protocol, port, tls := "HTTP", d.one("80 80 80 8080 443"), ""
	switch d.r.IntN(10) {
	case 0, 1, 2:
		protocol, port, tls = "HTTPS", d.one("443 443 8443 80"), d.terminated()
	case 3:
		protocol, port, tls = "TLS", d.one("443 8443 9443"), "tls: {mode: Passthrough}"
	case 4:
		protocol, port = "TCP", d.one("9000 9001 80")
	case 5:
		protocol, port, tls = "TLS", d.one("8443 9443"), d.terminated()
	}
	hostname := d.some(0.6, "hostname: "+d.hostname())
	if protocol == "TCP" {
		hostname = ""
	}
	return mapping(fmt.Sprintf("name: l%d", n), "port: "+port, "protocol: "+protocol, hostname, tls, d.some(0.6,
		"allowedRoutes: "+d.allowed()))
}

func (d gatewayObjects) terminated() string {
	ref := func(int) string {
		return "{" + d.of("name: good", "name: good", "name: good", "name: good", "name: good, namespace: beta",
			"name: missing",
			"name: good, kind: ConfigMap", "name: good, group: example.com, kind: Thing") + "}"
	}
	mode := d.some(0.7, "mode: Terminate")
	refs := d.list(1, 1+d.r.IntN(2), ref)
	if _, second, two := strings.Cut(refs, "}, "); two { // of a first one that is bad: docs/differences.md
		refs = "[{name: good}, " + second
	}
	return "tls: " + mapping(mode, "certificateRefs: "+refs,
		d.some(0.1, "options: {"+d.of("gateway.istio.io/tls-terminate-mode: MUTUAL",
			"gateway.istio.io/tls-min-protocol-version: TLSV1_3",
			"gateway.istio.io/tls-cipher-suites: 'ECDHE-RSA-AES128-GCM-SHA256'")+"}"))
}

func (d gatewayObjects) allowed() string {
	return mapping(
		d.some(0.8, "namespaces: {from: "+d.of("All", "All", "Same", "Selector, selector: {matchLabels: {team: b}}",
			"Selector, selector: {matchExpressions: [{key: team, operator: In, values: [a, b]}]}",
			"Selector, selector: {matchExpressions: [{key: team, operator: NotIn, values: [b]}]}",
			"Selector, selector: {matchExpressions: [{key: other, operator: Exists}]}")+"}"),
		d.some(0.25, "kinds: "+d.list(1, 2, func(int) string {
			return d.of("{kind: HTTPRoute}", "{kind: HTTPRoute}", "{kind: GRPCRoute}", "{kind: TLSRoute}",
				"{kind: TCPRoute}", "{kind: UDPRoute}",
				"{group: example.com, kind: ThingRoute}", "{group: gateway.networking.k8s.io, kind: HTTPRoute}")
		})),
	)
}

func (d gatewayObjects) listenerSet() string {
	e := pick(d.r, edges)
	parent := mapping("name: "+d.of(e.name, e.name, e.name, e.name, "nobody"), "namespace: "+e.namespace, d.some(0.3,
		"kind: Gateway, group: gateway.networking.k8s.io"))
	return object(gatewayAPI+", kind: ListenerSet", "set"+d.one("0 1"), d.namespace(), "",
		mapping("parentRef: "+parent, "listeners: "+d.list(1, 3, d.listener)))
}

// parents are what a route names; kinds of services are those of the mesh.
func (d gatewayObjects) parents(mesh bool) string {
	if mesh && d.chance(0.25) {
		return "parentRefs: " + d.list(1, 1+d.r.IntN(2), func(int) string {
			return "{" + d.of("group: '', kind: Service, name: web", "group: '', kind: Service, name: api",
				"group: '', kind: Service, name: shop, namespace: beta",
				"group: '', kind: Service, name: head", "group: '', kind: Service, name: db",
				"group: '', kind: Service, name: nobody",
				"group: networking.istio.io, kind: ServiceEntry, name: out") + d.some(0.4,
				", port: "+d.one("80 80 7070 9000 81")) + "}"
		})
	}
	var all []string
	named := map[string]bool{}
	for range 1 + d.r.IntN(3) {
		e := edges[0]
		if d.chance(0.4) {
			e = pick(d.r, edges)
		}
		switch {
		case d.chance(0.12):
			e.name = "set" + d.one("0 1")
			all = append(all, mapping("group: gateway.networking.k8s.io, kind: ListenerSet, name: "+e.name,
				d.some(0.5, "namespace: "+d.namespace()), d.some(0.3, "sectionName: l"+d.one("0 1 2"))))
		case d.chance(0.03):
			e.name = "nobody"
			all = append(all, d.of("{group: example.com, kind: Thing, name: x}", "{name: nobody}",
				"{group: networking.istio.io, kind: Gateway, name: gw0}"))
		default:
			all = append(all, mapping("name: "+e.name, "namespace: "+e.namespace,
				d.some(0.3, "sectionName: l"+d.one("0 0 1 2 3 7")), d.some(0.15, "port: "+d.one("80 443 8080 9000"))))
		}
		if named[e.name] { // two that name one parent would have to name two of its sections
			all = all[:len(all)-1]
		}
		named[e.name] = true
	}
	if len(all) == 1 && d.chance(0.1) {
		all = []string{"{name: edge, namespace: alpha, sectionName: l0}",
			"{name: edge, namespace: alpha, sectionName: l1}"}
	}
	return "parentRefs: [" + strings.Join(all, ", ") + "]"
}

func (d gatewayObjects) hostnames(least int) string {
	var names []string
	for range least + d.r.IntN(3) {
		if h := d.hostname(); !slices.Contains(names, h) {
			names = append(names, h)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "hostnames: [" + strings.Join(names, ", ") + "]"
}

// backend is a reference to one, without brackets.
func (d gatewayObjects) backend(ports string) string {
	service := d.of("name: web", "name: web", "name: api", "name: api", "name: db", "name: head",
		"name: shop, namespace: beta", "name: shop, namespace: beta",
		"name: web, namespace: beta", "name: shop", "name: nobody", "name: web, namespace: nowhere")
	if d.chance(0.1) {
		service = d.of("name: out.example.net, group: networking.istio.io, kind: Hostname",
			"name: web.alpha.svc.cluster.local, group: networking.istio.io, kind: Hostname",
			"name: nobody.example.net, group: networking.istio.io, kind: Hostname",
			"name: x, group: example.com, kind: Thing", "name: out, group: networking.istio.io, kind: ServiceEntry")
	}
	return service + ", port: " + d.one(ports)
}

func (d gatewayObjects) backends(ports string, filters func() string) string {
	return d.some(0.93, "backendRefs: "+d.list(1, 3, func(int) string {
		return mapping(d.backend(ports), d.some(0.4, "weight: "+d.one("0 1 2 10 100")), filters())
	}))
}

func none() string { return "" }

const portsOfHTTP = "80 80 80 80 7070 8000 9000 1234"

func (d gatewayObjects) httpRoute() string {
	return object(gatewayAPI+", kind: HTTPRoute", "h"+d.one("0 1 2 3"), d.namespace(), "",
		mapping(d.parents(true), d.hostnames(0), "rules: "+d.list(1, 3, func(int) string { return d.httpRule() })))
}

func (d gatewayObjects) httpRule() string {
	matches := ""
	if d.chance(0.75) {
		matches = "matches: " + d.list(1, 3, func(int) string { return d.httpMatch() })
	}
	redirects, filters := false, ""
	if d.chance(0.4) {
		filters, redirects = d.httpFilters(true)
	}
	backends := d.backends(portsOfHTTP, func() string {
		if !d.chance(0.15) {
			return ""
		}
		more, _ := d.httpFilters(false)
		return more
	})
	if redirects {
		backends = ""
	}
	timeouts := ""
	if d.chance(0.2) && !redirects {
		timeouts = "timeouts: " + d.of("{request: 3s}", "{request: 1s, backendRequest: 500ms}",
			"{backendRequest: 2s}", "{request: 0s}", "{request: 1m30s}", "{backendRequest: 0s}")
	}
	retry := d.some(0.15, "retry: "+d.of("{attempts: 3}", "{codes: [500, 503], attempts: 2}",
		"{attempts: 1, backoff: 100ms}", "{codes: [500]}", "{attempts: 0}"))
	return mapping(d.some(0.1, "name: rule"+d.one("1 2")), matches, filters, backends, timeouts, retry,
		d.some(0.05, "sessionPersistence: {sessionName: s, type: Cookie}"))
}

func (d gatewayObjects) httpMatch() string {
	header := func(int) string {
		return d.of("{name: x-a, value: v}", "{name: X-B, type: Exact, value: w}",
			"{name: x-a, type: RegularExpression, value: 'v.*'}")
	}
	return mapping(
		d.some(0.8, "path: "+d.of("{value: /}", "{value: /a}", "{value: /a/}", "{type: Exact, value: /a}",
			"{type: Exact, value: /a/b}",
			"{type: PathPrefix, value: /a/b}", "{type: RegularExpression, value: '/a/[0-9]+'}",
			"{type: RegularExpression, value: '/.*'}", "{type: Exact, value: /}")),
		d.some(0.25, "headers: "+d.list(1, 1, header)),
		d.some(0.15, "queryParams: ["+d.of("{name: q, value: v}",
			"{name: q, type: RegularExpression, value: '[a-z]+'}")+"]"),
		d.some(0.2, "method: "+d.one("GET POST DELETE")),
	)
}

// headers is what a filter does to them.
func (d gatewayObjects) headers() string {
	return mapping(d.some(0.6, "set: [{name: x-set, value: s}"+d.some(0.3, ", {name: Host, value: h.example.com}")+"]"),
		d.some(0.6, "add: [{name: x-add, value: 'a b'}]"), d.some(0.4, "remove: [x-gone, server]"), "")
}

// httpFilters also reports whether one of them redirects. A rule's are more than a backend's.
func (d gatewayObjects) httpFilters(rule bool) (text string, redirects bool) {
	var all []string
	add := func(kind, field, value string) {
		all = append(all, fmt.Sprintf("{type: %s, %s: %s}", kind, field, value))
	}
	if d.chance(0.4) {
		add("RequestHeaderModifier", "requestHeaderModifier", d.headers())
	}
	if d.chance(0.4) {
		add("ResponseHeaderModifier", "responseHeaderModifier", d.headers())
	}
	if !rule {
		if len(all) == 0 {
			return "", false
		}
		return "filters: [" + strings.Join(all, ", ") + "]", false
	}
	if redirects = d.chance(0.25); redirects {
		add("RequestRedirect", "requestRedirect", mapping(d.some(0.5, "scheme: "+d.one("https http")), d.some(0.5,
			"hostname: to.example.com"),
			d.some(0.3, "port: "+d.one("8443 8080")), d.some(0.5, "statusCode: "+d.one("301 302 303 307 308")),
			d.some(0.3, "path: {type: ReplaceFullPath, replaceFullPath: /full}")))
	} else if d.chance(0.25) {
		add("URLRewrite", "urlRewrite", mapping(d.some(0.6, "hostname: re.example.com"), d.some(0.5,
			"path: {type: ReplaceFullPath, replaceFullPath: /full}")))
	}
	for range d.r.IntN(2) + d.r.IntN(2) {
		add("RequestMirror", "requestMirror", mapping("backendRef: {"+d.backend("80 80 8000")+"}", d.some(0.4,
			d.of("percent: 10", "fraction: {numerator: 1, denominator: 3}"))))
	}
	if d.chance(0.2) {
		add("CORS", "cors", mapping("allowOrigins: "+d.of("['https://a.example.com']", "['*']",
			"['https://*.example.com', 'http://b.example.com:8080']"),
			d.some(0.5, "allowMethods: "+d.of("[GET, POST]", "['*']")), d.some(0.4, "allowHeaders: [x-a]"),
			d.some(0.3, "exposeHeaders: [x-b]"),
			d.some(0.4, "allowCredentials: true"), d.some(0.3, "maxAge: 60")))
	}
	if d.chance(0.03) {
		add("ExtensionRef", "extensionRef", "{group: example.com, kind: Thing, name: x}")
	}
	if len(all) == 0 {
		return "", redirects
	}
	return "filters: [" + strings.Join(all, ", ") + "]", redirects
}

func (d gatewayObjects) grpcRoute() string {
	rule := func(int) string {
		matches := ""
		if d.chance(0.7) {
			matches = "matches: " + d.list(1, 2, func(int) string {
				return mapping(d.some(0.8, "method: "+d.of("{service: a.B}", "{service: a.B, method: C}",
					"{method: C}", "{type: RegularExpression, service: 'a.[A-Z]+'}",
					"{type: RegularExpression, method: 'C.*'}")), d.some(0.3, "headers: [{name: x-a, value: v}]"))
			})
		}
		filters := ""
		if d.chance(0.3) {
			filters = "filters: [" + d.of("{type: RequestHeaderModifier, requestHeaderModifier: "+d.headers()+"}",
				"{type: ResponseHeaderModifier, responseHeaderModifier: "+d.headers()+"}",
				"{type: RequestMirror, requestMirror: {backendRef: {"+d.backend("7070 80")+"}}}") + "]"
		}
		return mapping(matches, filters, d.backends("7070 7070 80 9000", none))
	}
	return object(gatewayAPI+", kind: GRPCRoute", "g"+d.one("0 1"), d.namespace(), "", mapping(d.parents(true),
		d.hostnames(0), "rules: "+d.list(1, 2, rule)))
}

func (d gatewayObjects) tlsRoute() string {
	return object(gatewayAPI+", kind: TLSRoute", "t"+d.one("0 1 2"), d.namespace(), "",
		mapping(d.parents(d.chance(0.3)), d.hostnames(1),
			"rules: "+d.list(1, 1, func(int) string { return mapping(d.backends("443 443 3306 80", none)) })))
}

func (d gatewayObjects) tcpRoute() string {
	return object(gatewayAPI+", kind: TCPRoute", "c"+d.one("0 1"), d.namespace(), "", mapping(d.parents(d.chance(0.3)),
		"rules: "+d.list(1, 1, func(int) string { return mapping(d.backends("9000 9000 3306 5432 80", none)) })))
}

func (d gatewayObjects) grant() string {
	from := func(int) string {
		return mapping("group: gateway.networking.k8s.io",
			"kind: "+d.one("HTTPRoute HTTPRoute HTTPRoute GRPCRoute TCPRoute TLSRoute Gateway ListenerSet"),
			"namespace: "+d.one("alpha alpha beta"))
	}
	to := func(int) string {
		return "{" + d.of("group: '', kind: Service", "group: '', kind: Service, name: shop",
			"group: '', kind: Service, name: web", "group: '', kind: Secret",
			"group: '', kind: Secret, name: good", "group: '', kind: ConfigMap") + "}"
	}
	return object("apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant", "r"+d.one("0 1"),
		d.one("beta beta alpha"), "",
		mapping("from: "+d.list(1, 3, from), "to: "+d.list(1, 2, to)))
}

func (d gatewayObjects) backendPolicy() string {
	target := func(int) string {
		return "{" + d.of("group: '', kind: Service, name: web", "group: '', kind: Service, name: api",
			"group: '', kind: Service, name: web, sectionName: https",
			"group: '', kind: Service, name: nobody", "group: '', kind: Service, name: shop",
			"group: networking.istio.io, kind: ServiceEntry, name: out") + "}"
	}
	trust := "caCertificateRefs: [{group: '', kind: ConfigMap, name: root}]" // others: docs/differences.md
	if d.chance(0.3) {
		trust = "wellKnownCACertificates: System"
	}
	return object(gatewayAPI+", kind: BackendTLSPolicy", "b"+d.one("0 1"), d.namespace(), "",
		mapping("targetRefs: "+d.list(1, 1+d.r.IntN(2), target),
			"validation: "+mapping(trust, "hostname: "+d.one("web.example.com other.example.com"), d.some(0.15,
				"subjectAltNames: [{type: Hostname, hostname: san.example.com}]"))))
}

func (d gatewayObjects) ingress() string {
	backend := func() string {
		return "{service: {name: " + d.one("web web api shop nobody") + ", port: " + d.of("{number: 80}",
			"{number: 80}", "{name: http}", "{number: 9000}", "{name: nobody}", "{number: 1234}") + "}}"
	}
	path := func(int) string {
		kind := d.one("Exact Prefix Prefix ImplementationSpecific")
		path := d.one("/ /a /a/b /a/ /long/path")
		if kind == "ImplementationSpecific" {
			path = d.one("/ /a /a.* /a/*")
		}
		return fmt.Sprintf("{path: '%s', pathType: %s, backend: %s}", path, kind, backend())
	}
	rule := func(int) string {
		return mapping(d.some(0.85, "host: "+d.one("a.example.com b.example.com '*.example.com' i.example.org")),
			"http: {paths: "+d.list(1, 3, path)+"}")
	}
	class, annotation := "ingressClassName: "+d.one("istio istio istio mine nginx nobody"), ""
	if d.chance(0.25) {
		class, annotation = "", d.some(0.7,
			", annotations: {kubernetes.io/ingress.class: "+d.one("istio istio nginx")+"}")
	}
	return object("apiVersion: networking.k8s.io/v1, kind: Ingress", "i"+d.one("0 1 2"), d.namespace(), annotation,
		mapping(class,
			d.some(0.15, "defaultBackend: "+backend()), "rules: "+d.list(1, 2, rule),
			d.some(0.3, "tls: [{"+d.some(0.8, "hosts: [a.example.com], ")+"secretName: "+d.one("good missing")+"}]")))
}

// entry is a ServiceEntry that routes and policies name.
func (d gatewayObjects) entry() string {
	return object("apiVersion: networking.istio.io/v1, kind: ServiceEntry", "out", "alpha", "",
		"{hosts: [out.example.net], resolution: "+d.one("DNS STATIC")+
			", endpoints: [{address: 192.0.2.9}], ports: [{number: 80, name: http, protocol: HTTP}, "+
			"{number: 9000, name: tcp, protocol: TCP}, {number: 443, name: tls, protocol: TLS}]}")
}
