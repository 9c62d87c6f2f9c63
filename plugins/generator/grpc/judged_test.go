package grpc

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestRowsAreJudged: a row that the rules for files refuse is as it was before, for as long as it
// is refused, and isn't there where there was none.
func TestRowsAreJudged(t *testing.T) {
	var b state.Builder
	g := &generator{config: Config{Domain: "cluster.local"}}
	number := uint64(0)
	commit := func(key, of string, weight int32) map[string]string {
		t.Helper()
		payload, err := kinds.Encode(&networking.VirtualService{Hosts: []string{of}, Http: []*networking.HTTPRoute{{
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: of}, Weight: weight}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		number++
		change, err := b.Apply(&pb.State{Whole: number == 1, Revision: &pb.Revision{Epoch: 1, Number: number}, Tables: []*pb.TableRows{
			{Table: kinds.VirtualService, Upserts: []*pb.Row{{Key: key, Payload: payload}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		has := map[string]string{}
		for _, r := range g.at(change.State).routing {
			has[r.key] = r.spec.Hosts[0]
		}
		return has
	}
	if has := commit("shop/bad", "bad.example", -5); len(has) != 0 {
		t.Errorf("what is refused at first is %v", has)
	}
	if has := commit("shop/v", "one.example", 0); has["shop/v"] != "one.example" {
		t.Errorf("what is right is %v", has)
	}
	for _, other := range []string{"shop/v", "shop/bad"} { // the second time nothing of the first has changed
		if has := commit(other, "bad host!", 0); len(has) != 1 || has["shop/v"] != "one.example" {
			t.Errorf("beside a row that is refused there is %v", has)
		}
	}
	if has := commit("shop/v", "two.example", 0); has["shop/v"] != "two.example" {
		t.Errorf("what is right again is %v", has)
	}
}
