package move

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// TestMovePlugged: the same with a CA that is plugged in, as Istio's documentation has it: a root
// and an intermediate in the Secret cacerts. Both sign with it, pods of both speak mutual TLS, each
// namespace has its root, and nobody writes the Secret.
// Source: Istio, "Plug in CA Certificates".
func TestMovePlugged(t *testing.T) {
	need.All(t)
	w := newWorld(t)
	files := plugged(t)
	w.plug = func(t *testing.T) {
		t.Helper()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(w.dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w.run(t, `kubectl create secret generic cacerts --namespace istio-system --from-file=ca-cert.pem \
  --from-file=ca-key.pem --from-file=root-cert.pem --from-file=cert-chain.pem`)
	}
	w.move(t)
	secrets := w.cluster.Client(t).CoreV1().Secrets("istio-system")
	is, err := secrets.Get(t.Context(), "cacerts", metav1.GetOptions{})
	if err != nil || !maps.EqualFunc(is.Data, files, func(a, b []byte) bool { return string(a) == string(b) }) {
		t.Errorf("cacerts is not as it was: %v", err)
	}
	if own, err := secrets.Get(t.Context(), "istio-ca-secret", metav1.GetOptions{}); err == nil {
		t.Errorf("there is a CA beside it, of %v", own.CreationTimestamp)
	}
	for _, n := range append([]string{"istio-system"}, moved...) {
		root, err := w.cluster.Client(t).CoreV1().ConfigMaps(n).Get(t.Context(), "istio-ca-root-cert", metav1.GetOptions{})
		if err != nil || root.Data["root-cert.pem"] != string(files["root-cert.pem"]) {
			t.Errorf("the root of %s is not the one that is plugged in: %v", n, err)
		}
	}
}

// plugged is a root's certificate, and an intermediate CA below it.
func plugged(t *testing.T) map[string][]byte {
	t.Helper()
	root, rootKey := ca(t, "root", nil, nil)
	below, key := ca(t, "intermediate", root, rootKey)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encoded := func(kind string, b []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}) }
	own, above := encoded("CERTIFICATE", below.Raw), encoded("CERTIFICATE", root.Raw)
	return map[string][]byte{
		"ca-cert.pem": own, "ca-key.pem": encoded("PRIVATE KEY", der), "root-cert.pem": above,
		"cert-chain.pem": append(append([]byte{}, own...), above...),
	}
}

// ca is a CA's certificate, by another or by itself.
func ca(t *testing.T, name string, by *x509.Certificate, with *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{Organization: []string{"Example"},
			CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	if by == nil {
		by, with = of, key
	}
	der, err := x509.CreateCertificate(rand.Reader, of, by, key.Public(), with)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}
