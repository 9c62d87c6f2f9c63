package mesh

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

const webIdentity = "spiffe://cluster.local/ns/shop/sa/web"

func web() *corev3.Node {
	return claimant("sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local", "NAMESPACE", "shop", "SERVICE_ACCOUNT", "web")
}

func claimant(id string, metadata ...string) *corev3.Node {
	m := map[string]any{}
	for i := 0; i < len(metadata); i += 2 {
		m[metadata[i]] = metadata[i+1]
	}
	s, err := structpb.NewStruct(m)
	if err != nil {
		panic(err)
	}
	return &corev3.Node{Id: id, Metadata: s}
}

// TestWhoANodeMayBe: namespace and service account of a node are those of the caller.
func TestWhoANodeMayBe(t *testing.T) {
	const cart, other, service = "spiffe://cluster.local/ns/shop/sa/cart", "spiffe://cluster.local/ns/bank/sa/web", "spiffe://corp.example/web"
	id := "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local"
	for _, c := range []struct {
		name       string
		node       *corev3.Node
		identities []string
		want       []string
		words      string
	}{
		{"both match", web(), []string{webIdentity}, []string{webIdentity}, ""},
		{"trust domains are not compared here", web(), []string{"spiffe://other/ns/shop/sa/web"}, []string{"spiffe://other/ns/shop/sa/web"}, ""},
		{"one of several", web(), []string{service, other, webIdentity, cart}, []string{webIdentity}, ""},
		{
			"the namespace is enough where the node names no account", claimant(id, "NAMESPACE", "shop"),
			[]string{cart, other, webIdentity}, []string{cart, webIdentity}, "",
		},
		{"another account", web(), []string{cart}, nil, `the node says that it is of namespace "shop" and service account "web", but the caller is ` + cart},
		{"another namespace", web(), []string{other}, nil, "the caller is " + other},
		{"metadata before the id", claimant(id, "NAMESPACE", "bank"), []string{other}, []string{other}, ""},
		{"the id where there is no metadata", claimant(id), []string{other}, nil, `of namespace "shop"`},
		{"a node that says nothing", claimant("x"), []string{other}, []string{other}, ""},
		{"no workload's identity", claimant("x"), []string{service, "CN=web"}, nil, "is no workload's identity"},
		{
			"half an identity", web(),
			[]string{"spiffe://a/ns/shop/sa/", "spiffe://a/ns/shop", "spiffe:///ns/shop/sa/web", "http://a/ns/shop/sa/web"},
			nil, "correct NAMESPACE",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := may(c.node, c.identities)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if c.words != "" {
				if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), c.words) {
					t.Error(err)
				}
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

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

// TestNamespaces: of identities of another form nobody is of any namespace.
func TestNamespaces(t *testing.T) {
	got := namespaces([]string{webIdentity, "spiffe://corp.example/web", "CN=web", "x/ns/shop/sa/web", "spiffe://td/ns/bank/sa/a"})
	if diff := cmp.Diff([]string{"shop", "bank"}, got); diff != "" {
		t.Error(diff)
	}
}
