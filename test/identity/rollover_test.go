package identity

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestRollOver: a CA that signs itself makes its next root, twice, while callers come all the time
// who believe the first one alone: each is let in and gets a certificate that leads to it, too, the
// secure port's own certificate is another, and a stream that was open stays so.
func TestRollOver(t *testing.T) {
	need.All(t)
	w := start(t, func(dir string) {
		text := strings.Replace(set, "keep: file,", "keep: file, rootsFile: root-cert.pem, root: {ttl: 10m, grace: 83, check: 1s},", 1)
		if err := os.WriteFile(filepath.Join(dir, "plugins.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	wait.For(t, "the root is there", func() error { return count(w, 1) })
	first := w.roots(t, "root-cert.pem")
	conn := w.dial(t, first)
	stream, err := opened(t, conn, "authorization", "Bearer "+webToken)
	if err != nil {
		t.Fatal(err)
	}
	before := portSerial(t, w, first)
	asked := 0
	wait.For(t, "the CA has made two more roots", func() error {
		asked++
		by := w.dial(t, first)
		own := certified(t, by, webToken)
		_ = by.Close()
		if _, err := own.Leaf.Verify(x509.VerifyOptions{Roots: first, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Fatalf("the certificate of caller %d doesn't lead to the first root: %v", asked, err)
		}
		by = w.dial(t, first, own)
		certified(t, by, "")
		_ = by.Close()
		return count(w, 3)
	})
	if now := portSerial(t, w, first); now == before {
		t.Error("the secure port has the same certificate as before")
	}
	if err := more(stream); err != nil {
		t.Errorf("the stream that was open: %v", err)
	}
	t.Logf("%d callers, none refused", 2*asked)
}

// count reports whether the CA has so many roots, or more.
func count(w *world, roots int) error {
	text, err := os.ReadFile(filepath.Join(w.dir, "root-cert.pem"))
	if n := strings.Count(string(text), "BEGIN CERTIFICATE"); err == nil && n < roots {
		err = fmt.Errorf("there are %d", n)
	}
	return err
}

// portSerial is the number of the secure port's certificate.
func portSerial(t *testing.T, w *world, roots *x509.CertPool) string {
	t.Helper()
	c, err := tls.Dial("tcp", w.Secure, &tls.Config{RootCAs: roots, ServerName: "istiod.istio-system.svc", NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
}
