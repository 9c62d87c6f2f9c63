package ingress

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	mesh "istio.io/api/mesh/v1alpha1"
	istio "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// read makes rows of YAML documents, checked as files are.
func read(t *testing.T, text string) (out []plugintest.Rows) {
	t.Helper()
	reader := kinds.Reader{Check: validation.New().Check, Gateways: true}
	for _, d := range reader.Read("edge.yaml", []byte(text)) {
		if d.Row == nil {
			t.Fatalf("edge.yaml:%d: %v", d.Line, d.Faults)
		}
		out = append(out, plugintest.Rows{Table: d.Table, Upserts: []*sdk.Row{d.Row}})
	}
	return out
}

func service(namespace, name string, port uint32) plugintest.Rows {
	return plugintest.Rows{Table: state.Services, Upserts: []*sdk.Row{sdk.ServiceRow(&pb.Service{
		Namespace: namespace, Host: name + "." + namespace + ".svc.cluster.local", Ports: []*pb.Port{{Number: port, Name: "http"}},
	})}}
}

func settings(t *testing.T, change func(m *mesh.MeshConfig)) plugintest.Rows {
	t.Helper()
	m := meshdefaults.Defaults()
	change(m)
	payload, err := kinds.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return plugintest.Rows{Table: state.Mesh, Upserts: []*sdk.Row{{Key: state.Mesh, Payload: payload}}}
}

func gone(table, key string) plugintest.Rows {
	return plugintest.Rows{Table: table, Deletes: []string{key}}
}

// derivedOf are TABLE KEY SOURCE of the rows, and what is wrong.
func derivedOf(h *plugintest.Harness) (rows, faults []string) {
	for _, table := range []string{kinds.Gateway, kinds.VirtualService} {
		for key, r := range h.Rows(table) {
			rows = append(rows, table+" "+key+" "+r.Source)
		}
	}
	for _, r := range h.Rows(kinds.FaultTable) {
		var f kinds.Fault
		if err := json.Unmarshal(r.Payload, &f); err != nil {
			f.Message = err.Error()
		}
		faults = append(faults, f.Error())
	}
	slices.Sort(rows)
	slices.Sort(faults)
	return rows, faults
}

// TestReadme: the README's example makes what it says.
func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 4)
	h := plugintest.Start(t, Plugin(), string(config))
	h.WaitDone(h.Commit(append(read(t, blocks[1].Text), service("default", "shop", 8080))...))
	rows, faults := derivedOf(h)
	if got, want := strings.Join(rows, "\n"), strings.TrimSpace(blocks[2].Text); got != want {
		t.Errorf("rows:\n%s\nthe README has\n%s", got, want)
	}
	if got, want := strings.Join(faults, "\n"), strings.TrimSpace(blocks[3].Text); got != want {
		t.Errorf("log:\n%s\nthe README has\n%s", got, want)
	}
}

// an makes an Ingress with one rule.
func an(namespace, name, more, host, path string) string {
	return fmt.Sprintf("---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: %s, namespace: "+
		"%s%s\nspec:\n  rules:\n  - host: %q\n    http: {paths: [{path: %s, pathType: Prefix, backend: {service: {name: "+
		"web, port: {name: http}}}}]}\n",
		name, namespace, more, host, path)
}

const (
	annotated = ", annotations: {kubernetes.io/ingress.class: istio}}"
	theirs    = ", annotations: {kubernetes.io/ingress.class: theirs}}"
)

// routes are the hosts, paths and backends of the derived VirtualServices, in order.
func routes(t *testing.T, h *plugintest.Harness) (out []string) {
	t.Helper()
	rows := h.Rows(kinds.VirtualService)
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		v, err := kinds.Decode[*istio.VirtualService](rows[key])
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range v.Http {
			at := ""
			if len(r.Match) > 0 {
				at = r.Match[0].Uri.GetExact() + r.Match[0].Uri.GetPrefix()
			}
			d := r.Route[0].Destination
			out = append(out, fmt.Sprintf("%s%s %s:%d", v.Hosts[0], at, d.Host, d.Port.Number))
		}
	}
	return out
}

