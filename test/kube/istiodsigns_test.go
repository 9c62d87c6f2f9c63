package kube_test

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// registrationPods: the control plane and web are on one node, cart is on another.
const registrationPods = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: coxswain, namespace: istio-system}}
---
{apiVersion: v1, kind: Pod, metadata: {name: coxswain-1, namespace: istio-system}, spec: {serviceAccountName: coxswain, nodeName: one, containers: [{name: a, image: a}]}, status: {phase: Running}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop}, spec: {serviceAccountName: web, nodeName: one, containers: [{name: a, image: a}]}, status: {phase: Running}}
---
{apiVersion: v1, kind: Pod, metadata: {name: cart-1, namespace: shop}, spec: {serviceAccountName: cart, nodeName: two, containers: [{name: a, image: a}]}, status: {phase: Running}}`

// TestIstiodSigns: a living istiod signs for the callers that Coxswain knows, as for an agent of a
// node: for accounts with a pod on the node of the control plane's own pod, and for no others. Who
// is refused there is told so; while istiod is away, callers are told to come again.
func TestIstiodSigns(t *testing.T) {
	need.All(t)
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, documents(kube.Definitions(t), system, namespace, accountsOfShop, registrationPods))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	secure := wait.Address(t)
	istiod := kube.StartIstiodWith(t, c, []string{"--secureGRPCAddr", secure}, "ENABLE_CA_SERVER=true",
		"PILOT_CERT_PROVIDER=istiod", "CA_TRUSTED_NODE_ACCOUNTS=istio-system/coxswain")
	dir := t.TempDir()
	roots := root(t, c, "shop", anything)
	put(t, filepath.Join(dir, "root.pem"), roots)
	put(t, filepath.Join(dir, "token"), c.Token(t, "istio-system", "coxswain", "istio-ca", "coxswain-1"))
	s := newSecured(t, fmt.Sprintf(`plugins:
  - {name: accounts, kind: authenticator, builtin: authenticator/kubernetes, config: {kubeconfig: %[1]q}}
  - {name: certificates, kind: authenticator, builtin: authenticator/certificate}
  - {name: files, kind: config, builtin: config/file, config: {dir: %[2]q}}
  - {name: istio, kind: generator, builtin: generator/istio}
  - name: ca
    kind: controller
    builtin: controller/ca
    config: {external: {by: server, address: %[3]q, roots: %[2]s/root.pem, tokenFile: %[2]s/token, cluster: Kubernetes, tls: {ca: %[2]s/root.pem, serverName: %[4]s}}}
`, c.Kubeconfig, dir, secure, portName), "--caCertFile", filepath.Join(dir, "root.pem"))
	port, err := os.ReadFile(filepath.Join(s.dir, "plane/root-cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, s.address, "", string(port))
	const cart = "spiffe://cluster.local/ns/shop/sa/cart"
	of := func(account, identity string) wanted {
		return wanted{token: tokenOf(t, c, account, ofIstio), request: named(t, identity)}
	}
	web := of("web", webIdentity)
	direct, _, err := wanted{token: web.token, request: web.request}.ask(t, dial(t, secure, portName, roots))
	if err != nil {
		t.Fatalf("istiod itself: %v", err)
	}
	wait.For(t, "istiod knows the pods", func() error { _, _, err := web.ask(t, conn); return err })
	own, with, err := web.ask(t, conn)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(roots))
	if _, err := own.Leaf.Verify(x509.VerifyOptions{
		Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}); err != nil {
		t.Error(err)
	}
	if strings.TrimSpace(with) != roots || !slices.Equal(names(own.Leaf), names(direct.Leaf)) ||
		own.Leaf.KeyUsage != direct.Leaf.KeyUsage || !slices.Equal(own.Leaf.ExtKeyUsage, direct.Leaf.ExtKeyUsage) ||
		own.Leaf.Issuer.String() != direct.Leaf.Issuer.String() {
		t.Errorf("it isn't as istiod's own: %v by %v, %v", names(own.Leaf), own.Leaf.Issuer, names(direct.Leaf))
	}
	if next, _, err := (wanted{
		request: web.request,
	}).ask(t, dial(t, s.address, "", string(port), own)); err != nil || !slices.Equal(names(next.Leaf), names(own.Leaf)) {
		t.Errorf("with its certificate: %v", err)
	}

	for name, x := range map[string]struct {
		wanted
		code  codes.Code
		words string
	}{
		"an account of another node": {of("cart", cart), codes.FailedPrecondition, "CA_TRUSTED_NODE_ACCOUNTS"},
		"another's name":             {of("web", cart), codes.InvalidArgument, "which the caller hasn't"},
	} {
		if _, _, err := x.ask(t, conn); ends(err, x.code, x.words) != nil {
			t.Errorf("%s: %v", name, ends(err, x.code, x.words))
		}
	}
	istiod.Stop()
	if _, _, err := web.ask(t, conn); ends(err, codes.Unavailable, "external.address") != nil {
		t.Errorf("without istiod: %v", ends(err, codes.Unavailable, "external.address"))
	}
	if strings.Contains(s.plane.Log(), web.token) {
		t.Error("the log has the token")
	}
}

func names(c *x509.Certificate) (all []string) {
	for _, u := range c.URIs {
		all = append(all, u.String())
	}
	return all
}
