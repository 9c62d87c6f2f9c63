package mesh

import (
	"strings"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	api "istio.io/api/mesh/v1alpha1"
)

// TestTrusted: identities of the mesh's trust domain and its aliases count, others don't, whatever
// else they say.
func TestTrusted(t *testing.T) {
	const alias, other = "spiffe://old.example/ns/shop/sa/web", "spiffe://other.example/ns/shop/sa/web"
	corp := &api.MeshConfig{TrustDomain: "corp.example", TrustDomainAliases: []string{"old.example"}}
	for _, c := range []struct {
		name       string
		mesh       *api.MeshConfig // nil: no settings
		identities []string
		want       []string
		words      string
	}{
		{"no settings", nil, []string{webIdentity}, []string{webIdentity}, ""},
		{"settings that name no domain", &api.MeshConfig{}, []string{webIdentity}, []string{webIdentity}, ""},
		{"an alias", corp, []string{alias}, []string{alias}, ""},
		{"one of several", corp, []string{other, alias, webIdentity}, []string{alias}, ""},
		{"names of no domain", corp, []string{other, "web.example", "CN"}, []string{"web.example", "CN"}, ""},
		{
			"another domain", corp, []string{other}, nil,
			"the caller is " + other + ", of a trust domain that is none of the mesh's (corp.example, old.example); ",
		},
		{"cluster.local is one as any other", corp, []string{webIdentity}, nil, "trustDomainAliases"},
		{"another domain without a workload", corp, []string{"spiffe://other.example/a"}, nil, "--foreignTrustDomains"},
		{
			"a domain that begins alike", corp,
			[]string{"spiffe://corp.example.evil/ns/shop/sa/web", "spiffe://corp.example:1/ns/a/sa/b"}, nil,
			"none of the mesh's",
		},
		{"nobody", corp, nil, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := func(table string) []*pb.Row {
				if table != state.Mesh || c.mesh == nil {
					return nil
				}
				payload, err := proto.Marshal(c.mesh)
				if err != nil {
					t.Fatal(err)
				}
				return []*pb.Row{{Key: state.Mesh, Payload: payload}}
			}
			got, err := Naming("istio-system", false).Trusted(c.identities, rows)
			if diff := cmp.Diff(c.want, got); diff != "" && len(c.want)+len(got) > 0 {
				t.Error(diff)
			}
			if (c.words != "") != (status.Code(err) == codes.PermissionDenied) || c.words != "" && !strings.Contains(err.Error(), c.words) {
				t.Error(err)
			}
		})
	}
	if Naming("istio-system", true).Trusted != nil {
		t.Error("foreign domains are looked at though all may come")
	}
	if _, err := trusted([]string{webIdentity},
		func(string) []*pb.Row { return []*pb.Row{{Key: state.Mesh, Payload: []byte{1}}} }); status.Code(err) != codes.Unavailable {
		t.Errorf("settings that can't be read: %v", err)
	}
}
