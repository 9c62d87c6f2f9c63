package spiffe

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	mesh "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// authority returns a certificate that may sign, or one that may not.
func authority(t *testing.T, signs bool) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: signs, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func text(c *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

// document is a bundle as an endpoint publishes it.
func document(t *testing.T, certificates ...*x509.Certificate) string {
	t.Helper()
	out, err := spiffebundle.FromX509Authorities(spiffeid.RequireTrustDomainFromString("other.example"), certificates).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// endpoint is a server whose page can change; an empty one is an error.
type endpoint struct {
	*httptest.Server
	mu   sync.Mutex
	text string
}

func serve(t *testing.T, page string) *endpoint {
	e := &endpoint{text: page}
	e.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.text == "" {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(e.text))
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) page(page string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text = page
}

// roots is a file that an endpoint is trusted by.
func (e *endpoint) roots(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte(text(e.Certificate())), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// has reports whether a row is of a trust domain and has certificates.
func has(key, domain string, want ...*x509.Certificate) func(map[string]*sdk.Row) bool {
	return func(rows map[string]*sdk.Row) bool {
		if rows[key] == nil {
			return false
		}
		b, err := bundle.Parse(rows[key].Payload)
		var texts []string
		for _, c := range want {
			texts = append(texts, text(c))
		}
		slices.Sort(texts)
		slices.Sort(b.Certificates)
		return err == nil && b.TrustDomain == domain && !b.Local && slices.Equal(b.Certificates, texts)
	}
}

func failed(word string) func(sdk.Level, string, map[string]string) bool {
	return func(l sdk.Level, said string, fields map[string]string) bool {
		return l == sdk.Warn && strings.Contains(said+fields["error"], word)
	}
}

func TestBundlesAreFetchedAndRotated(t *testing.T) {
	first, second := authority(t, true), authority(t, true)
	e := serve(t, document(t, first))
	h := plugintest.Start(t, Plugin(), map[string]any{
		"caFile": e.roots(t), "refresh": "10ms", "retry": "5ms", "maxRetry": "10ms",
		"endpoints": []any{map[string]any{"trustDomain": "other.example", "url": e.URL}},
	})
	h.WaitSynced()
	key := "other.example/" + e.URL
	h.WaitRows(bundle.Table, has(key, "other.example", first))
	e.page(document(t, first, second))
	h.WaitRows(bundle.Table, has(key, "other.example", first, second))
	for page, word := range map[string]string{
		"": "503", "<html>": "no key set", `{"keys": []}`: "no X.509 authority",
		`{"keys": [{"kty": "x"}]}`:              "unable to parse JWKS",
		document(t, authority(t, false)):        "no authority's",
		document(t, second) + document(t):       "no key set",
		document(t, first, authority(t, false)): "no authority's",
	} {
		e.page(page)
		h.WaitLog(failed(word))
		if !has(key, "other.example", first, second)(h.Rows(bundle.Table)) {
			t.Errorf("%.40s: the last good one does not stay", page)
		}
	}
	e.page(document(t, second))
	h.WaitRows(bundle.Table, has(key, "other.example", second))
}

func settings(t *testing.T, m *mesh.MeshConfig) []*sdk.Row {
	t.Helper()
	payload, err := kinds.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return []*sdk.Row{{Key: state.Mesh, Payload: payload}}
}

func pemOf(c *x509.Certificate, domains ...string) *mesh.MeshConfig_CertificateData {
	return &mesh.MeshConfig_CertificateData{CertificateData: &mesh.MeshConfig_CertificateData_Pem{Pem: text(c)}, TrustDomains: domains}
}

func urlOf(url string, domains ...string) *mesh.MeshConfig_CertificateData {
	return &mesh.MeshConfig_CertificateData{CertificateData: &mesh.MeshConfig_CertificateData_SpiffeBundleUrl{SpiffeBundleUrl: url}, TrustDomains: domains}
}

func TestCertificatesOfTheMesh(t *testing.T) {
	own, foreign, fetched := authority(t, true), authority(t, true), authority(t, true)
	e := serve(t, document(t, fetched))
	h := plugintest.Start(t, Plugin(), map[string]any{"caFile": e.roots(t), "retry": "5ms", "maxRetry": "10ms"})
	signers := pemOf(foreign)
	signers.CertSigners = []string{"clusterissuers.cert-manager.io/x"}
	h.Update(state.Mesh, settings(t, &mesh.MeshConfig{
		TrustDomain: "here.example", TrustDomainAliases: []string{"before.example"},
		CaCertificates: []*mesh.MeshConfig_CertificateData{pemOf(own), pemOf(foreign, "a.example", "b.example"), urlOf(e.URL, "other.example"), signers},
	}))
	for key, ok := range map[string]func(map[string]*sdk.Row) bool{
		"own":     has("here.example/caCertificates[0]", "here.example", own),
		"alias":   has("before.example/caCertificates[0]", "before.example", own),
		"first":   has("a.example/caCertificates[1]", "a.example", foreign),
		"second":  has("b.example/caCertificates[1]", "b.example", foreign),
		"fetched": has("other.example/"+e.URL, "other.example", fetched),
	} {
		t.Log(key)
		h.WaitRows(bundle.Table, ok)
	}
	if n := len(h.Rows(bundle.Table)); n != 5 {
		t.Errorf("%d rows: what is for signers alone is no bundle", n)
	}
	// What can't be used is said, and keeps nobody else from being believed.
	h.Update(state.Mesh, settings(t, &mesh.MeshConfig{CaCertificates: []*mesh.MeshConfig_CertificateData{
		pemOf(authority(t, false), "a.example"), urlOf("http://plain.example", "b.example"), pemOf(own),
	}}))
	h.WaitRows(bundle.Table, func(rows map[string]*sdk.Row) bool {
		return len(rows) == 1 && has("cluster.local/caCertificates[2]", "cluster.local", own)(rows)
	})
	h.WaitLog(failed("caCertificates[0].pem of the mesh's settings: the certificate of"))
	h.WaitLog(failed(`caCertificates[1].spiffeBundleUrl of the mesh's settings: "http://plain.example" is no URL of HTTPS`))
	h.Update(state.Mesh, nil, state.Mesh)
	h.WaitRows(bundle.Table, func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
}

func TestConfig(t *testing.T) {
	for field, config := range map[string]string{
		"refresh": `{"refresh": "0s"}`, "maxBytes": `{"maxBytes": 0}`, "retyr": `{"retyr": "1s"}`, "caFile": `{"caFile": 1}`,
		"endpoints[0].url":         `{"endpoints": [{"trustDomain": "a.example", "url": "http://a.example"}]}`,
		"endpoints[1].trustDomain": `{"endpoints": [{"trustDomain": "a", "url": "https://a"}, {"trustDomain": "a b", "url": "https://a"}]}`,
	} {
		if got, reason := plugintest.Refusal(t, Plugin(), config); got != field {
			t.Errorf("%s: refused for %q: %s", config, got, reason)
		}
	}
}

func TestReadme(t *testing.T) {
	_, config := readme.Example(t, 1)
	plugintest.Start(t, Plugin(), config)
}
