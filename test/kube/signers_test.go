package kube_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"
	security "istio.io/api/security/v1alpha1"

	"github.com/coxswain-mesh/coxswain/test/kit/agent"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

const signerDomain = "issuers.example.com"

// registration is a control plane for which signers of its cluster sign: it has the rights of
// deploy/ and no others.
type registration struct {
	cluster *kube.Cluster
	signer  *kube.Signer
	plane   *mesh.Plane
	audit   string
}

func newRegistration(t *testing.T, args ...string) *registration {
	t.Helper()
	r := &registration{audit: filepath.Join(t.TempDir(), "audit")}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	put(t, policy, fmt.Sprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [%q]}, {level: None}]\n", account))
	r.cluster = kube.Start(t, "--audit-policy-file", policy, "--audit-log-path", r.audit, "--audit-log-mode", "blocking")
	c := r.cluster
	r.signer = c.Signers(t, signerDomain, "mesh", "other")
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace, accountsOfShop))
	trusted := "caCertificates:\n"
	for _, name := range []string{"mesh", "other"} {
		trusted += fmt.Sprintf("- {certSigners: [%s/%s], pem: %q}\n", signerDomain, name, r.signer.Root(name))
	}
	c.Apply(t, settings("istio", trusted, ""))
	c.Kubectl(t, "apply", "-k", deployed)
	c.Kubectl(t, "apply", "-f", filepath.Join(deployed, "signers.yaml"))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig, c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))))
	r.plane = mesh.Start(t, program, "", append([]string{"--registries", "Kubernetes", "--kubeconfig", kubeconfig}, args...)...)
	r.plane.Ready(t)
	return r
}

// dial connects to the secure port, whose certificate must lead to a root.
func (r *registration) dial(t *testing.T, root string, own ...tls.Certificate) *grpc.ClientConn {
	t.Helper()
	return dial(t, r.plane.Secure, portName, root, own...)
}

// portName is a name of the secure port that a CA has made the certificate of.
const portName = "istiod.istio-system.svc"

// dial connects to a control plane's secure port, whose certificate must be of a name (empty: its
// address) and lead to a root.
func dial(t *testing.T, address, name, root string, own ...tls.Certificate) *grpc.ClientConn {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(root)) {
		t.Fatalf("no certificate: %s", root)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: name, Certificates: own})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// wanted is what a workload asks for.
type wanted struct {
	token, signer string
	request       x509.CertificateRequest
	// csr is what it says in place of a request.
	csr string
}

const webIdentity = "spiffe://cluster.local/ns/shop/sa/web"

func named(t *testing.T, identity string) x509.CertificateRequest {
	t.Helper()
	u, err := url.Parse(identity)
	if err != nil {
		t.Fatal(err)
	}
	return x509.CertificateRequest{URIs: []*url.URL{u}}
}

// ask asks for a certificate, and returns it with the roots that came with it.
func (w wanted) ask(t *testing.T, conn *grpc.ClientConn) (own tls.Certificate, roots string, err error) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if w.csr == "" {
		der, err := x509.CreateCertificateRequest(rand.Reader, &w.request, key)
		if err != nil {
			t.Fatal(err)
		}
		w.csr = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	}
	m := &security.IstioCertificateRequest{Csr: w.csr, ValidityDuration: 1800}
	if w.signer != "" {
		m.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{"CertSigner": structpb.NewStringValue(w.signer)}}
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait.Deadline)
	defer cancel()
	if w.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+w.token)
	}
	answer, err := security.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx, m)
	if err != nil {
		return own, "", err
	}
	block, _ := pem.Decode([]byte(answer.CertChain[0]))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key, Leaf: leaf}, answer.CertChain[len(answer.CertChain)-1], nil
}

// none waits until no request is left in the cluster.
func (r *registration) none(t *testing.T) {
	t.Helper()
	wait.For(t, "no CertificateSigningRequest is left", func() error {
		if out := strings.TrimSpace(r.cluster.Kubectl(t, "get", "certificatesigningrequests", "-o", "name")); out != "" {
			return errors.New(out)
		}
		return nil
	})
}

