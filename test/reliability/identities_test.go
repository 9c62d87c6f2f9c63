package reliability

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	security "istio.io/api/security/v1alpha1"
)

const (
	identityPromise = "it costs that identity; edits of others arrive"
	sds             = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

// identityTrials are what a workload with an identity of its own, and no rights, asks for.
func identityTrials() []trial {
	return []trial{
		{name: "800 names of secrets of 3.9 KB", promise: identityPromise, secure: true, set: sdsSet, do: func(w *world) {
			w.secrets(800, func(i int) string { return fmt.Sprintf("kubernetes://y%d%s", i, strings.Repeat("y", 3900)) })
		}},
		{name: "9,900 names of secrets", promise: identityPromise, secure: true, set: sdsSet, do: func(w *world) {
			w.secrets(9900, func(i int) string { return fmt.Sprintf("kubernetes://y%d", i) })
		}},
		{name: "9,900 names of ConfigMaps", promise: identityPromise, secure: true, set: sdsSet, do: func(w *world) {
			w.secrets(9900, func(i int) string { return fmt.Sprintf("configmap://demo/x%d", i) })
		}},
		{
			name: "200 requests for keys of 8,192 bits", promise: "another's certificate is signed meanwhile", secure: true,
			set: caSet, do: func(w *world) { largeKeys(w, 8192) },
		},
		{
			name: "200 requests for keys of 40,000 bits", promise: "another's certificate is signed meanwhile", secure: true,
			set: caSet, do: func(w *world) { largeKeys(w, 40_000) },
		},
	}
}

func caSet(*world) string {
	return "- {name: ca, kind: controller, builtin: controller/ca, config: {keep: memory}}\n"
}

func sdsSet(*world) string {
	return "- {name: sds, kind: generator, builtin: generator/sds, config: {kubernetes: true}}\n"
}

// as is a connection to the port with TLS of a workload with an identity, closed with the test.
func (w *world) as(namespace, account string) *grpc.ClientConn {
	w.t.Helper()
	dir, err := os.MkdirTemp(w.root, "identity")
	if err != nil {
		w.t.Fatal(err)
	}
	w.authority.Issue(w.t, dir, "spiffe://cluster.local/ns/"+namespace+"/sa/"+account)
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert-chain.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		w.t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///"+w.secure, grpc.WithContextDialer(dialer(stranger)),
		grpc.WithTransportCredentials(
			//nolint:gosec // the server's certificate has no name of an address
			credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}, InsecureSkipVerify: true})))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// secrets has a workload without rights ask for many, on one stream, again whenever that ends.
func (w *world) secrets(n int, name func(i int) string) {
	names := make([]string, n)
	for i := range names {
		names[i] = name(i)
	}
	ads := discoveryv3.NewAggregatedDiscoveryServiceClient(w.as("evil", "nobody"))
	request := &discoveryv3.DiscoveryRequest{Node: newNode(stranger, "nobody", "evil"), TypeUrl: sds, ResourceNames: names}
	began := w.restarts()["sds"]
	w.under(func(ctx context.Context, ready func()) {
		insist(ctx, func(ctx context.Context) {
			s, err := ads.StreamAggregatedResources(ctx)
			_ = hold(s, err, []*discoveryv3.DiscoveryRequest{request}, ready)
		})
	})
	w.note("generator/sds was restarted %d times", w.restarts()["sds"]-began)
}

// largeKeys has a workload ask for certificates of keys that take long to verify with, 200 at once,
// and measures how long another one waits for its own.
func largeKeys(w *world, bits int) {
	good := security.NewIstioCertificateServiceClient(w.as("demo", "web"))
	evil := security.NewIstioCertificateServiceClient(w.as("evil", "nobody"))
	forged, own := string(forged(w, bits)), string(request(w))
	sign := func() (time.Duration, bool) {
		ctx, cancel := context.WithTimeout(w.t.Context(), w.patience())
		defer cancel()
		began := time.Now()
		_, err := good.CreateCertificate(ctx, &security.IstioCertificateRequest{Csr: own, ValidityDuration: 3600},
			grpc.WaitForReady(true))
		if err != nil {
			w.t.Logf("another's certificate: %v", err)
		}
		return time.Since(began), err == nil
	}
	w.eventually("a certificate is signed in calm", func() error {
		if _, ok := sign(); !ok {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	w.measured(sign, func() {
		go func() {
			defer close(ended)
			many(200, func(int) {
				insist(ctx, func(ctx context.Context) {
					ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
					defer cancel()
					_, _ = evil.CreateCertificate(ctx, &security.IstioCertificateRequest{Csr: forged}, grpc.WaitForReady(true))
				})
			})
		}()
	})
	cancel()
	<-ended
}

// request is one for a certificate, in PEM.
func request(w *world) []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		w.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// forged is one of an RSA key of so many bits that nobody has, with a signature that was never
// made.
func forged(w *world, bits int) []byte {
	n := new(big.Int).Add(new(big.Int).SetBit(new(big.Int), bits-1, 1), big.NewInt(1))
	public, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n, E: 65537})
	if err != nil {
		w.t.Fatal(err)
	}
	raw := func(b []byte) asn1.RawValue { return asn1.RawValue{FullBytes: b} }
	info, err := asn1.Marshal(struct {
		Version                  int
		Subject, Key, Attributes asn1.RawValue
	}{0, raw([]byte{0x30, 0}), raw(public), raw([]byte{0xa0, 0})})
	if err != nil {
		w.t.Fatal(err)
	}
	sha256WithRSA := []byte{0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b, 0x05, 0x00}
	// Source: RFC 2986, section 4.2.
	der, err := asn1.Marshal(struct {
		Info, Algorithm asn1.RawValue
		Signature       asn1.BitString
	}{raw(info), raw(sha256WithRSA), asn1.BitString{Bytes: make([]byte, bits/8), BitLength: bits}})
	if err != nil {
		w.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}
