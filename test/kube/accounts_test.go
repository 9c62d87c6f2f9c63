package kube_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

const accountsOfShop = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, namespace: shop}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: cart, namespace: shop}}
---
{apiVersion: v1, kind: Pod, metadata: {name: bound, namespace: shop}, spec: {serviceAccountName: web, containers: [{name: web, image: web}]}}`

// login asks for clusters as a proxy of shop's web does, with a token and the cluster that it says
// it is in; the error is how the stream ended.
func login(t testing.TB, p *mesh.Plane, token, cluster string) error {
	t.Helper()
	conn, err := grpc.NewClient(p.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Deadline)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	if cluster != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "clusterid", cluster)
	}
	s, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m, err := structpb.NewStruct(map[string]any{"NAMESPACE": "shop", "SERVICE_ACCOUNT": "web"})
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{Id: "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local", Metadata: m}
	if err := s.Send(&discovery.DiscoveryRequest{Node: node, TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"}); err != nil {
		return err
	}
	_, err = s.Recv()
	return err
}

// ends compares how a stream ended with a code and words that its reason has.
func ends(err error, code codes.Code, words ...string) error {
	if status.Code(err) != code {
		return fmt.Errorf("got %w, want %v", err, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			return fmt.Errorf("%q is not in: %w", w, err)
		}
	}
	return nil
}

// token asks a cluster for one of a service account of shop.
func tokenOf(t testing.TB, c *kube.Cluster, account string, flags ...string) string {
	t.Helper()
	return strings.TrimSpace(c.Kubectl(t, append([]string{"create", "token", account, "-n", "shop"}, flags...)...))
}

const ofIstio = "--audience=istio-ca"

// TestServiceAccounts: tokens of service accounts are checked by the API server of the cluster that
// issued them, and by no other. They count for what they are meant, and as long as what they are
// bound to is there. While an API server is away its callers are told to come again, and others are
// served.
func TestServiceAccounts(t *testing.T) {
	need.All(t)
	t.Parallel()
	c, other := kube.Start(t), kube.Start(t)
	c.Apply(t, documents(system, namespace, accountsOfShop))
	other.Apply(t, documents(namespace, accountsOfShop))
	c.Apply(t, secret("east", "east", other.Remote(t, "")))
	c.Apply(t, documents(kube.Definitions(t), kube.GatewayAPI(t)))
	p := mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig, "--authPlaintext", "--clusterAliases", "old=east")
	p.Ready(t)
	wait.For(t, "nobody has come, and authenticator/kubernetes sleeps", func() error {
		if is := p.Plugins(t)["accounts"]; is.State != "asleep" {
			return fmt.Errorf("it is %s", is.State)
		}
		return nil
	})

	good, east := tokenOf(t, c, "web", ofIstio), tokenOf(t, other, "web", ofIstio)
	check := func(what, token, cluster string, code codes.Code, words ...string) {
		t.Helper()
		err := login(t, p, token, cluster)
		if e := ends(err, code, words...); e != nil {
			t.Errorf("%s: %v", what, e)
		}
		for _, secret := range []string{token, strings.Split(token, ".")[0]} {
			if len(secret) > 8 && (err != nil && strings.Contains(err.Error(), secret) || strings.Contains(p.Log(), secret)) {
				t.Errorf("%s: a part of the token is told", what)
			}
		}
	}
	check("its own", good, "", codes.OK)
	check("by the cluster's id", good, "Kubernetes", codes.OK)
	wait.For(t, "the other cluster is known", func() error { return login(t, p, east, "east") })
	check("by an alias", east, "old", codes.OK)
	check("of another account", tokenOf(t, c, "cart", ofIstio), "", codes.PermissionDenied, "spiffe://cluster.local/ns/shop/sa/cart")
	check("stolen from another cluster", east, "", codes.Unauthenticated,
		"accounts: the API server of the cluster Kubernetes refuses the token: it is not one that this cluster has issued")
	check("taken to another cluster", good, "east", codes.Unauthenticated, "it is not one that this cluster has issued")
	check("an unknown cluster", good, "mars", codes.Unauthenticated, "CLUSTER_ID of the proxy) is not known")
	check("another audience", tokenOf(t, c, "web", "--audience=vault"), "", codes.Unauthenticated, "its audience is none of istio-ca")
	check("first-party", tokenOf(t, c, "web"), "", codes.Unauthenticated, "its audience is none of istio-ca")
	check("none", "", "", codes.Unauthenticated, "certificates: no certificate was shown; accounts: no bearer token was shown")
	check("made up", good[:strings.LastIndex(good, ".")+1]+strings.Repeat("A", 342), "", codes.Unauthenticated, "it is not one that this cluster has issued")

	bound := tokenOf(t, c, "web", ofIstio, "--bound-object-kind=Pod", "--bound-object-name=bound")
	check("bound to a pod", bound, "", codes.OK)
	c.Kubectl(t, "delete", "pod", "bound", "-n", "shop", "--force", "--grace-period=0")
	wait.For(t, "the pod's token counts no more", func() error {
		return ends(login(t, p, bound, ""), codes.Unauthenticated, "refuses the token")
	})
	check("another token of the account", good, "", codes.OK)
	c.Kubectl(t, "delete", "serviceaccount", "web", "-n", "shop")
	wait.For(t, "the account's tokens count no more", func() error {
		return ends(login(t, p, good, ""), codes.Unauthenticated, "refuses the token")
	})

	other.Down()
	wait.For(t, "the other cluster's callers are told to come again", func() error {
		return ends(login(t, p, east, "east"), codes.Unavailable, "the API server of the cluster east can't be asked")
	})
	c.Apply(t, accountsOfShop)
	check("meanwhile at home", tokenOf(t, c, "web", ofIstio), "", codes.OK)
	other.Up(t)
	wait.For(t, "the other cluster answers again", func() error { return login(t, p, east, "east") })
}

// TestWithoutTheRight: a control plane that may not ask says so in its log, and callers are told to
// come again.
func TestWithoutTheRight(t *testing.T) {
	need.All(t)
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, documents(system, namespace, accountsOfShop))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig, c.Remote(t, tokenOf(t, c, "cart")))
	set := filepath.Join(t.TempDir(), "plugins.yaml")
	put(t, set, fmt.Sprintf(`plugins:
  - {name: accounts, kind: authenticator, builtin: authenticator/kubernetes, config: {kubeconfig: %q}}
  - {name: files, kind: config, builtin: config/file, config: {dir: %q}}
  - {name: istio, kind: generator, builtin: generator/istio}
`, kubeconfig, t.TempDir()))
	p := mesh.Start(t, program, "", "--plugins", set, "--authPlaintext")
	p.Ready(t)
	wait.For(t, "callers are told to come again", func() error {
		return ends(login(t, p, tokenOf(t, c, "web", ofIstio), ""), codes.Unavailable, "may not create tokenreviews")
	})
	if !strings.Contains(p.Log(), "an API server can't be asked about tokens") {
		t.Errorf("the log doesn't say why:\n%s", p.LastLines(20))
	}
}
