package admin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// own is a certificate of 127.0.0.1, and of its own authority.
func own(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, pool
}

// TestTLS: one port speaks TLS and plain text, told apart by how a connection begins; it goes on
// while others say nothing, or something else, and closes with both.
func TestTLS(t *testing.T) {
	certificate, pool := own(t)
	at := make(chan net.Addr, 1)
	s, err := New(Config{Source: twin{}, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Version: "v1", MonitoringAddr: "127.0.0.1:0",
		TLS: func(context.Context) (*tls.Config, error) {
			return &tls.Config{Certificates: []tls.Certificate{certificate}}, nil
		},
		Listening: func(_ string, a net.Addr) { at <- a }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	if err := s.Open(ctx); err != nil {
		t.Fatal(err)
	}
	go func() { over <- s.Run(ctx) }()
	address := (<-at).String()
	for _, say := range []string{"", "\x16", "\x00\x01", "\x16\x03\x01\x00\x05hello"} { // silent ones, and one that is no TLS
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, say); err != nil {
			t.Fatal(err)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	for _, path := range []string{"s://" + address + "/ui/", "://" + address + "/ui/", "s://" + address + "/metrics", "://" + address + "/version"} {
		url := "http" + path
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", url, resp.StatusCode)
		}
	}
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", address); err == nil {
		_ = c.Close()
		t.Error("the port is open still")
	}
}

// TestPlainly: in plain text other machines get what everybody may see, and this one everything.
func TestPlainly(t *testing.T) {
	elsewhere := func(path string) *http.Request { return httptest.NewRequest(http.MethodGet, path, nil) }
	h := plainly(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, c := range []struct {
		r    *http.Request
		code int
	}{
		{elsewhere("/metrics"), 200}, {elsewhere("/ready"), 200}, {elsewhere("/version"), 200}, {here("/ui/"), 200},
		{elsewhere("/debug/streams"), 403}, {elsewhere("/ui/"), 403}, {elsewhere("/metrics/../ui/"), 403},
	} {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, c.r); w.Code != c.code || w.Code == 403 && !strings.Contains(w.Body.String(), "https") {
			t.Errorf("%s: %d %s", c.r.URL.Path, w.Code, w.Body)
		}
	}
}

// TestCertificates: from elsewhere a certificate that TLS has verified is shown to authenticators,
// as a token is; one that it has not verified counts for nothing.
func TestCertificates(t *testing.T) {
	var seen []Shown
	s, err := New(Config{Source: twin{}, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Naming: naming,
		Caller: func(_ context.Context, shown Shown) ([]string, error) {
			seen = append(seen, shown)
			return []string{"operators/" + shown.TLS.VerifiedChains[0][0].Subject.CommonName}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "ann"}}
	for _, c := range []struct {
		state *tls.ConnectionState
		code  int
	}{
		{nil, http.StatusUnauthorized}, {&tls.ConnectionState{}, http.StatusUnauthorized},
		{&tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}, http.StatusUnauthorized},
		{&tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}, http.StatusOK},
	} {
		r := httptest.NewRequest(http.MethodGet, "https://coxswain.example/debug/streams", nil)
		r.TLS = c.state
		w := httptest.NewRecorder()
		if s.Monitoring().ServeHTTP(w, r); w.Code != c.code {
			t.Errorf("%+v: %d %s", c.state, w.Code, w.Body)
		}
	}
	if len(seen) != 1 {
		t.Errorf("authenticators saw %d", len(seen))
	}
}
