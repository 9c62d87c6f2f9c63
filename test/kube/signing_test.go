package kube_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	security "istio.io/api/security/v1alpha1"

	"github.com/coxswain-mesh/coxswain/test/bench/usage"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

var (
	signing = flag.Duration("signing", time.Second, "how long certificates are asked for, in a round")
	rounds  = flag.Int("signing-rounds", 1, "how often the servers take turns")
)

// signer is a control plane that signs.
type signer struct {
	name, address string
	pid           int
}

// TestSigning: Coxswain and istiod sign certificates of callers with tokens of service accounts, in
// turns on one API server, with one CA; how many in a second, and what one costs, is logged (make
// bench-ca).
func TestSigning(t *testing.T) {
	need.All(t)
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace))
	secure := wait.Address(t)
	istiod := kube.StartIstiodWith(t, c, []string{"--secureGRPCAddr", secure}, "ENABLE_CA_SERVER=true", "PILOT_CERT_PROVIDER=istiod")
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(root(t, c, "shop", anything))) {
		t.Fatal("the root is no certificate")
	}
	plane := mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig)
	plane.Ready(t)
	c.Kubectl(t, "create", "serviceaccount", "web", "-n", "shop")
	token := strings.TrimSpace(c.Kubectl(t, "create", "token", "web", "-n", "shop", ofIstio))
	servers := []signer{{"coxswain", plane.Secure, plane.PID()}, {"istiod", secure, istiod.PID()}}
	keys := map[string]crypto.Signer{}
	var err error
	if keys["RSA 2048"], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if keys["P-256"], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	for range *rounds {
		for name, key := range keys {
			for _, s := range servers {
				n, cpu, took := s.sign(t, pool, token, key)
				t.Logf("%-8s  %-8s  %6.0f certificates a second  %5.2f ms of CPU each", s.name, name, float64(n)/took.Seconds(), 1000*cpu/float64(n))
			}
		}
		servers[0], servers[1] = servers[1], servers[0]
	}
}

// sign asks for certificates, eight at once, and returns how many came, and the CPU that the
// server's processes took, in seconds.
func (s signer) sign(t *testing.T, pool *x509.CertPool, token string, key crypto.Signer) (n int64, cpu float64, took time.Duration) {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	csr := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "istiod.istio-system.svc"})))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ask := func() error {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token, "clusterid", "Kubernetes")
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		answer, err := security.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx, &security.IstioCertificateRequest{Csr: csr})
		if err == nil && len(answer.CertChain) < 2 {
			err = fmt.Errorf("a chain of %d", len(answer.CertChain))
		}
		return err
	}
	wait.For(t, s.name+" signs", ask)
	var done atomic.Int64
	var failed atomic.Pointer[error]
	began, before := time.Now(), usage.CPU(s.pid)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for time.Since(began) < *signing && failed.Load() == nil {
				if err := ask(); err != nil {
					failed.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	callers.Wait()
	if err := failed.Load(); err != nil {
		t.Fatalf("%s: %v", s.name, *err)
	}
	return done.Load(), usage.CPU(s.pid) - before, time.Since(began)
}
