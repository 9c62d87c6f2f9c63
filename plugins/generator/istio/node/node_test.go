package node

import (
	"slices"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestFrom(t *testing.T) {
	m, err := structpb.NewStruct(map[string]any{
		"NAMESPACE": "ns", "INSTANCE_IPS": "10.0.0.1,2001:db8::1", "LABELS": map[string]any{"app": "a"},
		"COXSWAIN_NO_AGENT": true, "INTERCEPTION_MODE": "NONE",
	})
	if err != nil {
		t.Fatal(err)
	}
	n, err := From(&core.Node{
		Id: "sidecar~10.0.0.1~a-1.other~ns.svc.cluster.local", Metadata: m,
		Locality: &core.Locality{Region: "r", SubZone: "s"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n.Type != Sidecar || n.Name != "a-1" || n.Namespace != "ns" || n.Domain != "ns.svc.cluster.local" || n.Locality != "r//s" ||
		n.Labels["app"] != "a" || !n.Metadata.NoAgent || n.Metadata.Interception != None ||
		!slices.Equal(n.Addresses, []string{"10.0.0.1", "2001:db8::1"}) {
		t.Errorf("%+v", n)
	}
}

func TestSupports(t *testing.T) {
	for _, c := range []struct {
		extensions []string
		want       bool
	}{
		{nil, true},
		{[]string{}, false},
		{[]string{"x"}, false},
		{[]string{"x", "b"}, true},
	} {
		if got := (&Node{extensions: c.extensions}).Supports("a", "b"); got != c.want {
			t.Errorf("%v: %v", c.extensions, got)
		}
	}
}
