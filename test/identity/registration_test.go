package identity

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	security "istio.io/api/security/v1alpha1"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const (
	authority      = "spiffe://cluster.local/ns/istio-system/sa/coxswain"
	authorityToken = "authority-token-0123456789"
)

// portFiles writes the certificate of a secure port into a folder, and returns its authority.
func portFiles(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	by, key := newRoot(t), newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "port"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"istiod.istio-system.svc"}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	writePair(t, dir, "port", [][]byte{der}, key)
	pool := x509.NewCertPool()
	pool.AddCert(by.certificate)
	return pool
}

// writePair writes a chain and its key.
func writePair(t *testing.T, dir, name string, chain [][]byte, key any) {
	t.Helper()
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var certs []byte
	for _, der := range chain {
		certs = append(certs, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	err = errors.Join(os.WriteFile(filepath.Join(dir, name+".pem"), certs, 0o600),
		os.WriteFile(filepath.Join(dir, name+"-key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// request asks for a certificate with a name, in the name of another if there is one.
func request(t *testing.T, c *grpc.ClientConn, token, name, other string) (tls.Certificate, error) {
	t.Helper()
	u, err := url.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{u}}, key)
	if err != nil {
		t.Fatal(err)
	}
	m := &security.IstioCertificateRequest{Csr: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), ValidityDuration: 3600}
	if other != "" {
		m.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{"ImpersonatedIdentity": structpb.NewStringValue(other)}}
	}
	answer, err := security.NewIstioCertificateServiceClient(c).CreateCertificate(bearer(t, token), m)
	if err != nil {
		return tls.Certificate{}, err
	}
	block, _ := pem.Decode([]byte(answer.CertChain[0]))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key, Leaf: leaf}, nil
}

// says compares an error with a code and words.
func says(err error, code codes.Code, words string) error {
	if status.Code(err) != code || err != nil && !strings.Contains(err.Error(), words) {
		return fmt.Errorf("got %v; wanted %v with %q", err, code, words)
	}
	return nil
}

// TestRegistrationAuthority: a control plane has another one sign for the callers that it knows;
// while that one is away, hangs, or doesn't know it, callers are told.
func TestRegistrationAuthority(t *testing.T) {
	signs := start(t, func(dir string) {
		text := strings.Replace(set, "keep: file,", "keep: file, rootsFile: root-cert.pem, external: {registrationAuthorities: ["+authority+"]},", 1)
		err := errors.Join(os.WriteFile(filepath.Join(dir, "plugins.yaml"), []byte(text), 0o600),
			os.WriteFile(filepath.Join(dir, "tokens.yaml"), []byte(tokens+"- {token: "+authorityToken+", identities: ["+authority+"]}\n"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	})
	root := filepath.Join(signs.dir, "root-cert.pem")
	var port *x509.CertPool
	var dir string
	external := func(tls, more string) string {
		return strings.Replace(set, "keep: file, file: state/ca.pem,", fmt.Sprintf(
			"external: {by: server, address: %q, roots: %q, tls: {ca: %q, serverName: istiod.istio-system.svc%s}%s},",
			signs.Secure, root, root, tls, more,
		), 1)
	}
	files := t.TempDir()
	port = portFiles(t, files)
	asks := start(t, func(of string) {
		dir = of
		err := errors.Join(os.WriteFile(filepath.Join(dir, "plugins.yaml"), []byte(external("", ", tokenFile: signer-token")), 0o600),
			os.WriteFile(filepath.Join(dir, "signer-token"), []byte(authorityToken+"\n"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}, "--tlsCertFile", filepath.Join(files, "port.pem"), "--tlsKeyFile", filepath.Join(files, "port-key.pem"), "--caCertFile", root)

	c := asks.dial(t, port)
	own, err := request(t, c, webToken, web, "")
	if err != nil {
		t.Fatal(err)
	}
	life := time.Until(own.Leaf.NotAfter)
	if _, err := own.Leaf.Verify(x509.VerifyOptions{
		Roots: signs.roots(t, "root-cert.pem"), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil || own.Leaf.URIs[0].String() != web || life > time.Hour || life < 55*time.Minute {
		t.Errorf("%v: %v for %v", err, own.Leaf.URIs, life)
	}
	if next, err := request(t, asks.dial(t, port, own), "", web, ""); err != nil || next.Leaf.URIs[0].String() != web {
		t.Errorf("with its certificate: %v", err)
	}

	const cart = "spiffe://cluster.local/ns/shop/sa/cart"
	direct := signs.dial(t, signs.roots(t, "root-cert.pem"))
	for name, x := range map[string]struct {
		conn               *grpc.ClientConn
		token, name, other string
		code               codes.Code
		words              string
	}{
		"another's name":                  {c, webToken, cart, "", codes.InvalidArgument, "which the caller hasn't"},
		"in another's name":               {c, webToken, cart, cart, codes.PermissionDenied, "registrationAuthorities"},
		"in another's name, of who signs": {direct, webToken, cart, cart, codes.PermissionDenied, "registrationAuthorities"},
		"an authority for another mesh": {
			direct, authorityToken, cart, "spiffe://other.example/ns/shop/sa/cart", codes.PermissionDenied,
			"other.example",
		},
		"an authority for no workload":          {direct, authorityToken, cart, "istiod", codes.PermissionDenied, "no workload"},
		"an authority for a workload":           {direct, authorityToken, cart, cart, codes.OK, ""},
		"another trust domain's caller":         {c, strangerToken, "spiffe://other.example/ns/shop/sa/web", "", codes.PermissionDenied, "other.example"},
		"who isn't known, in another's name":    {direct, "unknown-token-0123456789", cart, cart, codes.Unauthenticated, "unknown"},
		"who isn't known":                       {c, "unknown-token-0123456789", web, "", codes.Unauthenticated, "unknown"},
		"the authority's own, with no one else": {direct, authorityToken, authority, "", codes.OK, ""},
	} {
		if _, err := request(t, x.conn, x.token, x.name, x.other); says(err, x.code, x.words) != nil {
			t.Errorf("%s: %v", name, says(err, x.code, x.words))
		}
	}

	asks.put(t, "signer-token", "another-token-0123456789")
	if _, err := request(t, c, webToken, web, ""); says(err, codes.FailedPrecondition, "refuses this control plane") != nil ||
		strings.Contains(err.Error(), "another-token") {
		t.Errorf("with a token that isn't known: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "signer-token")); err != nil {
		t.Fatal(err)
	}
	if _, err := request(t, c, webToken, web, ""); says(err, codes.Unavailable, "external.tokenFile") != nil {
		t.Errorf("without a token: %v", err)
	}
	asks.put(t, "signer-token", authorityToken)

	if err := syscall.Kill(signs.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = request(t, c, webToken, web, "")
	if resumed := syscall.Kill(signs.PID(), syscall.SIGCONT); resumed != nil {
		t.Fatal(resumed)
	}
	if says(err, codes.Unavailable, "did not answer in time") != nil || time.Since(began) > 20*time.Second {
		t.Errorf("one that hangs: %v, after %v", err, time.Since(began))
	}
	wait.For(t, "it goes on", func() error { _, err := request(t, c, webToken, web, ""); return err })
	signs.Stop(t)
	if _, err := request(t, c, webToken, web, ""); says(err, codes.Unavailable, "external.address") != nil {
		t.Errorf("one that is away: %v", err)
	}
	signs.Plane = signs.Again(t)
	signs.Ready(t)
	wait.For(t, "it is back", func() error { _, err := request(t, c, webToken, web, ""); return err })

	mine, err := request(t, signs.dial(t, signs.roots(t, "root-cert.pem")), authorityToken, authority, "")
	if err != nil {
		t.Fatal(err)
	}
	writePair(t, dir, "client", mine.Certificate, mine.PrivateKey)
	asks.put(t, "plugins.yaml", external(", cert: client.pem, key: client-key.pem", ""))
	asks.Stop(t)
	asks.Plane = asks.Again(t)
	asks.Ready(t)
	if _, err := request(t, asks.dial(t, port), webToken, web, ""); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	asks.log(t, webToken, authorityToken)
	signs.log(t, authorityToken)
}