// TestSigners: signers of the cluster sign for workloads and for the secure port; what they don't
// sign is told to who asked, with what to do; nothing is left in the cluster, and the rights of
// deploy/ are those that are used.
func TestSigners(t *testing.T) {
	t.Parallel()
	r := newRegistration(t, "--externalCA", "ISTIOD_RA_KUBERNETES_API", "--k8sSigner", signerDomain+"/mesh", "--certSignerDomain", signerDomain)
	mine := r.signer.Root("mesh")
	if text := root(t, r.cluster, "shop", anything); !strings.HasPrefix(text, strings.TrimSpace(mine)) {
		t.Errorf("the namespaces have other roots: %s", text)
	}
	token := tokenOf(t, r.cluster, "web", ofIstio)
	conn := r.dial(t, mine)
	web := wanted{token: token, request: named(t, webIdentity)}
	own, roots, err := web.ask(t, conn)
	if err != nil {
		t.Fatal(err)
	}
	if life := time.Until(own.Leaf.NotAfter); own.Leaf.URIs[0].String() != webIdentity ||
		own.Leaf.Issuer.CommonName != "root of mesh" || life > 30*time.Minute || life < 25*time.Minute || roots != mine {
		t.Errorf("it is of %v by %v for %v, and leads to %s", own.Leaf.URIs, own.Leaf.Issuer, life, roots)
	}
	next := wanted{signer: "other", request: web.request}
	other, roots, err := next.ask(t, r.dial(t, mine, own)) // the certificate shows who it is
	if err != nil || other.Leaf.Issuer.CommonName != "root of other" || roots != r.signer.Root("other") {
		t.Errorf("%v, %v, %s", err, other.Leaf, roots)
	}
	r.none(t)

	before := r.signer.Asked.Load()
	subject, many := web, web
	subject.request.Subject.CommonName = "system:admin"
	many.request.DNSNames = []string{"istiod.istio-system.svc"}
	for name, c := range map[string]struct {
		wanted
		code  codes.Code
		words string
	}{
		"somebody else's name": {
			wanted{token: token, request: named(t, "spiffe://cluster.local/ns/shop/sa/cart")}, codes.InvalidArgument,
			"which the caller hasn't",
		},
		"another's host":    {many, codes.InvalidArgument, "istiod.istio-system.svc"},
		"a subject":         {subject, codes.InvalidArgument, "it must be empty"},
		"no name":           {wanted{token: token}, codes.InvalidArgument, "needs the caller's SPIFFE ID"},
		"too large":         {wanted{token: token, csr: strings.Repeat("-----BEGIN CERTIFICATE REQUEST-----\n", 1000)}, codes.InvalidArgument, "are taken"},
		"an unknown signer": {wanted{token: token, signer: "third", request: web.request}, codes.FailedPrecondition, "caCertificates"},
		"a signer's path":   {wanted{token: token, signer: "../mesh", request: web.request}, codes.FailedPrecondition, "caCertificates"},
	} {
		if _, _, err := c.ask(t, conn); ends(err, c.code, c.words) != nil {
			t.Errorf("%s: %v", name, ends(err, c.code, c.words))
		}
	}
	if now := r.signer.Asked.Load(); now != before {
		t.Errorf("%d requests that are refused came to the signer", now-before)
	}
	for does, c := range map[string]struct {
		code  codes.Code
		words string
	}{
		"hangs":  {codes.Unavailable, "did not sign in time"},
		"fails":  {codes.FailedPrecondition, "the key is gone"},
		"cheats": {codes.Internal, "more.example"},
	} {
		r.signer.Do(does)
		began := time.Now()
		if _, _, err := web.ask(t, conn); ends(err, c.code, c.words) != nil || time.Since(began) > 20*time.Second {
			t.Errorf("the signer %s: %v, after %v", does, ends(err, c.code, c.words), time.Since(began))
		}
		r.none(t)
	}
	r.signer.Do("denies") // unless the control plane is faster
	wait.For(t, "a request is denied", func() error {
		_, _, err := web.ask(t, conn)
		return ends(err, codes.PermissionDenied, "not on a Wednesday")
	})
	r.none(t)
	r.signer.Do("")
	if _, _, err := web.ask(t, conn); err != nil {
		t.Error(err)
	}

	r.rights(t) // an API server that has just begun refuses everything for a moment

	certified := r.dial(t, mine, own)
	next = wanted{request: web.request}
	r.cluster.Down()
	if _, _, err := next.ask(t, certified); ends(err, codes.Unavailable, "API server") != nil {
		t.Errorf("without an API server: %v", err)
	}
	r.cluster.Up(t)
	wait.For(t, "the API server is back", func() error { _, _, err := next.ask(t, certified); return err })
	r.none(t)
	if strings.Contains(r.plane.Log(), token) {
		t.Error("the log has the token")
	}
}

