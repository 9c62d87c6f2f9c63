package gatewayapi

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
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
	reader := kinds.Reader{Check: validation.New().Check, Gateways: true, Grants: true}
	for _, d := range reader.Read("edge.yaml", []byte(text)) {
		if d.Row == nil {
			t.Fatalf("edge.yaml:%d: %v", d.Line, d.Faults)
		}
		out = append(out, plugintest.Rows{Table: d.Table, Upserts: []*sdk.Row{d.Row}})
	}
	return out
}

func service(name string) plugintest.Rows {
	return plugintest.Rows{Table: state.Services, Upserts: []*sdk.Row{sdk.ServiceRow(&pb.Service{
		Namespace: "default", Host: name + ".default.svc.cluster.local", Ports: []*pb.Port{{Number: 80, Name: "http"}},
	})}}
}

// derivedOf are TABLE KEY SOURCE of the rows, and what is wrong.
func derivedOf(h *plugintest.Harness) (rows, faults []string) {
	for _, table := range []string{kinds.Gateway, kinds.VirtualService, kinds.DestinationRule} {
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
	h.WaitDone(h.Commit(append(read(t, blocks[1].Text), service("shop"))...))
	rows, faults := derivedOf(h)
	if got, want := strings.Join(rows, "\n"), strings.TrimSpace(blocks[2].Text); got != want {
		t.Errorf("rows:\n%s\nthe README has\n%s", got, want)
	}
	if got, want := strings.Join(faults, "\n"), strings.TrimSpace(blocks[3].Text); got != want {
		t.Errorf("log:\n%s\nthe README has\n%s", got, want)
	}
}

// TestExample: nothing is wrong with examples/gateway, and its Gateway and route are made.
func TestExample(t *testing.T) {
	h := plugintest.Start(t, Plugin(), nil)
	var changes []plugintest.Rows
	for _, name := range []string{"backends", "gateway"} {
		text, err := os.ReadFile("../../../examples/gateway/config/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, read(t, string(text))...)
	}
	h.WaitDone(h.Commit(changes...))
	if rows, faults := derivedOf(h); len(rows) != 2 || len(faults) > 0 {
		t.Errorf("%q, %q", rows, faults)
	}
}

const edge = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: istio
  listeners:
  - {name: http, port: 8080, protocol: HTTP}
  - {name: https, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: web}]}}
`

const shop = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: edge}]
  rules: [{backendRefs: [{name: shop, port: 80}]}]
`

const tlsPolicy = `---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: shop}]
  validation: {hostname: shop.example.com, wellKnownCACertificates: System}
`

// TestHistory: what is derived follows its objects, whatever goes or comes first, and a row that
// can't be read keeps what was made of it.
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
	gone := func(table, key string) plugintest.Rows { return plugintest.Rows{Table: table, Deletes: []string{key}} }
	step("a route alone", 0, "none of its parents is served here", read(t, shop)...)
	step("its gateway", 3, "secret default/web not found", read(t, edge)...)
	step("the backend", 3, "secret default/web not found", service("shop"))
	if _, faults := derivedOf(h); slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, "BackendNotFound") }) {
		t.Errorf("the backend is there: %q", faults)
	}
	broken := &sdk.Row{Key: "default/shop", Payload: []byte("{"), Source: "edge.yaml:1:1"}
	step("a row that can't be read", 3, "secret default/web not found",
		plugintest.Rows{Table: gatewayapi.HTTPRoute, Upserts: []*sdk.Row{broken}},
		gone(gatewayapi.GRPCRoute, "no/such"))
	if len(h.Faults()) != 1 {
		t.Errorf("faults of rows: %v", h.Faults())
	}
	step("it is right again", 3, "secret default/web not found", read(t, shop)...)
	step("without the gateway", 0, "none of its parents is served here", gone(gatewayapi.Gateway, "default/edge"))
	step("without the route", 0, "", gone(gatewayapi.HTTPRoute, "default/shop"))
}

