package status

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// parsed is an object of YAML.
func parsed(t *testing.T, text string) *object {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o, err := read(out)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// wants is what a status of YAML is to say.
func wants(t *testing.T, generation int64, text string, controllers ...string) *wanted {
	t.Helper()
	return &wanted{generation, "", parsed(t, "status:\n  "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")).status, controllers}
}

// is compares a status with YAML.
func is(t *testing.T, status fields, text string) {
	t.Helper()
	got, err := yaml.Marshal(normal(t, status))
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.Marshal(normal(t, parsed(t, "status:\n  "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")).status))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func normal(t *testing.T, status fields) (out any) {
	t.Helper()
	text, err := json.Marshal(status)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const route = `
metadata: {name: web, namespace: shop, generation: 3}
status:
  parents:
  - {parentRef: {name: other}, controllerName: example.com/other, conditions: [{type: Accepted, status: "True", observedGeneration: 1, lastTransitionTime: "2030-01-01T00:00:00Z"}]}
  - parentRef: {name: edge}
    controllerName: istio.io/gateway-controller
    conditions:
    - {type: Accepted, status: "True", reason: Accepted, message: old, observedGeneration: 2, lastTransitionTime: "2030-01-01T00:00:00Z"}
    - {type: ResolvedRefs, status: "True", reason: R, message: m, observedGeneration: 2, lastTransitionTime: "2030-01-01T00:00:00Z"}
    - {type: example.com/Theirs, status: "True", reason: R, message: m, observedGeneration: 2, lastTransitionTime: "2030-01-01T00:00:00Z"}
  - {parentRef: {name: left}, controllerName: istio.io/gateway-controller, conditions: []}
`

// TestMergeOfRoute: others' entries stay as they are and where they are, ours are as is wanted with
// the time at which they changed, and what the route has left goes.
func TestMergeOfRoute(t *testing.T) {
	w := wants(t, 3, `
parents:
- parentRef: {name: new}
  controllerName: istio.io/gateway-controller
  conditions: [{type: Accepted, status: "False", reason: No, message: no}]
- parentRef: {name: edge}
  controllerName: istio.io/gateway-controller
  conditions:
  - {type: Accepted, status: "True", reason: Accepted, message: fine}
  - {type: ResolvedRefs, status: "False", reason: BackendNotFound, message: m}
`, "istio.io/gateway-controller")
	o := parsed(t, route)
	got, changed := merge(o, w, noon)
	if !changed {
		t.Error("nothing changed")
	}
	is(t, got, `
parents:
- {parentRef: {name: other}, controllerName: example.com/other, conditions: [{type: Accepted, status: "True", observedGeneration: 1, lastTransitionTime: "2030-01-01T00:00:00Z"}]}
- parentRef: {name: edge}
  controllerName: istio.io/gateway-controller
  conditions:
  - {type: Accepted, status: "True", reason: Accepted, message: fine, observedGeneration: 3, lastTransitionTime: "2030-01-01T00:00:00Z"}
  - {type: ResolvedRefs, status: "False", reason: BackendNotFound, message: m, observedGeneration: 3, lastTransitionTime: "2030-01-02T12:00:00Z"}
  - {type: example.com/Theirs, status: "True", reason: R, message: m, observedGeneration: 2, lastTransitionTime: "2030-01-01T00:00:00Z"}
- parentRef: {name: new}
  controllerName: istio.io/gateway-controller
  conditions: [{type: Accepted, status: "False", reason: No, message: no, observedGeneration: 3, lastTransitionTime: "2030-01-02T12:00:00Z"}]
`)
	o.status = got
	if _, again := merge(o, w, noon.Add(time.Hour)); again {
		t.Error("what was merged is merged again")
	}
	got, changed = strip(o, []string{"istio.io/gateway-controller"})
	if !changed {
		t.Error("nothing is taken back")
	}
	is(t, got, `
parents:
- {parentRef: {name: other}, controllerName: example.com/other, conditions: [{type: Accepted, status: "True", observedGeneration: 1, lastTransitionTime: "2030-01-01T00:00:00Z"}]}
`)
}

// TestEntriesHaveRoom: a status has no more entries than it may have, and others' come first.
func TestEntriesHaveRoom(t *testing.T) {
	o := parsed(t, "status: {ancestors: ["+strings.Repeat("{ancestorRef: {name: x}, controllerName: example.com/other},", 15)+"]}")
	w := wants(t, 1,
		`ancestors: [{ancestorRef: {name: a}, controllerName: istio.io/mesh-controller}, {ancestorRef: {name: b}, controllerName: istio.io/mesh-controller}]`,
		"istio.io/mesh-controller")
	got, _ := merge(o, w, noon)
	if all := list(got["ancestors"]); len(all) != 16 || word(all[15], "controllerName") != "istio.io/mesh-controller" {
		t.Errorf("%d entries: %v", len(all), all)
	}
}

const edge = `
metadata:
  name: edge
  namespace: shop
  generation: 2
  managedFields:
  - manager: coxswain
    subresource: status
    fieldsV1:
      f:status:
        f:addresses: {}
        f:conditions:
          'k:{"type":"Accepted"}': {f:status: {}}
          'k:{"type":"Programmed"}': {f:status: {}}
          'k:{"type":"ResolvedRefs"}': {.: {}}
        f:listeners: {'k:{"name":"http"}': {.: {}}, 'k:{"name":"tls"}': {.: {}}}
  - manager: other
    subresource: status
    fieldsV1: {f:status: {f:conditions: {'k:{"type":"Programmed"}': {f:status: {}}}, f:listeners: {'k:{"name":"tls"}': {f:attachedRoutes: {}}}}}
status:
  addresses: [{type: IPAddress, value: 192.0.2.1}]
  conditions:
  - {type: Accepted, status: "True", reason: Accepted, message: m, lastTransitionTime: "2030-01-01T00:00:00Z"}
  - {type: Programmed, status: "True", reason: Programmed, message: theirs, lastTransitionTime: "2030-01-01T00:00:00Z"}
  - {type: ResolvedRefs, status: "True", reason: ResolvedRefs, message: m, lastTransitionTime: "2030-01-01T00:00:00Z"}
  - {type: example.com/Other, status: "True", reason: R, message: m, lastTransitionTime: "2030-01-01T00:00:00Z"}
  listeners:
  - {name: http, attachedRoutes: 1, conditions: [{type: Accepted, status: "True", lastTransitionTime: "2030-01-01T00:00:00Z"}]}
  - {name: tls, attachedRoutes: 1, conditions: []}
`

// TestMergeOfGateway: conditions of other types stay, listeners are as is wanted, with the times of
// those of their name, and an address that was told stays until there is another.
func TestMergeOfGateway(t *testing.T) {
	w := wants(t, 2, `
conditions:
- {type: Accepted, status: "True", reason: Accepted, message: m}
- {type: Programmed, status: "False", reason: AddressNotAssigned, message: m}
listeners:
- {name: http, attachedRoutes: 2, conditions: [{type: Accepted, status: "True"}]}
`)
	got, _ := merge(parsed(t, edge), w, noon)
	is(t, got, `
addresses: [{type: IPAddress, value: 192.0.2.1}]
conditions:
- {type: Accepted, status: "True", reason: Accepted, message: m, observedGeneration: 2, lastTransitionTime: "2030-01-01T00:00:00Z"}
- {type: Programmed, status: "False", reason: AddressNotAssigned, message: m, observedGeneration: 2, lastTransitionTime: "2030-01-02T12:00:00Z"}
- {type: example.com/Other, status: "True", reason: R, message: m, lastTransitionTime: "2030-01-01T00:00:00Z"}
listeners:
- {name: http, attachedRoutes: 2, conditions: [{type: Accepted, status: "True", observedGeneration: 2, lastTransitionTime: "2030-01-01T00:00:00Z"}]}
`)
	w.status["addresses"] = []any{fields{"type": "IPAddress", "value": "192.0.2.2"}}
	if got, _ = merge(parsed(t, edge), w, noon); word(list(got["addresses"])[0], "value") != "192.0.2.2" {
		t.Errorf("%v", got["addresses"])
	}
}

// TestStripOfGateway: what we were the last to write goes, what anybody else has written since
// stays.
func TestStripOfGateway(t *testing.T) {
	got, changed := strip(parsed(t, edge), []string{"istio.io/gateway-controller"})
	if !changed {
		t.Error("nothing is taken back")
	}
	is(t, got, `
conditions:
- {type: Accepted, status: Unknown, reason: Pending, message: Waiting for controller, lastTransitionTime: "1970-01-01T00:00:00Z"}
- {type: Programmed, status: "True", reason: Programmed, message: theirs, lastTransitionTime: "2030-01-01T00:00:00Z"}
- {type: example.com/Other, status: "True", reason: R, message: m, lastTransitionTime: "2030-01-01T00:00:00Z"}
listeners:
- {name: tls, attachedRoutes: 1, conditions: []}
`)
	if _, changed := strip(parsed(t, strings.ReplaceAll(edge, "manager: coxswain", "manager: pilot-discovery")), nil); changed {
		t.Error("what others have written was taken back")
	}
}

// TestSendsTheStatus: what is sent says which object it is of, in which version, and the status;
// large numbers stay as they are.
func TestSendsTheStatus(t *testing.T) {
	const text = `{"apiVersion":"a/v1","kind":"K","metadata":{"namespace":"n","name":"x","uid":"u","resourceVersion":"7","labels":{"a":"b"}},` +
		`"spec":{"n":1e2},"status":{"a":1,"big":12345678901234567890}}`
	const sent = `{"apiVersion":"a/v1","kind":"K","metadata":{"namespace":"n","name":"x","uid":"u","resourceVersion":"7"},` +
		`"status":{"a":1,"big":12345678901234567890}}`
	o, err := read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := o.with(o.status)
	if err != nil || string(out) != sent {
		t.Errorf("%s, %v", out, err)
	}
	if !hasStatus([]byte(text), o.status) || hasStatus([]byte(text), fields{"a": 1}) {
		t.Error("the status is taken for another one, or another one for it")
	}
	for _, bad := range []string{"", "[]", "1", `{"metadata": 1}`, `{"status": []}`, strings.Repeat("[", 20000)} {
		if _, err := read([]byte(bad)); err == nil {
			t.Errorf("%.20q is taken", bad)
		}
	}
	for _, odd := range []string{`{}`, `{"status": null}`, `{"status": {"parents": 1, "conditions": {"a": 1}, "listeners": "x", "ancestors": [1, [], {}]}}`} {
		o, err := read([]byte(odd))
		if err != nil {
			t.Errorf("%s: %v", odd, err)
			continue
		}
		merge(o, wants(t, 1, "parents: []\nancestors: []\nconditions: []\nlisteners: []"), noon)
		merge(o, wants(t, 1, "parents: []\nancestors: []", "x"), noon)
		strip(o, []string{"x"})
	}
}
