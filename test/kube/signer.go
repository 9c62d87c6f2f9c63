package kube

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Signer signs CertificateSigningRequests of a domain, as a signer's controller does that isn't of
// Kubernetes itself: each name of the domain is a root of its own.
type Signer struct {
	// Does is what it does with requests: empty, it signs; "hangs", "fails", "denies", or "cheats":
	// it signs for somebody else.
	Does atomic.Pointer[string]

	domain string
	client kubernetes.Interface
	roots  map[string]*root509
	// Asked counts requests.
	Asked atomic.Int64
}

type root509 struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Signers starts one of a domain with the names, until the test ends.
func (c *Cluster) Signers(t testing.TB, domain string, names ...string) *Signer {
	t.Helper()
	s := &Signer{domain: domain, client: c.Client(t), roots: map[string]*root509{}}
	s.Do("")
	for i, name := range names {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: "root of " + name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		s.roots[name] = &root509{c, key}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			s.run(ctx, t)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	return s
}

// Do changes what it does.
func (s *Signer) Do(what string) { s.Does.Store(&what) }

// Root is that of a name, in PEM.
func (s *Signer) Root(name string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.roots[name].certificate.Raw}))
}

// run follows requests until the watch ends.
func (s *Signer) run(ctx context.Context, t testing.TB) {
	requests := s.client.CertificatesV1().CertificateSigningRequests()
	changes, err := requests.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	defer changes.Stop()
	for e := range changes.ResultChan() {
		r, ok := e.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok {
			return
		}
		name, found := strings.CutPrefix(r.Spec.SignerName, s.domain+"/")
		if !found || e.Type == "DELETED" || len(r.Status.Certificate) > 0 {
			continue
		}
		approved := len(r.Status.Conditions) == 1 && r.Status.Conditions[0].Type == certificatesv1.CertificateApproved
		does := *s.Does.Load()
		switch {
		case does == "denies" && len(r.Status.Conditions) == 0:
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "Policy", Message: "not on a Wednesday"},
			}
			_, err = requests.UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{})
		case !approved || does == "hangs" || does == "denies":
			continue
		case does == "fails":
			r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "NoKey",
				Message: "the key is gone",
			})
			_, err = requests.UpdateStatus(ctx, r, metav1.UpdateOptions{})
		default:
			s.Asked.Add(1)
			if r.Status.Certificate, err = s.sign(s.roots[name], r, does == "cheats"); err == nil {
				_, err = requests.UpdateStatus(ctx, r, metav1.UpdateOptions{})
			}
		}
		if err != nil && ctx.Err() == nil { // somebody was faster, or the API server is away
			t.Logf("the signer: %v", err)
		}
	}
}

func (s *Signer) sign(by *root509, r *certificatesv1.CertificateSigningRequest, cheat bool) ([]byte, error) {
	block, _ := pem.Decode(r.Spec.Request)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(time.Duration(*r.Spec.ExpirationSeconds) * time.Second), URIs: csr.URIs,
		DNSNames:    csr.DNSNames,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if cheat {
		template.DNSNames = append(template.DNSNames, "istiod.istio-system.svc", "more.example")
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, csr.PublicKey, by.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
