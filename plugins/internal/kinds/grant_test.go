package kinds

import (
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

const aGrant = `apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: web, namespace: certs}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: edge}]
  to: [{group: "", kind: Secret, name: web}]
`

func TestGrant(t *testing.T) {
	reader := Reader{Grants: true}
	docs := reader.Read("a.yaml", []byte(aGrant))
	if len(docs) != 1 || docs[0].Row == nil || docs[0].Table != secrets.Grants || docs[0].Key() != "certs/web" {
		t.Fatalf("read: %+v", docs)
	}
	g, err := secrets.DecodeGrant(docs[0].Row)
	web, other := secrets.Object{Kind: secrets.Secret, Namespace: "certs", Name: "web"}, secrets.Object{Kind: secrets.Secret, Namespace: "certs", Name: "other"}
	if err != nil || !g.Allows("edge", web) || g.Allows("edge", other) || g.Allows("shop", web) {
		t.Errorf("%v: %+v", err, g)
	}
	for change, why := range map[string]string{
		"kind: Gateway, -> ":        "each entry of from needs a kind and a namespace",
		"kind: Secret, -> ":         "each entry of to needs a kind",
		"  to: -> #":                "needs from and to",
		"spec: -> other:":           "is missing",
		"namespace: edge} -> n: []": "expected from and to",
	} {
		from, to, _ := strings.Cut(change, " -> ")
		if strings.HasPrefix(from, "namespace") {
			from, to = `[{group: "", kind: Secret, name: web}]`, "text"
		}
		docs := reader.Read("a.yaml", []byte(strings.ReplaceAll(aGrant, from, to)))
		if len(docs) != 1 || docs[0].Row != nil || len(docs[0].Faults) == 0 ||
			!strings.Contains(docs[0].Faults[0].Error(), why) || docs[0].Key() != "certs/web" {
			t.Errorf("%s: %+v", change, docs)
		}
	}
	if docs := (Reader{}).Read("a.yaml", []byte(aGrant)); len(docs) != 1 || docs[0].Foreign == "" {
		t.Errorf("it is read by who doesn't want it: %+v", docs)
	}
	if docs := reader.Read("a.yaml", []byte(strings.ReplaceAll(aGrant, "v1beta1", "v1alpha2"))); len(docs) != 1 || docs[0].Foreign == "" {
		t.Errorf("another version: %+v", docs)
	}
}
