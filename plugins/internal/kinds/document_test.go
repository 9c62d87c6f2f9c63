package kinds

import (
	"fmt"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
)

const good = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: reviews
  namespace: shop
  labels: {app: reviews}
  creationTimestamp: "2026-01-02T03:04:05Z"
spec:
  hosts: [reviews]
  http:
  - route:
    - destination: {host: reviews, port: {number: 9080}}
    timeout: 1.5s
`

func TestReadMakesRows(t *testing.T) {
	docs := Read("a.yaml", []byte("# head\n---\n"+good+"---\n---\n"+strings.Replace(good, "istio.io/v1", "istio.io/v1alpha3", 1)))
	if len(docs) != 2 {
		t.Fatalf("%d documents", len(docs))
	}
	for i, line := range []int{3, 18} {
		row := docs[i].Row
		if row == nil {
			t.Fatalf("faults: %v", docs[i].Faults)
		}
		if row.Key != "shop/reviews" || row.Source != fmt.Sprintf("a.yaml:%d:1", line) || docs[i].Table != VirtualService {
			t.Errorf("document %d: %s %s %s", i, row.Key, row.Source, docs[i].Table)
		}
		if row.Created != 1767323045000000000 || row.Labels["app"] != "reviews" {
			t.Errorf("metadata: %v %v", row.Created, row.Labels)
		}
		vs, err := Decode[*networking.VirtualService](row)
		if err != nil || vs.Http[0].Route[0].Destination.Port.Number != 9080 || vs.Http[0].Timeout.AsDuration().Seconds() != 1.5 {
			t.Errorf("spec: %v, %v", vs, err)
		}
	}
	if string(docs[0].Row.Payload) != string(docs[1].Row.Payload) {
		t.Error("versions differ in payload")
	}
}

func TestReadNamesPlaces(t *testing.T) {
	head := "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\n"
	for _, c := range []struct{ name, text, want string }{
		{"unknown field", head + "spec:\n  hosts: [x]\n  htpt: []\n", `f.yaml:6:3: VirtualService default/a: spec.htpt: unknown field; did you mean "http"?`},
		{
			"deep", head + "spec:\n  http:\n  - route:\n    - destination: {hots: x}\n",
			`f.yaml:7:21: VirtualService default/a: spec.http[0].route[0].destination.hots: unknown field; did you mean "host"?`,
		},
		{"type", head + "spec:\n  hosts: reviews\n", `f.yaml:5:10: VirtualService default/a: spec.hosts: expected a list, got the string "reviews"`},
		{"number for string", head + "spec:\n  hosts: [1.10]\n", `spec.hosts[0]: expected a string, got the number 1.10; put it in quotes`},
		{
			"range", head + "spec: {http: [{route: [{weight: 3000000000}]}]}\n",
			`expected a whole number from -2147483648 to 2147483647, got the number 3000000000`,
		},
		{"duration", head + "spec: {http: [{timeout: 5}]}\n", `spec.http[0].timeout: expected a duration such as 1.5s or 1m30s, got the number 5`},
		{"oneof", head + "spec: {http: [{match: [{uri: {exact: a, prefix: b}}]}]}\n", `exact and prefix exclude each other; keep one`},
		{"twice", head + "spec:\n  hosts: [a]\n  hosts: [b]\n", `f.yaml:6:3: VirtualService default/a: spec: "hosts" is given twice, first in line 5`},
		{"two spellings", head + "spec: {exportTo: [a], export_to: [b]}\n", `given twice, as exportTo and as export_to`},
		{"null in list", head + "spec: {hosts: [null]}\n", `spec.hosts[0]: null is no value here`},
		{"enum", strings.Replace(head, "VirtualService", "ServiceEntry", 1) + "spec: {resolution: STATICC}\n",
			`Unsupported value: "STATICC": expected one of NONE, STATIC, DNS, DNS_ROUND_ROBIN, DYNAMIC_DNS; did you mean STATIC?`},
		{
			"kind", "apiVersion: networking.istio.io/v1\nkind: VirtualServices\nmetadata: {name: a}\n",
			`f.yaml:2:7: VirtualServices: kind: networking.istio.io has no kind "VirtualServices"; did you mean "VirtualService"?`,
		},
		{
			"version", strings.Replace(head, "/v1", "/v2", 1),
			`f.yaml:1:13: VirtualService default/a: apiVersion: VirtualService has no version "v2"; it has v1, v1beta1, v1alpha3`,
		},
		{"top key", head + "spce: {}\n", `f.yaml:4:1: VirtualService default/a: spce: unknown field; did you mean "spec"?`},
		{
			"no name", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {namespace: x}\n",
			`f.yaml:3:11: VirtualService: metadata.name: is missing`,
		},
		{"bad name", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a/b}\n", `metadata.name: "a/b" is no name`},
		{
			"label",
			"apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a, labels: {version: 1}}\n",
			`metadata.labels[version]: expected a string, got "1"; put it in quotes`,
		},
		{
			"metadata field",
			"apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a, lables: {}}\n",
			`metadata.lables: unknown field; did you mean "labels"?`,
		},
		{"not an object", "- a\n", `f.yaml:1:1: expected an object with apiVersion`},
		{"no version", "kind: X\n", `apiVersion: is missing`},
		{"syntax", head + "spec:\n  hosts: [a\n", `f.yaml:5:1: VirtualService default/a: not YAML`},
		{"indentation", head + "spec:\n  hosts:\n  - a\n  http:\n  - route: []\n   timeout: 1s\n", `f.yaml:9:1: VirtualService default/a: not YAML`},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs := Read("f.yaml", []byte(c.text))
			if len(docs) != 1 || docs[0].Row != nil || len(docs[0].Faults) != 1 {
				t.Fatalf("got %+v", docs)
			}
			if got := docs[0].Faults[0].Error(); !strings.Contains(got, c.want) {
				t.Errorf("\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestReadTellsAllFaultsAtOnce(t *testing.T) {
	text := "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: b}\nspec:\n" +
		"  hots: [x]\n  http:\n  - timeout: never\n    retries: {attempts: many}\n"
	docs := Read("f.yaml", []byte(text))
	if len(docs) != 1 || len(docs[0].Faults) != 3 {
		t.Fatalf("got %+v", docs)
	}
	for i, place := range []string{"f.yaml:5:3", "f.yaml:7:14", "f.yaml:8:25"} {
		if got := docs[0].Faults[i].Place(); got != place {
			t.Errorf("fault %d at %s, want %s", i, got, place)
		}
	}
}

func TestBrokenDocumentSpoilsNoOther(t *testing.T) {
	broken := "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata:\n  name: gw # mine\n  namespace: edge\nspec:\n  servers: [\n"
	docs := Read("f.yaml", []byte(good+"---\n"+broken+"---\n"+strings.Replace(good, "name: reviews", "name: other", 1)))
	if len(docs) != 3 || docs[0].Row == nil || docs[1].Row != nil || docs[2].Row == nil {
		t.Fatalf("got %+v", docs)
	}
	if docs[1].Table != Gateway || docs[1].Key() != "edge/gw" {
		t.Errorf("broken document is %s %s", docs[1].Table, docs[1].Key())
	}
	if got := docs[1].Faults[0].Error(); !strings.HasPrefix(got, "f.yaml:2") || !strings.Contains(got, "Gateway edge/gw: not YAML") {
		t.Errorf("fault: %s", got)
	}
}

func TestOtherAPIsAreForeign(t *testing.T) {
	docs := Read("f.yaml", []byte("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nwhatever: 1\n"))
	if len(docs) != 1 || docs[0].Foreign != "v1/Service" || docs[0].Row != nil || docs[0].Faults != nil {
		t.Errorf("got %+v", docs)
	}
}

func TestListsAndJSON(t *testing.T) {
	docs := Read("f.json", []byte("{\n\t\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n\t{\"apiVersion\": "+
		"\"networking.istio.io/v1\", \"kind\": \"Gateway\",\n\t\"metadata\": {\"name\": \"a\"}, \"spec\": {\"servers\": []}}]}"))
	if len(docs) != 1 || docs[0].Row == nil || docs[0].Row.Key != "default/a" || docs[0].Line != 3 {
		t.Errorf("got %+v", docs)
	}
}

func TestAllocatedAddresses(t *testing.T) {
	docs := Read("f.yaml", []byte("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: a}\nspec: "+
		"{hosts: [x.y]}\nstatus: {addresses: [{host: x.y, value: 240.240.0.1}]}\n"))
	if len(docs) != 1 || docs[0].Row == nil {
		t.Fatalf("got %+v", docs)
	}
	if got := Allocated(docs[0].Row); len(got) != 1 || got[0] != (Address{"x.y", "240.240.0.1"}) {
		t.Errorf("got %v", got)
	}
}
