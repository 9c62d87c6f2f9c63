package istio

import (
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestRowsAreJudged: what a plugin publishes is held to the rules for files; a row that they refuse
// keeps its last good value, and one that is made of another kind's object is taken.
func TestRowsAreJudged(t *testing.T) {
	rows := tables.New(incr.New(), "cluster.local")
	rows.Judge(judge)
	load := rows.Load[config.VirtualServices]
	row := func(host string, weight int32, annotations map[string]string) *pb.Row {
		payload, err := kinds.Encode(&networking.VirtualService{Hosts: []string{host}, Http: []*networking.HTTPRoute{{
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}, Weight: weight}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return &pb.Row{Key: "demo/v", Payload: payload, Annotations: annotations}
	}
	if err := load("demo/v", row("good.example", 0, nil)); err != nil {
		t.Error(err)
	}
	derived := row("*", 0, map[string]string{"internal.istio.io/route-semantics": "gateway"})
	derived.Key = "demo/v~gateway~http"
	if err := load(derived.Key, derived); err != nil {
		t.Error(err)
	}
	marked := row("bad host!", 1, map[string]string{"internal.istio.io/route-semantics": "gateway"})
	for _, bad := range []*pb.Row{row("bad host!", 1, nil), row("good.example", -5, nil), marked} {
		if err := load("demo/v", bad); err == nil || !strings.Contains(err.Error(), "(COX") {
			t.Errorf("%v", err)
		}
	}
	if err := load("demo/v", &pb.Row{Key: "demo/v", Payload: []byte{0xff}}); err == nil {
		t.Error("what is no message is taken")
	}
}
