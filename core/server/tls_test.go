package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// files are a directory with what the secure port reads.
type files struct {
	t   *testing.T
	dir string
}

func (f files) tls() TLS {
	return TLS{CertFile: filepath.Join(f.dir, "tls.crt"), KeyFile: filepath.Join(f.dir, "tls.key"), CAFile: filepath.Join(f.dir, "ca.crt")}
}

func (f files) write(name, kind string, der []byte) {
	f.t.Helper()
	// As a mounted secret changes: at once.
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		f.t.Fatal(err)
	}
}

func (f files) writeKey(key *ecdsa.PrivateKey) {
	f.t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write("tls.key", "EC PRIVATE KEY", der)
}

// TestSecurePort: clients with a certificate of the authority are known by it, clients without are
// let in to show something else, those of another authority are not let in; new files are taken up,
// broken ones are not.
func TestSecurePort(t *testing.T) {
	ca, caKey := certificate(t, nil, nil, "")
	leaf, key := certificate(t, ca, caKey, webID)
	f := files{t, t.TempDir()}
	f.write("ca.crt", "CERTIFICATE", ca.Raw)
	f.write("tls.crt", "CERTIFICATE", leaf.Raw)
	f.writeKey(key)
	config := f.tls()
	config.MinVersion = tls.VersionTLS13
	if err := config.check(); err != nil {
		t.Fatal(err)
	}
	creds, stop, err := config.secure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c := authenticating(t, func(_ context.Context, c sdk.Credentials) ([]string, error) {
		if len(c.Certificates) == 0 {
			return []string{"spiffe://token/ns/shop/sa/web"}, nil
		}
		shown, err := x509.ParseCertificate(c.Certificates[0])
		if err != nil {
			return nil, err
		}
		return []string{shown.URIs[0].String()}, nil
	})
	open := listen(t, &identify{control: c, naming: anybody}, creds)
	trust := func(ca *x509.Certificate) *x509.CertPool {
		pool := x509.NewCertPool()
		pool.AddCert(ca)
		return pool
	}
	as := func(c *x509.Certificate, key *ecdsa.PrivateKey) []tls.Certificate {
		return []tls.Certificate{{Certificate: [][]byte{c.Raw}, PrivateKey: key}}
	}
	if ids, err := open(credentials.NewTLS(&tls.Config{
		RootCAs: trust(ca), ServerName: "localhost", Certificates: as(leaf, key),
	})); !slices.Equal(ids, []string{webID}) {
		t.Error("with a certificate:", ids, err)
	}
	if ids, err := open(credentials.NewTLS(&tls.Config{
		RootCAs: trust(ca), ServerName: "localhost",
	})); !slices.Equal(ids, []string{"spiffe://token/ns/shop/sa/web"}) {
		t.Error("without:", ids, err)
	}
	other, otherKey := certificate(t, nil, nil, "")
	stranger, strangerKey := certificate(t, other, otherKey, webID)
	refuses := func(name string, client *tls.Config) {
		t.Helper()
		if ids, err := open(credentials.NewTLS(client)); len(ids) > 0 || status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v, %v", name, ids, err)
		}
	}
	refuses("another authority's", &tls.Config{RootCAs: trust(ca), ServerName: "localhost", Certificates: as(stranger, strangerKey)})
	refuses("an old version", &tls.Config{RootCAs: trust(ca), ServerName: "localhost", MaxVersion: tls.VersionTLS12})

	// The port moves to the other authority; a broken file on the way changes nothing.
	f.write("ca.crt", "NONSENSE", nil)
	f.write("ca.crt", "CERTIFICATE", other.Raw)
	f.writeKey(strangerKey)
	f.write("tls.crt", "CERTIFICATE", stranger.Raw)
	moved := &tls.Config{RootCAs: trust(other), ServerName: "localhost", Certificates: as(stranger, strangerKey)}
	for end := time.Now().Add(30 * time.Second); ; {
		ids, err := open(credentials.NewTLS(moved))
		if slices.Equal(ids, []string{webID}) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("new files are not taken up: ", err)
		}
	}
}

func TestSecurePortNeedsFiles(t *testing.T) {
	ca, caKey := certificate(t, nil, nil, "")
	leaf, key := certificate(t, ca, caKey, webID)
	f := files{t, t.TempDir()}
	for _, c := range []struct {
		write func()
		want  string
	}{
		{func() {}, "tlsCertFile"},
		{func() { f.write("tls.crt", "CERTIFICATE", leaf.Raw); f.writeKey(caKey) }, "private key does not match"},
		{func() { f.writeKey(key) }, "caCertFile"},
		{func() { f.write("ca.crt", "CERTIFICATE", ca.Raw) }, ""},
	} {
		c.write()
		config := f.tls()
		if err := config.check(); (err == nil) != (c.want == "") || !strings.Contains(errorText(err), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
