package identity

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// revokes is a revocation list of a CA, in PEM, that ends after so long.
func (s *signer) revokes(t *testing.T, number int64, ends time.Duration, serials ...*big.Int) string {
	t.Helper()
	l := &x509.RevocationList{Number: big.NewInt(number), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(ends)}
	for _, n := range serials {
		l.RevokedCertificateEntries = append(l.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: n, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, l, s.certificate, s.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
}

// subscribe asks for clusters as the workload, and returns how the stream begins.
func subscribe(t *testing.T, c *grpc.ClientConn, token string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(bearer(t, token), 10*time.Second)
	defer cancel()
	s, err := discovery.NewAggregatedDiscoveryServiceClient(c).StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	m, err := structpb.NewStruct(map[string]any{"NAMESPACE": "shop", "SERVICE_ACCOUNT": "web"})
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{Id: "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local", Metadata: m}
	if err := s.Send(&discovery.DiscoveryRequest{Node: node, TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"}); err != nil {
		return err
	}
	_, err = s.Recv()
	return err
}

// TestRevoked: a certificate that a revocation list names shows nobody any more, and neither does
// one below an intermediate that its root has revoked; a list that can't be read, is somebody
// else's, or has ended is said to be so and takes nothing back.
func TestRevoked(t *testing.T) {
	root := newRoot(t)
	first := below(t, root)
	w := start(t, func(dir string) { plug(t, dir, first) })
	roots := w.roots(t, "cacerts/root-cert.pem")
	with := func(own tls.Certificate) *grpc.ClientConn { return w.dial(t, roots, own) }
	bad, good := certified(t, w.dial(t, roots), webToken), certified(t, w.dial(t, roots), webToken)
	for _, own := range []tls.Certificate{bad, good} {
		if err := subscribe(t, with(own), ""); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(own tls.Certificate, words string) error {
		return says(subscribe(t, with(own), ""), codes.Unauthenticated, words)
	}
	number := fmt.Sprintf("%X", bad.Leaf.SerialNumber)
	lists := root.revokes(t, 1, time.Hour) + first.revokes(t, 1, time.Hour, bad.Leaf.SerialNumber)
	w.put(t, "cacerts/ca-crl.pem", lists)
	wait.For(t, "the certificate counts no more", func() error { return refused(bad, number) })
	if _, err := request(t, with(bad), "", web, ""); says(err, codes.Unauthenticated, "was revoked on") != nil {
		t.Errorf("it gets another: %v", err)
	}
	if err := subscribe(t, with(bad), webToken); err != nil {
		t.Errorf("with a token, too: %v", err)
	}
	if err := subscribe(t, with(good), ""); err != nil {
		t.Errorf("another certificate: %v", err)
	}

	other := newRoot(t)
	for name, c := range map[string]struct{ text, words string }{
		"nonsense":           {"nonsense", "list 1 is no certificate revocation list in PEM"},
		"a broken one":       {"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", "list 1 can't be read"},
		"somebody else's":    {root.revokes(t, 2, time.Hour) + other.revokes(t, 2, time.Hour), "list 2"},
		"one that has ended": {root.revokes(t, 2, time.Hour) + first.revokes(t, 2, -time.Minute), "a list has ended on"},
		"an empty file":      {"", "it has no list"},
		"a large one":        {strings.Repeat("-", 2<<20), "are taken"},
	} {
		w.put(t, "cacerts/ca-crl.pem", c.text)
		wait.For(t, name+" is said to be so", func() error {
			if !strings.Contains(w.Log(), c.words) {
				return errors.New(w.LastLines(3))
			}
			return nil
		})
		if err := refused(bad, "was revoked on"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := subscribe(t, with(good), ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		certified(t, with(good), "")
	}
	if !strings.Contains(w.Log(), "cacerts/ca-crl.pem: list 2") {
		t.Error("the log doesn't name the file")
	}

	if strings.Contains(w.Log(), "there is no list of") {
		t.Error("the log says that lists are missing")
	}
	w.put(t, "cacerts/ca-crl.pem", root.revokes(t, 3, time.Hour, first.certificate.SerialNumber))
	wait.For(t, "nothing of the intermediate counts", func() error { return refused(good, "it needs one of another authority") })
	if !strings.Contains(w.Log(), "there is no list of") {
		t.Error("the log doesn't say that the intermediate's list is missing")
	}
	second := below(t, root)
	plug(t, w.dir, second)
	w.put(t, "cacerts/ca-crl.pem", root.revokes(t, 4, time.Hour, first.certificate.SerialNumber))
	wait.For(t, "the next intermediate's certificates count", func() error {
		own, err := request(t, w.dial(t, roots), webToken, web, "")
		if err != nil {
			return err
		}
		if own.Leaf.Issuer.CommonName != second.certificate.Subject.CommonName {
			return fmt.Errorf("it is by %v", own.Leaf.Issuer)
		}
		return nil
	})
	next := certified(t, w.dial(t, roots), webToken)
	if err := subscribe(t, with(next), ""); err != nil {
		t.Error(err)
	}
	if err := refused(good, "it needs one of another authority"); err != nil {
		t.Error(err)
	}

	w.put(t, "cacerts/ca-crl.pem", second.revokes(t, 5, -time.Minute, next.Leaf.SerialNumber)) // from a start on it counts, although it has ended
	w.Stop(t)
	w.Plane = w.Again(t)
	w.Ready(t)
	if err := refused(next, "was revoked on"); err != nil {
		t.Error(err)
	}
	if !strings.Contains(w.Log(), "a list has ended on") {
		t.Error("the log doesn't say that it has ended")
	}
	if err := os.Remove(filepath.Join(w.dir, "cacerts/ca-crl.pem")); err != nil {
		t.Fatal(err)
	}
	wait.For(t, "without a list nothing is revoked", func() error { return subscribe(t, with(next), "") })
}
