package manifest

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// TestParseSelector: proxies in one word are selected as by `select`.
func TestParseSelector(t *testing.T) {
	n := &corev3.Node{}
	text := `{"id":"sidecar~10.0.0.1~web-1.shop~shop.svc","cluster":"web","locality":{"region":"eu"},` +
		`"metadata":{"NAMESPACE":"shop","LABELS":{"app":"web","a.b/c":"x"},"MESH_ID":"m"}}`
	if err := protojson.Unmarshal([]byte(text), n); err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]bool{
		"": true, "id=*~web-1.shop~*": true, "namespace=shop": true, "namespace=shop, labels.app=w*": true,
		"labels.a.b/c=x": true, "metadata.MESH_ID=m": true, "locality=eu": true,
		"namespace=other": false, "namespace=shop,labels.app=api": false, "userAgent=*": false,
	} {
		s, err := ParseSelector(selector)
		if err != nil || s.Matches(n) != want {
			t.Errorf("%q: %v %v", selector, s.Matches(n), err)
		}
	}
	for selector, want := range map[string]string{
		"shop":           `"shop" is not KEY=PATTERN; KEY is id, cluster, userAgent, generator, namespace, locality, labels.KEY, metadata.KEY`,
		"name=x":         `nothing of a proxy is called "name"; there is id, cluster, userAgent, generator, namespace, locality, labels.KEY, metadata.KEY`,
		"labels.=x":      `nothing of a proxy is called "labels."; there is id, cluster, userAgent, generator, namespace, locality, labels.KEY, metadata.KEY`,
		"id=":            "id: an empty pattern matches nothing; leave the key out, or write `*`",
		"id=a,id=b":      "id is asked for twice",
		"labels.a=1,":    `"" is not KEY=PATTERN; KEY is id, cluster, userAgent, generator, namespace, locality, labels.KEY, metadata.KEY`,
		"metadata.a.b=,": "metadata.a.b: an empty pattern matches nothing; leave the key out, or write `*`",
	} {
		if _, err := ParseSelector(selector); err == nil || err.Error() != want {
			t.Errorf("%q: %v", selector, err)
		}
	}
}