// rights checks that each right of a registration authority is used, and that none lacks.
func (r *registration) rights(t *testing.T) {
	t.Helper()
	used, given := asked(t, r.audit), rightsOf(t, "signers.yaml")
	for call, code := range used {
		if code == http.StatusForbidden {
			t.Errorf("%s: %d", call, code)
		}
	}
	for _, right := range slices.Sorted(maps.Keys(given)) {
		if _, ok := used[right]; !ok && !strings.Contains(right, "/signers ") { // the API server asks for that itself
			t.Errorf("nobody uses %s", right)
		}
	}
	if len(given) != 5 {
		t.Errorf("%d rights are known", len(given))
	}
}

// TestSignerOfPort: the secure port's certificate is a signer's, and workloads get theirs from the
// CA, whose root and the signer's both are in the namespaces.
func TestSignerOfPort(t *testing.T) {
	need.All(t)
	t.Parallel()
	r := newRegistration(t, "--pilotCertProvider", "k8s.io/"+signerDomain+"/other")
	text := root(t, r.cluster, "shop", anything)
	own, roots, err := wanted{token: tokenOf(t, r.cluster, "web", ofIstio)}.ask(t, r.dial(t, r.signer.Root("other")))
	if err != nil {
		t.Fatal(err)
	}
	if own.Leaf.URIs[0].String() != webIdentity || !strings.Contains(text, strings.TrimSpace(roots)) ||
		!strings.Contains(text, strings.TrimSpace(r.signer.Root("other"))) || roots == r.signer.Root("other") {
		t.Errorf("it is of %v by %s; the namespace has %s", own.Leaf.URIs, roots, text)
	}
	r.none(t)
}

// TestAgentOfSigner: pilot-agent gets a certificate that a signer of the cluster has made, and the
// one that it names.
func TestAgentOfSigner(t *testing.T) {
	need.All(t)
	t.Parallel()
	r := newRegistration(t, "--externalCA", "ISTIOD_RA_KUBERNETES_API", "--k8sSigner", signerDomain+"/mesh", "--certSignerDomain", signerDomain)
	roots := root(t, r.cluster, "shop", anything)
	inbound := fmt.Sprint(wait.Port(t))
	r.cluster.Apply(t, documents(
		"apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: default, namespace: istio-system}\nspec: {mtls: {mode: STRICT}}\n",
		"apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: web, namespace: shop}\nspec:\n  ingress:\n  - {port: {number: "+inbound+
			", protocol: HTTP, name: http}, bind: 127.0.0.2, captureMode: NONE, defaultEndpoint: 127.0.0.1:80}\n  egress: [{hosts: [\"~/*\"]}]\n",
	))
	for _, env := range [][]string{nil, {"ISTIO_META_CERT_SIGNER=other"}} {
		a := agent.Start(t, agent.Workload{
			Name: "web-1", Namespace: "shop", IP: "127.0.0.2", Account: "web",
			Labels: map[string]string{"app": "web"}, Token: tokenOf(t, r.cluster, "web", ofIstio),
			Discovery: r.plane.Secure,
			Roots:     []byte(roots), Env: append([]string{"ISTIO_META_INTERCEPTION_MODE=NONE"}, env...),
		})
		a.Is(t, webIdentity, "")
		a.Stop()
	}
	r.none(t)
}
