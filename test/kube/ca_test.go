package kube_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/agent"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// endingCA is the Secret of a CA whose root ends soon.
func endingCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"cluster.local"}},
		NotBefore: time.Now().Add(-99 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: istio-ca-secret, namespace: istio-system}
type: istio.io/ca-root
data: {ca-cert.pem: %s, ca-key.pem: %s, cert-chain.pem: "", root-cert.pem: ""}
`, encoded("CERTIFICATE", der), encoded("EC PRIVATE KEY", secret))
}

func encoded(kind string, der []byte) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// root is what a namespace's ConfigMap has, once it has something that is accepted.
func root(t *testing.T, c *kube.Cluster, namespace string, accept func(text string) error) (text string) {
	t.Helper()
	wait.For(t, "the namespace "+namespace+" has the root", func() error {
		out := c.Kubectl(t, "get", "configmap", "istio-ca-root-cert", "-n", namespace, "--ignore-not-found", "-o", "jsonpath={.data.root-cert\\.pem}")
		if text = strings.TrimSpace(out); !strings.HasPrefix(text, "-----BEGIN CERTIFICATE-----") {
			return fmt.Errorf("it has %q", text)
		}
		return accept(text)
	})
	return text
}

func anything(string) error { return nil }

// is accepts one text.
func is(text string) func(string) error {
	return func(other string) error {
		if other != text {
			return errors.New("it is another one")
		}
		return nil
	}
}

// rootReturns changes and deletes a namespace's ConfigMap: it comes back as it was.
func rootReturns(t *testing.T, c *kube.Cluster, namespace string) {
	t.Helper()
	text := root(t, c, namespace, anything)
	c.Kubectl(t, "patch", "configmap", "istio-ca-root-cert", "-n", namespace, "--type", "merge", "-p",
		`{"data": {"root-cert.pem": "-----BEGIN CERTIFICATE-----x"}}`)
	root(t, c, namespace, is(text))
	c.Kubectl(t, "delete", "configmap", "istio-ca-root-cert", "-n", namespace)
	root(t, c, namespace, is(text))
}

// secretOf is what a Secret of the control plane's namespace has under a key.
func secretOf(t *testing.T, c *kube.Cluster, key string) []byte {
	t.Helper()
	out := c.Kubectl(t, "get", "secret", "istio-ca-secret", "-n", "istio-system", "-o", "jsonpath={.data."+strings.ReplaceAll(key, ".", "\\.")+"}")
	text, err := base64.StdEncoding.DecodeString(out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRoots: each namespace has the CA's root, those that come too; what is changed or deleted
// comes back, by whichever replica is left.
func TestRoots(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace))
	first := mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig)
	second := mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig)
	first.Ready(t)
	second.Ready(t)
	text := root(t, c, "shop", anything)
	if kept := strings.TrimSpace(string(secretOf(t, c, "ca-cert.pem"))); kept != text {
		t.Errorf("the Secret has another root than the namespaces")
	}
	rootReturns(t, c, "shop")
	if code := first.Stop(t); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	c.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: later}\n")
	root(t, c, "later", is(text))
	rootReturns(t, c, "shop")
	if out := c.Kubectl(t, "get", "configmap", "istio-ca-root-cert", "-n", "kube-public", "--ignore-not-found", "-o", "name"); strings.TrimSpace(out) != "" {
		t.Errorf("kube-public has one: %q", out)
	}
	if key := secretOf(t, c, "ca-key.pem"); len(key) == 0 || bytes.Contains([]byte(second.Log()), key[50:90]) {
		t.Error("the log has the CA's key, or there is none")
	}
}

// TestRootOfIstiod: the CA that istiod has made goes on signing when Coxswain takes its place.
func TestRootOfIstiod(t *testing.T) {
	need.All(t)
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace))
	istiod := kube.StartIstiodWith(t, c, []string{"--secureGRPCAddr", wait.Address(t)}, "ENABLE_CA_SERVER=true", "PILOT_CERT_PROVIDER=istiod")
	text := root(t, c, "shop", anything)
	istiod.Stop()
	c.Kubectl(t, "delete", "configmap", "istio-ca-root-cert", "-n", "shop")
	c.Kubectl(t, "delete", "lease", "--all", "-n", "istio-system") // it was killed, and others would wait until its own ends
	plane := mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig)
	plane.Ready(t)
	root(t, c, "shop", is(text))
}

// TestAgentOfPod: pilot-agent gets a certificate with the token of a pod's service account, and
// what it shows to the control plane is refused once the account has gone.
func TestAgentOfPod(t *testing.T) {
	need.All(t)
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace))
	c.Kubectl(t, "create", "serviceaccount", "web", "-n", "shop")
	plane := mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig)
	plane.Ready(t)
	roots := root(t, c, "shop", anything)
	token := strings.TrimSpace(c.Kubectl(t, "create", "token", "web", "-n", "shop", ofIstio))
	inbound := fmt.Sprint(wait.Port(t))
	c.Apply(t, documents(
		"apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: default, namespace: istio-system}\nspec: {mtls: {mode: STRICT}}\n",
		"apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: web, namespace: shop}\nspec:\n  ingress:\n  - {port: {number: "+inbound+
			", protocol: HTTP, name: http}, bind: 127.0.0.2, captureMode: NONE, defaultEndpoint: 127.0.0.1:80}\n  egress: [{hosts: [\"~/*\"]}]\n",
	))
	a := agent.Start(t, agent.Workload{
		Name: "web-1", Namespace: "shop", IP: "127.0.0.2", Account: "web", Labels: map[string]string{"app": "web"}, Token: token, Discovery: plane.Secure,
		Roots: []byte(roots), Env: []string{"ISTIO_META_INTERCEPTION_MODE=NONE", "SECRET_TTL=10s"},
	})
	first := a.Is(t, "spiffe://cluster.local/ns/shop/sa/web", "")
	a.Is(t, "spiffe://cluster.local/ns/shop/sa/web", first)
	if strings.Contains(plane.Log(), token) {
		t.Error("the log has the token")
	}
}

// TestRevocationLists: with the rights of deploy/, each namespace has the lists beside a CA that is
// plugged in, those that come later, too; they come back when they are deleted, and one that has
// ended takes none away.
func TestRevocationLists(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace))
	c.Kubectl(t, "apply", "-k", deployed)
	dir := t.TempDir()
	ca := newListed(t, filepath.Join(dir, "etc/cacerts"))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig, c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))))
	plane := mesh.StartWith(t, func(cmd *exec.Cmd) { cmd.Dir = dir }, program, "", "--registries", "Kubernetes", "--kubeconfig", kubeconfig)
	plane.Ready(t)
	root(t, c, "shop", anything)
	has := func(namespace, text string) {
		t.Helper()
		wait.For(t, namespace+" has the list", func() error {
			out := c.Kubectl(t, "get", "configmap", "istio-ca-crl", "-n", namespace, "--ignore-not-found", "-o", "jsonpath={.data.ca-crl\\.pem}")
			if strings.TrimSpace(out) != strings.TrimSpace(text) {
				return fmt.Errorf("it has %q", out)
			}
			return nil
		})
	}
	has("shop", "") // there is none yet
	first := ca.list(t, 1, time.Hour)
	has("shop", first)
	c.Kubectl(t, "delete", "configmap", "istio-ca-crl", "-n", "shop")
	has("shop", first)
	second := ca.list(t, 2, time.Hour)
	has("shop", second)
	ca.list(t, 3, -time.Hour)
	wait.For(t, "one that has ended is told", func() error {
		if !strings.Contains(plane.Log(), "etc/cacerts/ca-crl.pem: a list has ended on") {
			return errors.New(plane.LastLines(3))
		}
		return nil
	})
	c.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: later}\n")
	has("later", second)
	has("shop", second)
	if strings.Contains(plane.Log(), "is forbidden") {
		t.Errorf("a right lacks: %s", plane.LastLines(20))
	}
}

// listed is a CA that is plugged in, with revocation lists.
type listed struct {
	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newListed(t *testing.T, dir string) *listed {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"acme"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	l := &listed{dir: dir, key: key}
	if l.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	own := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	for name, text := range map[string]string{
		"ca-cert.pem": own, "root-cert.pem": own, "cert-chain.pem": "",
		"ca-key.pem": string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})),
	} {
		put(t, filepath.Join(dir, name), text)
	}
	return l
}

// list puts a list beside the CA that ends after so long, and returns it.
func (l *listed) list(t *testing.T, number int64, ends time.Duration) string {
	t.Helper()
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(number), ThisUpdate: time.Now().Add(-2 * time.Hour), NextUpdate: time.Now().Add(ends),
		RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: big.NewInt(number), RevocationTime: time.Now()}},
	}, l.certificate, l.key)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
	put(t, filepath.Join(l.dir, "ca-crl.pem.new"), text)
	if err := os.Rename(filepath.Join(l.dir, "ca-crl.pem.new"), filepath.Join(l.dir, "ca-crl.pem")); err != nil {
		t.Fatal(err)
	}
	return text
}
