package beside

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// world is two clusters, an authority that both control planes sign with, an issuer of OpenID
// Connect, and the control planes.
type world struct {
	cluster, east    *kube.Cluster
	authority        *authority
	issuer           *issuer
	process          *kube.Istiod
	plane            *mesh.Plane
	istiod, coxswain *server
	// env is added to istiod's environment.
	env []string
}

const objects = `
{apiVersion: v1, kind: Namespace, metadata: {name: istio-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: edge}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, namespace: shop}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: cart, namespace: shop}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: gone, namespace: shop}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, namespace: edge}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: gw, namespace: edge}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: poor, namespace: edge}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: agent, namespace: istio-system}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: other, namespace: istio-system}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: secrets, namespace: edge}
rules: [{apiGroups: [""], resources: [secrets], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: secrets, namespace: edge}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: secrets}
subjects: [{kind: ServiceAccount, name: gw, namespace: edge}]
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {mesh: "trustDomainAliases: [old.example]"}}
`

// pod is a pod of an account, NAMESPACE/ACCOUNT, on a node; without a node it waits for one.
func pod(name, account, node, phase string) string {
	namespace, account, _ := strings.Cut(account, "/")
	status := "phase: " + phase
	if phase != "Pending" {
		status += ", podIP: 10.244.0.9, podIPs: [{ip: 10.244.0.9}]"
	}
	return fmt.Sprintf(`---
{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s}, spec: {serviceAccountName: %s, nodeName: %q, containers: [{name: a, image: a}]}, status: {%s}}
`, name, namespace, account, node, status)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{cluster: kube.Start(t), east: kube.Start(t), authority: newAuthority(t), issuer: newIssuer(t)}
	w.cluster.Apply(t, kube.Definitions(t))
	w.cluster.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	w.cluster.Apply(t, objects+w.authority.secret())
	w.east.Apply(t, objects)
	w.cluster.Apply(t,
		fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: east, namespace: istio-system, labels: {istio/multiCluster: \"true\"}}, data: {east: %s}}",
			base64.StdEncoding.EncodeToString([]byte(w.east.Remote(t, "")))))
	w.istiod = &server{name: "istiod", roots: w.authority.pool(), silent: true}
	w.coxswain = &server{name: "coxswain", roots: w.authority.pool()}
	return w
}

// start starts both, with the settings that the rows are about, or without them.
func (w *world) start(t *testing.T, set bool) {
	t.Helper()
	w.startIstiod(t, set)
	w.startCoxswain(t, set)
	// What is known of the other cluster comes some time after the start.
	token := w.east.Token(t, "shop", "web", "istio-ca", "")
	for _, s := range []*server{w.istiod, w.coxswain} {
		wait.For(t, s.name+" knows the other cluster", func() error {
			if got := s.comes(t, bearer(token, "clusterid", "east")); got != "OK" {
				return errors.New(got)
			}
			return nil
		})
	}
}

func (w *world) startIstiod(t *testing.T, set bool) {
	t.Helper()
	w.istiod.secure = wait.Address(t)
	flags := []string{"--secureGRPCAddr", w.istiod.secure, "--clusterAliases", "old=east"}
	env := append([]string{"ENABLE_CA_SERVER=true", "PILOT_CERT_PROVIDER=istiod"}, w.env...)
	if set {
		env = append(env, "JWT_RULE="+w.issuer.rule(t), "TRUSTED_GATEWAY_CIDR=192.0.2.0/24", "CA_TRUSTED_NODE_ACCOUNTS="+trusted)
	}
	w.process = kube.StartIstiodWith(t, w.cluster, flags, env...)
	w.istiod.plain = w.process.XDS
}

// trusted are the accounts of agents of nodes.
const trusted = "istio-system/agent"

func (w *world) startCoxswain(t *testing.T, set bool) {
	t.Helper()
	args := []string{"--registries", "Kubernetes", "--kubeconfig", w.cluster.Kubeconfig, "--clusterAliases", "old=east"}
	if set {
		args = append(args, "--jwtRule", w.issuer.rule(t), "--trustedGatewayCIDR", "192.0.2.0/24", "--caTrustedNodeAccounts", trusted)
	}
	w.plane = mesh.Start(t, binary, "", args...)
	w.plane.Ready(t)
	w.coxswain.secure, w.coxswain.plain = w.plane.Secure, w.plane.XDS
}

// stop ends both.
func (w *world) stop() {
	w.process.Stop()
	w.plane.Kill()
}

// handsOut compares the ConfigMaps that each makes when it is alone.
func (w *world) handsOut(t *testing.T) []result {
	t.Helper()
	w.startIstiod(t, false)
	got := result{part: "the root in namespaces", what: "ConfigMaps: namespaces, labels, keys", verdict: same}
	got.istiod = w.maps(t)
	w.process.Stop()
	w.forget(t)
	w.startCoxswain(t, false)
	got.coxswain = w.maps(t)
	w.plane.Kill()
	w.forget(t)
	return []result{got.judged(t, nil)}
}