// TestSelector: where there is no service a Gateway's proxies are found by its name.
func TestSelector(t *testing.T) {
	h := plugintest.Start(t, Plugin(), nil)
	h.WaitDone(h.Commit(read(t, edge)...))
	row := h.Rows(kinds.Gateway)["default/edge~istio-autogenerated-k8s-gateway~http"]
	if row == nil {
		t.Fatal(h.Rows(kinds.Gateway))
	}
	spec, err := kinds.Decode[*networking.Gateway](row)
	if err != nil || spec.Selector["gateway.networking.k8s.io/gateway-name"] != "edge" {
		t.Errorf("%v, %v", spec, err)
	}
	if row.Annotations["internal.istio.io/gateway-service"] != "edge-istio.default.svc.cluster.local" {
		t.Errorf("%v", row.Annotations)
	}
}

// TestNamedSecrets: where Secrets are read that are asked for alone, what a Gateway names is asked
// for, and is taken for there until it is known to be missing; what it may not have isn't asked
// for.
func TestNamedSecrets(t *testing.T) {
	h := plugintest.Start(t, Plugin(), `{"allSecrets": false}`)
	asked := func(want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(h.Rows(secrets.Named))); !slices.Equal(got, want) {
			t.Errorf("asked for %q, want %q", got, want)
		}
	}
	missing := func(want bool) {
		t.Helper()
		_, faults := derivedOf(h)
		if is := strings.Contains(strings.Join(faults, "\n"), "secret default/web not found"); is != want {
			t.Errorf("missing: %v, want %v; %q", is, want, faults)
		}
	}
	elsewhere := strings.NewReplacer("name: edge", "name: other", "name: web", "name: web, namespace: private").Replace(edge)
	h.WaitDone(h.Commit(append(read(t, edge), read(t, elsewhere)...)...))
	asked("Gateway/Secret/default/web")
	missing(false)
	q, err := secrets.DecodeRequest(h.Rows(secrets.Named)["Gateway/Secret/default/web"])
	web := secrets.Object{Kind: secrets.Secret, Namespace: "default", Name: "web"}
	if err != nil || !slices.Equal(q.Objects, []secrets.Object{web}) || q.Account.Name != "" {
		t.Errorf("%v, %v", q, err)
	}
	absent := &sdk.Row{Key: web.AbsenceKey(), Payload: secrets.Absence{Reason: "there is none"}.Encode()}
	h.WaitDone(h.Commit(plugintest.Rows{Table: secrets.Absences, Upserts: []*sdk.Row{absent}}))
	missing(true)
	h.WaitDone(h.Commit(plugintest.Rows{Table: secrets.SecretTable, Upserts: []*sdk.Row{{Key: web.Key(), Payload: secrets.Content{}.Encode()}}}))
	missing(false) // it is there, and no certificate
	if _, faults := derivedOf(h); !strings.Contains(strings.Join(faults, "\n"), "InvalidCertificateRef") {
		t.Errorf("an empty Secret is a certificate: %q", faults)
	}
	h.WaitDone(h.Commit(plugintest.Rows{Table: secrets.SecretTable, Deletes: []string{web.Key()}}))
	missing(true)
	h.WaitDone(h.Commit(plugintest.Rows{Table: gatewayapi.Gateway, Deletes: []string{"default/edge"}}))
	asked()
}

// TestBeyond: what istiod doesn't serve is in the derived Gateways where it is asked for: that
// listeners of HTTPS are told apart, and the certificate for backends, as long as the Gateway may
// have it.
func TestBeyond(t *testing.T) {
	other := strings.Replace(edge, "listeners:", "tls: {backend: {clientCertificateRef: {name: web, namespace: private}}}\n  listeners:", 1)
	grant := read(t, `apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: web, namespace: private}
spec: {from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: default}], to: [{group: "", kind: Secret}]}
`)
	own := strings.Replace(other, ", namespace: private", "", 1)
	for config, beyond := range map[string]bool{`{"allSecrets": false}`: false, `{"allSecrets": false, "beyond": true}`: true} {
		h := plugintest.Start(t, Plugin(), config)
		says := func(what, shown string) {
			t.Helper()
			for _, listener := range []string{"http", "https"} {
				row := h.Rows(kinds.Gateway)["default/edge~istio-autogenerated-k8s-gateway~"+listener]
				if row == nil {
					t.Fatalf("%s: no listener %s", what, listener)
				}
				want := shown
				if !beyond {
					want = ""
				}
				if got := row.Annotations[istio.BackendCertificate]; got != want {
					t.Errorf("%s: %s shows %q, want %q", what, listener, got, want)
				}
				if is := row.Annotations[istio.Misdirected] != ""; is != (beyond && listener == "https") {
					t.Errorf("%s: %s is told apart: %v", what, listener, is)
				}
			}
		}
		h.WaitDone(h.Commit(read(t, own)...))
		says("its own Secret", "kubernetes-gateway://default/web")
		h.WaitDone(h.Commit(read(t, other)...))
		says("another namespace's", "")
		h.WaitDone(h.Commit(grant...))
		says("with a grant", "kubernetes-gateway://private/web")
		h.WaitDone(h.Commit(plugintest.Rows{Table: secrets.Grants, Deletes: []string{"private/web"}}))
		says("without the grant", "")
		h.WaitDone(h.Commit(read(t, own)...))
		absent := &sdk.Row{
			Key:     secrets.Object{Kind: secrets.Secret, Namespace: "default", Name: "web"}.AbsenceKey(),
			Payload: secrets.Absence{Reason: "there is none"}.Encode(),
		}
		of := plugintest.Rows{Table: secrets.Absences, Upserts: []*sdk.Row{absent}}
		h.WaitDone(h.Commit(of))
		if row := h.Rows(kinds.Gateway)["default/edge~istio-autogenerated-k8s-gateway~http"]; row.Annotations[istio.BackendCertificate] != "" {
			t.Error("a Secret that is missing is shown")
		}
	}
}

