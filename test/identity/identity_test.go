// Package identity tests who is who: certificates that the control plane signs, and who gets them.
package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	security "istio.io/api/security/v1alpha1"
)

// binary is the program under test.
var binary string

func TestMain(m *testing.M) { mesh.Quick(&binary, m.Run) }

// set is a control plane that signs, for callers with tokens of a file and with certificates.
const set = `
plugins:
- name: files
  kind: config
  builtin: config/file
- name: mesh
  kind: config
  builtin: config/mesh
- name: serviceentry
  kind: registry
  builtin: registry/serviceentry
- name: istio
  kind: generator
  builtin: generator/istio
- name: ca
  kind: controller
  builtin: controller/ca
  config: {plugged: cacerts, keep: file, file: state/ca.pem, maxTTL: 48h}
  limits: {call: 30s}
- name: certificates
  kind: authenticator
  builtin: authenticator/certificate
- name: tokens
  kind: authenticator
  builtin: authenticator/token
  config: {file: tokens.yaml}
`

const (
	webToken, strangerToken = "web-token-0123456789", "stranger-token-0123456789"
	web                     = "spiffe://cluster.local/ns/shop/sa/web"
	tokens                  = `
tokens:
- {token: ` + webToken + `, identities: [` + web + `]}
- {token: ` + strangerToken + `, identities: [spiffe://other.example/ns/shop/sa/web]}
`
)

// world is a control plane, and the folder that it runs in.
type world struct {
	*mesh.Plane
	dir string
}

// start starts one whose folder has what prepare puts there.
func start(t *testing.T, prepare func(dir string), args ...string) *world {
	t.Helper()
	w := &world{dir: t.TempDir()}
	w.put(t, "plugins.yaml", set)
	w.put(t, "tokens.yaml", tokens)
	if err := os.Mkdir(filepath.Join(w.dir, "config"), 0o755); err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(w.dir)
	}
	w.Plane = mesh.Start(t, binary, filepath.Join(w.dir, "config"), append([]string{"--plugins", filepath.Join(w.dir, "plugins.yaml")}, args...)...)
	w.Ready(t)
	return w
}

func (w *world) put(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// roots are the authorities of a file in PEM.
func (w *world) roots(t *testing.T, name string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("%s has no certificate", name)
	}
	return pool
}

// dial connects to the secure port.
func (w *world) dial(t *testing.T, roots *x509.CertPool, own ...tls.Certificate) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(w.Secure, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		RootCAs: roots, ServerName: "istiod.istio-system.svc", Certificates: own,
	})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// bearer is a ctx with a token, if there is one.
func bearer(t *testing.T, token string) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// csr is a request for a certificate, with names that nobody is to heed.
func csr(t *testing.T, key crypto.Signer) string {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"istiod.istio-system.svc"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// certified asks for a certificate, and returns it with its key.
func certified(t *testing.T, c *grpc.ClientConn, token string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	answer, err := security.NewIstioCertificateServiceClient(c).CreateCertificate(bearer(t, token), &security.IstioCertificateRequest{Csr: csr(t, key)})
	if err != nil {
		t.Fatal(err)
	}
	var chain [][]byte
	for _, text := range answer.CertChain[:len(answer.CertChain)-1] { // the roots are the last
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			t.Fatalf("no certificate: %q", text)
		}
		chain = append(chain, block.Bytes)
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}
}

// TestSigned: who shows a token gets a certificate for its identity, and with it is known without
// the token.
func TestSigned(t *testing.T) {
	w := start(t, nil)
	roots := w.roots(t, "state/ca.pem")
	own := certified(t, w.dial(t, roots), webToken)
	if len(own.Leaf.URIs) != 1 || own.Leaf.URIs[0].String() != web || len(own.Leaf.DNSNames) > 0 {
		t.Errorf("it is of %v and %v", own.Leaf.URIs, own.Leaf.DNSNames)
	}
	if life := time.Until(own.Leaf.NotAfter); life < 23*time.Hour || life > 25*time.Hour {
		t.Errorf("it counts for %v", life)
	}
	if _, err := own.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	again := certified(t, w.dial(t, roots, own), "")
	if again.Leaf.URIs[0].String() != web {
		t.Errorf("its next one is of %v", again.Leaf.URIs)
	}
	if info, err := os.Stat(filepath.Join(w.dir, "state/ca.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the CA's key: %v, %v", info.Mode(), err)
	}
}

// TestRefused: what nobody gets, with the code and the words.
func TestRefused(t *testing.T) {
	w := start(t, nil)
	roots := w.roots(t, "state/ca.pem")
	c := w.dial(t, roots)
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	other := func(edit func(*security.IstioCertificateRequest)) *security.IstioCertificateRequest {
		m := &security.IstioCertificateRequest{Csr: csr(t, newKey(t))}
		edit(m)
		return m
	}
	for name, x := range map[string]struct {
		token   string
		request *security.IstioCertificateRequest
		code    codes.Code
		words   string
	}{
		"nobody":              {"", other(func(*security.IstioCertificateRequest) {}), codes.Unauthenticated, "refused"},
		"an unknown token":    {"unknown-token-0123456789", other(func(*security.IstioCertificateRequest) {}), codes.Unauthenticated, "the token is unknown"},
		"another domain":      {strangerToken, other(func(*security.IstioCertificateRequest) {}), codes.PermissionDenied, "cluster.local"},
		"no csr":              {webToken, other(func(m *security.IstioCertificateRequest) { m.Csr = "" }), codes.InvalidArgument, "csr"},
		"a csr of nonsense":   {webToken, other(func(m *security.IstioCertificateRequest) { m.Csr = strings.Replace(m.Csr, "M", "N", 3) }), codes.InvalidArgument, "csr"},
		"a key that is small": {webToken, other(func(m *security.IstioCertificateRequest) { m.Csr = csr(t, small) }), codes.InvalidArgument, "2048"},
		"too long":            {webToken, other(func(m *security.IstioCertificateRequest) { m.ValidityDuration = 49 * 3600 }), codes.InvalidArgument, "48h"},
		"somebody else's": {webToken, other(func(m *security.IstioCertificateRequest) {
			m.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{"ImpersonatedIdentity": structpb.NewStringValue("spiffe://cluster.local/ns/shop/sa/cart")}}
		}), codes.PermissionDenied, "somebody else"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := security.NewIstioCertificateServiceClient(c).CreateCertificate(bearer(t, x.token), x.request)
			if status.Code(err) != x.code || !strings.Contains(err.Error(), x.words) {
				t.Errorf("got %v; wanted %v with %q", err, x.code, x.words)
			}
			if x.token != "" && strings.Contains(err.Error(), x.token) {
				t.Errorf("the token is told: %v", err)
			}
		})
	}
	wait.For(t, "the log says who was refused, and why", func() error {
		for line := range strings.Lines(w.Log()) {
			if strings.Contains(line, "call refused") && strings.Contains(line, "CreateCertificate") && strings.Contains(line, "token is unknown") {
				return nil
			}
		}
		return errors.New("no line does")
	})
	err = c.Invoke(bearer(t, webToken), "/istio.v1.auth.IstioCertificateService/Another", &security.IstioCertificateRequest{}, &security.IstioCertificateResponse{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("another method: %v", err)
	}
	w.log(t, webToken, strangerToken)
}

// log checks that the control plane's log has none of some secrets.
func (w *world) log(t *testing.T, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if strings.Contains(w.Log(), s) {
			t.Errorf("the log has %q", s)
		}
	}
}
