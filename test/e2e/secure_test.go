package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const secureSet = `
plugins:
- name: certificates
  kind: authenticator
  builtin: authenticator/certificate
- name: edge
  kind: generator
  builtin: generator/static
  config: {dir: resources}
`

// authority signs certificates, and keeps them as files in PEM.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.key = a.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue signs a certificate for a template, and writes NAME.crt and NAME.key.
func (a *authority) issue(name string, c *x509.Certificate) *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.Subject = pkix.Name{CommonName: name}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			a.t.Fatal(err)
		}
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	place(a.t, a.file(name+".crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	place(a.t, a.file(name+".key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
	return key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// TestSecurePort: an Envoy with a certificate is served over mutual TLS what it may see; one that
// says it is somebody else is not.
func TestSecurePort(t *testing.T) {
	a := newAuthority(t)
	a.issue("server", &x509.Certificate{DNSNames: []string{"coxswain.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	web, err := url.Parse(webID)
	if err != nil {
		t.Fatal(err)
	}
	a.issue("web", &x509.Certificate{URIs: []*url.URL{web}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "resources"), 0o700); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(dir, "resources", "all.yaml"), tokenResources)
	place(t, filepath.Join(dir, "plugins.yaml"), secureSet)
	address := wait.Address(t)
	plane := mesh.Start(t, program, "", "--plugins", filepath.Join(dir, "plugins.yaml"), "--secureGRPCAddr", address,
		"--tlsCertFile", a.file("server.crt"), "--tlsKeyFile", a.file("server.key"), "--caCertFile", a.file("ca.crt"), "--tls-min-version", "1.3")
	plane.Ready(t)

	proxy := func(name, namespace string) *envoy.Envoy {
		admin := wait.Address(t)
		return envoy.Start(t, name, admin, plane.Bootstrap(t, "--name", name, "--namespace", namespace, "--metadata", "SERVICE_ACCOUNT=web",
			"--admin", admin, "--xds", address, "--xdsName", "coxswain.test", "--xdsCA", a.file("ca.crt"),
			"--xdsCert", a.file("web.crt"), "--xdsKey", a.file("web.key")))
	}
	known, liar := proxy("web", "shop"), proxy("liar", "ops")
	known.Ready(t)
	if n := known.Stats(t)["cluster_manager.active_clusters"]; n != 2 {
		t.Errorf("the known proxy has %d clusters", n)
	}
	wait.For(t, "the other one is refused", func() error {
		if !strings.Contains(plane.Log(), `the node says that it is of namespace \"ops\"`) {
			return errors.New("the log does not say so")
		}
		return nil
	})
	if n := liar.Stats(t)["cluster_manager.active_clusters"]; n != 1 {
		t.Errorf("the other one has %d clusters", n)
	}
}
