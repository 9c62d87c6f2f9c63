package jwks

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Of rules that want the same keys the most patient one counts, in whatever order they come.
func TestMostPatientRuleCounts(t *testing.T) {
	const uri = "https://a.example/keys"
	within := func(seconds ...int64) map[string]want {
		upserts := []*pb.Row{}
		for i, s := range seconds {
			r := &security.JWTRule{JwksUri: uri}
			if s > 0 {
				r.Timeout = durationpb.New(time.Duration(s) * time.Second)
			}
			upserts = append(upserts, rule(t, string(rune('a'+i)), r))
		}
		var b state.Builder
		change, err := b.Apply(&pb.State{Whole: true, Tables: []*pb.TableRows{{Table: kinds.RequestAuthentication, Upserts: upserts}}})
		if err != nil {
			t.Fatal(err)
		}
		return wants(change.State)
	}
	for _, seconds := range [][]int64{{1, 9}, {9, 1}, {1, 9, 2}, {0, 9}, {9, 0}} {
		if got := within(seconds...); len(got) != 1 || got[uri].Timeout != 9*time.Second {
			t.Errorf("rules that wait for %v seconds: %v", seconds, got)
		}
	}
}
