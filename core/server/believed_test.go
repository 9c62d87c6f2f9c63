package server

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
)

// TestBelieved: an authority of another trust domain can't make workloads of the mesh, over real
// TLS.
func TestBelieved(t *testing.T) {
	own, ownKey := certificate(t, nil, nil, "")
	other, otherKey := certificate(t, nil, nil, "")
	stranger, strangerKey := certificate(t, nil, nil, "")
	b := newBelieved(func(uri string) (string, bool) {
		rest, ok := strings.CutPrefix(uri, "spiffe://")
		domain, _, _ := strings.Cut(rest, "/")
		return domain, ok
	})
	for _, a := range []Authorities{
		{Domain: "cluster.local", Local: true, Certificates: [][]byte{own.Raw}},
		{Domain: "other.example", Certificates: [][]byte{other.Raw}},
		{Domain: "cluster.local", Certificates: nil}, // several rows may be of one domain
	} {
		if err := b.add(a); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.add(Authorities{
		Domain: "broken.example", Certificates: [][]byte{{1}},
	}); err == nil || !strings.Contains(err.Error(), "trust domain broken.example") {
		t.Error(err)
	}
	leaf, leafKey := certificate(t, own, ownKey, "spiffe://cluster.local/ns/istio-system/sa/istiod")
	for _, c := range []struct {
		name, id string
		sign     func(id string) tls.Certificate
		refused  string
	}{
		{"the mesh's", "spiffe://cluster.local/ns/shop/sa/web", signed(t, own, ownKey), ""},
		{"of the same root, without a bundle", "spiffe://alias.example/ns/shop/sa/web", signed(t, own, ownKey), ""},
		{"the other domain's", "spiffe://other.example/ns/shop/sa/web", signed(t, other, otherKey), ""},
		{
			"the other domain's authority signs for the mesh", "spiffe://cluster.local/ns/shop/sa/web",
			signed(t, other, otherKey), "no authority of its trust domain",
		},
		{"and for a domain without a bundle", "spiffe://alias.example/ns/shop/sa/web", signed(t, other, otherKey), "no authority of its trust domain"},
		{
			"the mesh's authority signs for the other domain", "spiffe://other.example/ns/shop/sa/web",
			signed(t, own, ownKey), "no authority of its trust domain",
		},
		{"a stranger's", "spiffe://cluster.local/ns/shop/sa/web", signed(t, stranger, strangerKey), "unknown authority"},
		{"none", "", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := (&TLS{}).with([]tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: leafKey}}, b.pool)
			config.VerifyConnection = b.vouch
			ours, theirs := net.Pipe()
			roots := x509.NewCertPool()
			roots.AddCert(own)
			client := &tls.Config{RootCAs: roots, ServerName: "localhost", NextProtos: []string{"h2"}}
			if c.sign != nil {
				client.Certificates = []tls.Certificate{c.sign(c.id)}
			}
			go func() {
				conn := tls.Client(theirs, client)
				_ = conn.Handshake()
				_, _ = conn.Read(make([]byte, 1)) // the server's verdict
				_ = theirs.Close()
			}()
			err := tls.Server(ours, config).Handshake()
			_ = ours.Close()
			if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Error(err)
			}
		})
	}
}

// signed returns what makes certificates that an authority signs.
func signed(t *testing.T, ca *x509.Certificate, key *ecdsa.PrivateKey) func(id string) tls.Certificate {
	return func(id string) tls.Certificate {
		t.Helper()
		leaf, leafKey := certificate(t, ca, key, id)
		return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: leafKey}
	}
}