// TestHistory: what is derived follows its objects, their class and the mesh's settings, whatever
// goes or comes first, and a row that can't be read keeps what was made of it.
func TestHistory(t *testing.T) {
	h := plugintest.Start(t, Plugin(), nil)
	step := func(what string, rows int, faults string, changes ...plugintest.Rows) {
		t.Helper()
		h.WaitDone(h.Commit(changes...))
		got, said := derivedOf(h)
		if text := strings.Join(said, "\n"); len(got) != rows || faults == "" && text != "" || !strings.Contains(text, faults) {
			t.Errorf("%s: %d rows, want %d\n%s\nfaults:\n%s\nwant %q", what, len(got), rows, strings.Join(got, "\n"), text, faults)
		}
	}
	classed := strings.Replace(an("a", "web", "}", "a.example", "/"), "spec:\n", "spec:\n  ingressClassName: mesh\n", 1)
	class := func(controller string) []plugintest.Rows {
		return read(t, "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: mesh}\nspec: {controller: "+controller+"}\n")
	}
	step("an Ingress alone", 0, "info: Ingress a/web: is not served: there is no IngressClass mesh", read(t, classed)...)
	step("its class", 2, `service a/web is not known, so that its port "http" has no number; the path is not served`, class(ingress.Controller)...)
	step("the backend", 2, "", service("a", "web", 8080))
	if got := routes(t, h); !slices.Equal(got, []string{"a.example/ web.a.svc.cluster.local:8080"}) {
		t.Errorf("%q", got)
	}
	step("the class is others'", 0, "", class("example.com/theirs")...)
	step("it is ours again", 2, "", class(ingress.Controller)...)
	step("the mesh serves none", 0, "is not served: the mesh's ingressControllerMode is OFF",
		settings(t, func(m *mesh.MeshConfig) { m.IngressControllerMode = mesh.MeshConfig_OFF }))
	step("it serves all that are nobody's", 4, "", append(read(t, an("a", "plain", "}", "b.example", "/")),
		settings(t, func(m *mesh.MeshConfig) { m.IngressControllerMode = mesh.MeshConfig_DEFAULT }))...)
	step("but not those of others", 4, "", read(t, an("a", "foreign", theirs, "c.example", "/"))...)
	step("a row that can't be read", 4, "",
		plugintest.Rows{Table: ingress.Ingress, Upserts: []*sdk.Row{{Key: "a/web", Payload: []byte("{"), Source: "edge.yaml:1:1"}}},
		gone(ingress.Ingress, "no/such"))
	if len(h.Faults()) != 1 {
		t.Errorf("faults of rows: %v", h.Faults())
	}
	step("it is right again, without a class", 4, "", read(t, an("a", "web", "}", "a.example", "/"))...)
	step("the mesh is strict", 0, "is not served: it names no class", settings(t, func(*mesh.MeshConfig) {}))
	step("nothing is left", 0, "", gone(ingress.Ingress, "a/web"), gone(ingress.Ingress, "a/plain"),
		gone(ingress.Ingress, "a/foreign"), gone(ingress.Class, "mesh"))
}

