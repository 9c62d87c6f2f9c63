package admin

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestNamespaceOf(t *testing.T) {
	said, err := structpb.NewStruct(map[string]any{"NAMESPACE": "said"})
	if err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]*corev3.Node{
		"said": {Id: "sidecar~10.0.0.1~pod.shop~shop.svc.cluster.local", Metadata: said},
		"shop": {Id: "sidecar~10.0.0.1~pod.shop~shop.svc.cluster.local"},
		"":     {Id: "a~b~c.d"},
	} {
		if got := namespaceOf(n); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
	if got := namespaceOf(nil); got != "" {
		t.Errorf("no node: %q", got)
	}
}
