package jwks

import (
	"net/netip"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// An address is blocked however it is written.
func TestBlockedAddresses(t *testing.T) {
	blocked := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "[::ffff:127.0.0.1]:80": true, "[::ffff:7f00:1]:80": true, "169.254.169.254:80": true, "[fd00::1]:443": true,
		"126.255.255.255:80": false, "128.0.0.1:80": false, "[::ffff:10.0.0.1]:80": false, "[fe80::1]:443": false, "10.0.0.1:80": false,
	} {
		if err := admits(blocked, address); (err != nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	if admits(nil, "127.0.0.1:80") != nil {
		t.Error("nothing is blocked, and yet it is refused")
	}
}

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