// TestHosts: Ingresses of one host are one VirtualService, in the order of their age; who has a
// path already is said to the younger one. Hosts that istiod gives one name are both served.
func TestHosts(t *testing.T) {
	h := plugintest.Start(t, Plugin(), nil)
	old := strings.ReplaceAll(annotated, "annotations", "creationTimestamp: '2020-01-01T00:00:00Z', annotations")
	young := strings.ReplaceAll(annotated, "annotations", "creationTimestamp: '2021-01-01T00:00:00Z', annotations")
	text := an("b", "z", old, "shop.example", "/cart") + an("a", "a", young, "shop.example", "/cart/") + an("a", "b", young, "shop.example", "/cart/more")
	changes := read(t, text)
	two := strings.Replace(an("c", "c", annotated, "x.y.example", "/"), "  rules:\n",
		"  rules:\n  - host: x-y.example\n    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}\n",
		1)
	h.WaitDone(h.Commit(append(append(changes, read(t, two)...), service("a", "web", 1), service("b", "web", 2), service("c", "web", 3))...))
	want := []string{
		"shop.example/cart/more web.a.svc.cluster.local:1", "shop.example/cart/ web.a.svc.cluster.local:1", "shop.example/cart web.b.svc.cluster.local:2",
		"x-y.example/ web.c.svc.cluster.local:3", "x.y.example/ web.c.svc.cluster.local:3",
	}
	if got := routes(t, h); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if _, faults := derivedOf(h); len(faults) != 1 || !strings.Contains(faults[0],
		"Ingress b/z: spec.rules[0].http.paths[0]: requests for /cart of host shop.example never get here: Ingress a/a has /cart/, which is tried first") {
		t.Errorf("%q", faults)
	}
	if _, ok := h.Rows(kinds.VirtualService)["b/shop-example-z-"+autogenerated]; !ok {
		t.Errorf("the oldest has not given its name: %v", h.Rows(kinds.VirtualService))
	}
}

// TestSelector: which gateways serve Ingresses follows the mesh's settings.
func TestSelector(t *testing.T) {
	h := plugintest.Start(t, Plugin(), nil)
	for want, change := range map[string]func(m *mesh.MeshConfig){
		"ingressgateway": func(*mesh.MeshConfig) {},
		"edge":           func(m *mesh.MeshConfig) { m.IngressSelector, m.IngressService = "edge", "other" },
		"other":          func(m *mesh.MeshConfig) { m.IngressService = "other" },
	} {
		h.WaitDone(h.Commit(append(read(t, an("a", "web", annotated, "", "/")), settings(t, change))...))
		row := h.Rows(kinds.Gateway)["istio-system/web-"+autogenerated+"-a"]
		if row == nil {
			t.Fatal(h.Rows(kinds.Gateway))
		}
		if g, err := kinds.Decode[*istio.Gateway](row); err != nil || g.Selector["istio"] != want {
			t.Errorf("%v, %v, want %s", g, err, want)
		}
	}
}

// TestMany: thousands of Ingresses of one namespace and one host are derived, one edit costs what
// it concerns, and what is said of them is bounded by them.
func TestMany(t *testing.T) {
	const count = 3000
	h := plugintest.Start(t, Plugin(), nil)
	var rows []*sdk.Row
	var text strings.Builder
	for i := range count {
		text.WriteString(an("a", fmt.Sprintf("web-%d", i), annotated, fmt.Sprintf("%d.example", i%1000), fmt.Sprintf("/%d", i)))
	}
	for _, each := range read(t, text.String()) {
		rows = append(rows, each.Upserts...)
	}
	h.WaitDone(h.Commit(plugintest.Rows{Table: ingress.Ingress, Upserts: rows}, service("a", "web", 80)))
	if g, v := len(h.Rows(kinds.Gateway)), len(h.Rows(kinds.VirtualService)); g != count || v != 1000 {
		t.Errorf("%d Gateways, %d VirtualServices", g, v)
	}
	h.WaitDone(h.Commit(read(t, an("a", "web-7", annotated, "7.example", "/changed"))...))
	if got := routes(t, h); len(got) != count || !slices.Contains(got, "7.example/changed web.a.svc.cluster.local:80") {
		t.Errorf("%d routes", len(got))
	}
}

// TestConfig: what is no domain or namespace is refused.
func TestConfig(t *testing.T) {
	for bad, want := range map[string]string{
		`{"domain": ""}`: "domain", `{"domain": ".local"}`: "domain", `{"namespace": "a/b"}`: "namespace",
		`{"namespace": ""}`: "namespace",
	} {
		if field, reason := plugintest.Refusal(t, Plugin(), bad); field != want {
			t.Errorf("%s: %s %s", bad, field, reason)
		}
	}
}
