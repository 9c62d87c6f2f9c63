package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// TestAsAnAPIServer: what an API server stores of an object is what is read of it, and what it
// refuses is refused, for random edits of objects: nulls, empty maps and lists, values of other
// types, unknown fields, words that YAML 1.1 takes for booleans. (Numbers of enums are taken here,
// as protobuf's JSON mapping takes them; none is tried.) The judge goes the way of an API
// server, with its own code.
func TestAsAnAPIServer(t *testing.T) {
	set, rnd := New(), rand.New(rand.NewPCG(46, 1))
	texts := [][]byte{bytes.ReplaceAll([]byte(own), []byte("1m"), []byte("60s")), []byte(more)} // the mapping has no minutes
	stored, refused, differ := 0, 0, 0
	for _, text := range texts {
		for _, chunk := range protoyaml.Split(text) {
			object := map[string]any{}
			if err := yaml.Unmarshal(chunk.Text, &object); err != nil {
				t.Fatal(err)
			}
			for range 60 {
				edited := editText(t, rnd, object)
				want, err := serve(set, edited)
				row, faults := readHere(set, edited)
				switch {
				case err != nil && row == nil:
					refused++
				case err == nil && row != nil && proto.Equal(want, row):
					stored++
				default:
					if differ++; differ < 10 {
						t.Errorf("an API server has %v (%v), here is %v (%v) of\n%s", want, err, row, faults, edited)
					}
				}
			}
		}
	}
	t.Logf("%d stored, %d refused alike, %d otherwise", stored, refused, differ)
	if stored < 150 || refused < 150 {
		t.Error("too few of either")
	}
}

const more = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: a, namespace: b}
spec:
  selector: {istio: ingressgateway}
  servers:
  - {port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: c}}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: a, namespace: b}
spec:
  workloadSelector: {labels: {a: b}}
  egress: [{hosts: ["./*"], port: {number: 80, name: http, protocol: HTTP}, captureMode: DEFAULT}]
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
---
apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: {name: a, namespace: b}
spec:
  accessLogging: [{providers: [{name: envoy}], filter: {expression: "true"}, disabled: false}]
  tracing: [{randomSamplingPercentage: 5, customTags: {a: {literal: {value: x}}}}]
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: a, namespace: b}
spec:
  configPatches: [{applyTo: CLUSTER, match: {context: GATEWAY}, patch: {operation: MERGE, value: {connect_timeout: 3s, http2_protocol_options: null}}}]
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: a, namespace: b}
spec:
  jwtRules: [{issuer: a, jwksUri: "https://a.example/keys", audiences: [x], fromHeaders: [{name: x, prefix: y}], forwardOriginalToken: true}]
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: a, namespace: b}
spec:
  selector: {matchLabels: {a: b}}
  mtls: {mode: STRICT}
  portLevelMtls: {80: {mode: DISABLE}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: a, namespace: b}
spec:
  metadata: {labels: {a: b}, annotations: {c: d}}
  template: {ports: {http: 80}, serviceAccount: x, labels: {a: b}}
  probe: {periodSeconds: 3, httpGet: {path: /a, port: 80}}
---
apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata: {name: a, namespace: b}
spec:
  url: oci://a.example/b
  phase: AUTHN
  pluginConfig: {a: null, b: [1, null], c: {d: true}}
  match: [{mode: CLIENT, ports: [{number: 80}]}]
`

// word stands for one that is a boolean to YAML 1.1, until the text is written.
var word = regexp.MustCompile(`WORD(\w+)WORD`)

// editText is an object's text after one to three random edits below its spec.
func editText(t *testing.T, rnd *rand.Rand, object map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	for range 1 + rnd.IntN(6)/5 {
		places := []place{}
		places = below(places, o["spec"], func(v any) { o["spec"] = v }, func() { delete(o, "spec") })
		if len(places) == 0 {
			break
		}
		change(rnd, places[rnd.IntN(len(places))])
	}
	text, err = yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return word.ReplaceAll(text, []byte("$1"))
}

// place is a value of an object that can be set, or taken away.
type place struct {
	value any
	set   func(any)
	drop  func()
}

func below(all []place, value any, set func(any), drop func()) []place {
	all = append(all, place{value, set, drop})
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = below(all, v[k], func(n any) { v[k] = n }, func() { delete(v, k) })
		}
	case []any:
		for i := range v {
			all = below(all, v[i], func(n any) { v[i] = n }, func() { v[i] = nil })
		}
	}
	return all
}

func change(rnd *rand.Rand, p place) {
	values := []any{nil, nil, nil, map[string]any{}, []any{}, "", "text", true, -1.0, 70000.0, 1.5, "WORDyesWORD", "WORDoffWORD", "WORDyWORD"}
	switch n := rnd.IntN(len(values) + 4); {
	case n < len(values):
		p.set(values[n])
	case n == len(values):
		p.drop()
	default:
		if m, ok := p.value.(map[string]any); ok {
			m["zzUnheardOf"] = values[rnd.IntN(len(values))]
		} else if list, ok := p.value.([]any); ok {
			p.set(append(list, values[rnd.IntN(len(values))]))
		} else {
			p.set(nil)
		}
	}
}

// serve is an object's spec after what an API server does to it; the error says that it refuses it.
func serve(set *Set, text []byte) (proto.Message, error) {
	var o map[string]any
	if err := yaml.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	group, version, _ := bytes.Cut([]byte(fmt.Sprint(o["apiVersion"])), []byte("/"))
	c, err := set.compiled(name{string(group), fmt.Sprint(o["kind"]), string(version)})
	if err != nil || c == nil {
		return nil, fmt.Errorf("no schema: %v", err)
	}
	o = whole64(o).(map[string]any)
	pruning.Prune(o, c.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(o, c.structural)
	if err := objectmeta.Coerce(nil, o, c.structural, false, false); err != nil {
		return nil, err
	}
	defaulting.Default(o, c.structural)
	twice := listtype.ValidateListSetsAndMaps(nil, c.structural, o)
	w, err := c.whole()
	if err != nil {
		return nil, err
	}
	if found := w.check(c.structural, o, twice); finding.Refuses(found) {
		return nil, fmt.Errorf("%v", found)
	}
	kind, ok := kinds.Lookup(string(group) + "/" + fmt.Sprint(o["kind"]))
	if !ok {
		return nil, fmt.Errorf("no kind")
	}
	spec := kind.New()
	if o["spec"] == nil {
		return spec, nil
	}
	kept, err := json.Marshal(o["spec"])
	if err != nil {
		return nil, err
	}
	return spec, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(kept, spec)
}

// whole64 has whole numbers as an API server reads them.
func whole64(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = whole64(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole64(v[i])
		}
	case float64:
		if i := int64(v); float64(i) == v {
			return i
		}
	}
	return value
}

// readHere is an object's spec as it is read here; nil where it is refused.
func readHere(set *Set, text []byte) (proto.Message, []kinds.Fault) {
	docs := kinds.Reader{Check: set.Check}.Read("a.yaml", text)
	if len(docs) != 1 || docs[0].Row == nil {
		return nil, docs[0].Faults
	}
	kind, _ := kinds.Lookup(docs[0].Table)
	spec := kind.New()
	if err := proto.Unmarshal(docs[0].Row.Payload, spec); err != nil {
		return nil, []kinds.Fault{{Message: err.Error()}}
	}
	return spec, docs[0].Faults
}
