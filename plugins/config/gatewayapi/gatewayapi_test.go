package gatewayapi

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/wait"
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
	step("a row that can't be read", 3, "secret default/web not found", plugintest.Rows{Table: gatewayapi.HTTPRoute, Upserts: []*sdk.Row{broken}}, gone(gatewayapi.GRPCRoute, "no/such"))
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

// TestConfig: what is no domain is refused.
func TestConfig(t *testing.T) {
	for _, bad := range []string{`{"domain": ""}`, `{"domain": ".local"}`, `{"domain": "a/b"}`} {
		if field, reason := plugintest.Refusal(t, Plugin(), bad); field != "domain" {
			t.Errorf("%s: %s %s", bad, field, reason)
		}
	}
}