// TestRuleThatCannotBe: a rule with a filter that nobody knows answers 500 and the route's others
// are served, or, as with istiod, none of them is. Both say what is wrong.
func TestRuleThatCannotBe(t *testing.T) {
	const filter = `filters: [{type: ExtensionRef, extensionRef: {group: example.com, kind: Thing, name: x}}]`
	rules := map[string]string{
		"HTTPRoute": `[{backendRefs: [{name: shop, port: 80}]}, {matches: [{path: {value: /a}}, {path: {value: /b}}], ` +
			filter + `, backendRefs: [{name: shop, port: 80}]}]`,
		"GRPCRoute": `[{backendRefs: [{name: shop, port: 80}]}, {matches: [{method: {service: a}}, {method: {service: b}}], ` +
			filter + `, backendRefs: [{name: shop, port: 80}]}]`,
	}
	for kind, list := range rules {
		for config, beyond := range map[string]bool{`{}`: false, `{"beyond": true}`: true} {
			h := plugintest.Start(t, Plugin(), config)
			route := "apiVersion: gateway.networking.k8s.io/v1\nkind: " + kind +
				"\nmetadata: {name: web}\nspec: {parentRefs: [{name: edge}], rules: " + list + "}\n"
			h.WaitDone(h.Commit(append(read(t, edge+"---\n"+route), service("shop"))...))
			answers := map[uint32]int{}
			for _, row := range h.Rows(kinds.VirtualService) {
				v, err := kinds.Decode[*networking.VirtualService](row)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range v.Http {
					answers[r.DirectResponse.GetStatus()] += len(r.Match)
				}
			}
			if failing := answers[500]; (failing > 0) != beyond || beyond && failing%2 != 0 {
				t.Errorf("%s with %s answers %v", kind, config, answers)
			}
			if _, faults := derivedOf(h); !strings.Contains(strings.Join(faults, "\n"), `InvalidFilter: unsupported filter type "ExtensionRef"`) {
				t.Errorf("%s with %s: %q", kind, config, faults)
			}
		}
	}
}