// forget deletes the ConfigMaps, and the Leases of those who were killed.
func (w *world) forget(t *testing.T) {
	t.Helper()
	w.cluster.Kubectl(t, "delete", "configmap", "-A", "--field-selector", "metadata.name=istio-ca-root-cert")
	w.cluster.Kubectl(t, "delete", "lease", "--all", "-n", "istio-system")
}

// maps describes the ConfigMaps with the root, once a namespace that has come last has its own.
func (w *world) maps(t *testing.T) (text string) {
	t.Helper()
	client := w.cluster.Client(t).CoreV1()
	wait.For(t, "namespaces have the root", func() error {
		list, err := client.ConfigMaps("").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=istio-ca-root-cert"})
		if err != nil {
			return err
		}
		spaces, err := client.Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		const spared = 2 // kube-public and kube-node-lease
		if len(list.Items) < len(spaces.Items)-spared {
			return fmt.Errorf("%d have it", len(list.Items))
		}
		var all []string
		for _, m := range list.Items {
			right := "the root"
			if !w.authority.pool().Equal(poolOf([]byte(m.Data["root-cert.pem"]))) {
				right = "another root"
			}
			all = append(all, fmt.Sprintf("%s %v %v %s", m.Namespace, m.Labels, slices.Sorted(maps.Keys(m.Data)), right))
		}
		slices.Sort(all)
		text = strings.Join(all, "; ")
		return nil
	})
	return text
}

// authority is a CA that signs itself.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{Organization: []string{"cluster.local"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0), KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// below makes an authority that this one signs.
func (a *authority) below(t *testing.T) *authority {
	t.Helper()
	next := &authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "intermediate"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, next.key.Public(), a.key)
	if err == nil {
		next.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func encoded(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// secret is the Secret that istiod keeps its CA in.
func (a *authority) secret() string {
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		panic(err) // it is one of P-256
	}
	return fmt.Sprintf("---\n{apiVersion: v1, kind: Secret, metadata: {name: istio-ca-secret, namespace: istio-system}, "+
		"type: istio.io/ca-root, data: {ca-cert.pem: %s, ca-key.pem: %s, cert-chain.pem: \"\", root-cert.pem: \"\"}}\n",
		base64.StdEncoding.EncodeToString(encoded("CERTIFICATE", a.certificate.Raw)), base64.StdEncoding.EncodeToString(encoded("EC PRIVATE KEY", der)))
}

// issue issues a certificate with the names of another, for a client of today unless that says
// otherwise.
func (a *authority) issue(t *testing.T, of x509.Certificate) tls.Certificate {
	t.Helper()
	key := newKey(t)
	of.SerialNumber, of.KeyUsage = big.NewInt(time.Now().UnixNano()), x509.KeyUsageDigitalSignature
	if of.NotAfter.IsZero() {
		of.NotBefore, of.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	if of.ExtKeyUsage == nil {
		of.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, &of, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// named issues a certificate with URIs.
func (a *authority) named(t *testing.T, uris ...string) tls.Certificate {
	t.Helper()
	of := x509.Certificate{}
	for _, text := range uris {
		of.URIs = append(of.URIs, uri(t, text))
	}
	return a.issue(t, of)
}

// issuer is one of OpenID Connect, with a server that hands its keys out.
type issuer struct {
	key    *rsa.PrivateKey
	curve  *ecdsa.PrivateKey
	server *httptest.Server
}

const issuerName = "https://accounts.example"

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, curve: newKey(t)}
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		keys := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
			{Key: i.key.Public(), KeyID: "1", Use: "sig", Algorithm: "RS256"}, {Key: i.curve.Public(), KeyID: "2", Use: "sig", Algorithm: "ES256"},
		}}
		if err := json.NewEncoder(w).Encode(keys); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(i.server.Close)
	return i
}

func (i *issuer) rule(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"issuer": issuerName, "audiences": []string{"istio-ca"}, "jwks_uri": i.server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// token is one of shop's web, with other claims in the place of some.
func (i *issuer) token(t *testing.T, others ...any) string {
	t.Helper()
	return i.signed(t, jose.RS256, i.key, "1", others...)
}

func (*issuer) signed(t *testing.T, by jose.SignatureAlgorithm, key any, id string, others ...any) string {
	t.Helper()
	claims := map[string]any{"iss": issuerName, "aud": []string{"istio-ca"}, "sub": "system:serviceaccount:shop:web", "exp": time.Now().Add(time.Hour).Unix()}
	for n := 0; n < len(others); n += 2 {
		claims[others[n].(string)] = others[n+1]
		if others[n+1] == nil {
			delete(claims, others[n].(string))
		}
	}
	with, err := jose.NewSigner(jose.SigningKey{Algorithm: by, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(with).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
