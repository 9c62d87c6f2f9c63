package guard

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/core/view"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

const typeC = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// TestExplained: of resources that differ a difference shows the fields, and those that it was made
// of are let go.
func TestExplained(t *testing.T) {
	made := func(seconds int64) *view.Body {
		body, err := proto.Marshal(&cluster.Cluster{Name: "a", ConnectTimeout: &durationpb.Duration{Seconds: seconds}})
		if err != nil {
			t.Fatal(err)
		}
		return view.NewBody(typeC, "a", body, 0)
	}
	d := &Difference{Types: []TypeDifference{
		{Type: "type.googleapis.com/envoy.config.cluster.v3.Cluster", Examples: []string{"~a"}, changed: []Pair{{typeC, made(1), made(2)}}},
	}}
	got := d.Explained()
	if diff := cmp.Diff([]string{`a: connect_timeout: "1s" -> "2s"`}, got.Types[0].Fields); diff != "" {
		t.Error(diff)
	}
	if got.Types[0].changed != nil || d.Types[0].Fields != nil {
		t.Error("the difference that was explained was changed, or is kept")
	}
}