// TestUDPRoutesAsWithIstiod: without `beyond` a UDPRoute is served nowhere, and says so for each
// parent that is ours; its neighbours are as they were.
func TestUDPRoutesAsWithIstiod(t *testing.T) {
	h := plugintest.Start(t, Plugin(), `{"statuses": true}`)
	const dns = `apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {name: dns}
spec:
  parentRefs: [{name: edge}, {name: shop, kind: Service, group: ""}, {name: foreign}]
  rules: [{backendRefs: [{name: shop, port: 80}]}]
`
	without := append(read(t, edge+"---\n"+shop), service("shop"))
	h.WaitDone(h.Commit(without...))
	before, _ := derivedOf(h)
	rows := read(t, dns)
	rows[0].Upserts[0].Annotations = map[string]string{gatewayapi.GenerationAnnotation: "1"}
	h.WaitDone(h.Commit(rows...))
	after, faults := derivedOf(h)
	if !slices.Equal(before, after) {
		t.Errorf("it makes %q of %q", after, before)
	}
	if all := strings.Join(faults, "\n"); strings.Count(all, "UDPRoutes are not served by this control plane") != 2 {
		t.Errorf("faults: %s", all)
	}
	row := h.Rows(gatewayapi.Statuses)[gatewayapi.StatusKey(gatewayapi.UDPRoute, "default/dns")]
	if row == nil {
		t.Fatal("nothing is said of it")
	}
	j, err := gatewayapi.DecodeJudged(row)
	var said gateway.RouteStatus
	if err == nil {
		err = json.Unmarshal(j.Status, &said)
	}
	if err != nil || len(said.Parents) < 2 {
		t.Fatalf("%v %+v", err, said)
	}
	for _, p := range said.Parents {
		for _, c := range p.Conditions {
			if c.Type == string(gateway.RouteConditionAccepted) && (c.Status != "False" || c.Reason != string(gateway.RouteReasonUnsupportedValue)) {
				t.Errorf("%+v", c)
			}
		}
	}
	h.WaitDone(h.Commit(plugintest.Rows{Table: gatewayapi.UDPRoute, Deletes: []string{"default/dns"}}))
	if h.Rows(gatewayapi.Statuses)[gatewayapi.StatusKey(gatewayapi.UDPRoute, "default/dns")] != nil {
		t.Error("it is gone, and something is said of it")
	}
}

// TestAncestors: a BackendTLSPolicy's status names the Gateways whose routes lead to its target,
// also those that are not there (yet), and no others.
func TestAncestors(t *testing.T) {
	h := plugintest.Start(t, Plugin(), `{"statuses": true}`)
	rows := append(read(t, edge+"---\n"+shop+tlsPolicy), service("shop"))
	rows = append(rows, read(t, strings.NewReplacer("name: edge", "name: foreign", "gatewayClassName: istio", "gatewayClassName: others").Replace(edge))...)
	rows = append(rows, read(t, strings.NewReplacer("name: edge", "name: foreign", "metadata: {name: shop}", "metadata: {name: more}").Replace(shop))...)
	for i := range rows { // as they come from an API server
		for _, r := range rows[i].Upserts {
			if strings.HasPrefix(rows[i].Table, gatewayapi.Group) {
				r.Annotations = map[string]string{gatewayapi.GenerationAnnotation: "1"}
			}
		}
	}
	h.WaitDone(h.Commit(rows...))
	ancestors := func() (names []string) {
		row := h.Rows(gatewayapi.Statuses)[gatewayapi.StatusKey(gatewayapi.BackendTLSPolicy, "default/shop")]
		if row == nil {
			t.Fatal("nothing is said of the policy")
		}
		j, err := gatewayapi.DecodeJudged(row)
		var said gateway.PolicyStatus
		if err == nil {
			err = json.Unmarshal(j.Status, &said)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range said.Ancestors {
			names = append(names, string(*a.AncestorRef.Kind)+"/"+string(a.AncestorRef.Name))
		}
		return names
	}
	if got := ancestors(); !slices.Equal(got, []string{"Service/shop", "Gateway/edge"}) {
		t.Errorf("ancestors %q", got)
	}
	h.WaitDone(h.Commit(plugintest.Rows{Table: gatewayapi.Gateway, Deletes: []string{"default/edge", "default/foreign"}}))
	if got := ancestors(); !slices.Equal(got, []string{"Service/shop", "Gateway/edge", "Gateway/foreign"}) {
		t.Errorf("ancestors without Gateways %q", got)
	}
	h.WaitDone(h.Commit(plugintest.Rows{Table: gatewayapi.HTTPRoute, Deletes: []string{"default/more"}}))
	h.WaitDone(h.Commit(plugintest.Rows{Table: gatewayapi.HTTPRoute, Deletes: []string{"default/shop"}}))
	if got := ancestors(); !slices.Equal(got, []string{"Service/shop"}) {
		t.Errorf("ancestors without the route %q", got)
	}
}

// TestConfig: what is no domain is refused.
func TestConfig(t *testing.T) {
	for _, bad := range []string{`{"domain": ""}`, `{"domain": ".local"}`, `{"domain": "a/b"}`} {
		if field, reason := plugintest.Refusal(t, Plugin(), bad); field != "domain" {
			t.Errorf("%s: %s %s", bad, field, reason)
		}
	}
}
