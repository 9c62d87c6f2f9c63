package identity

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	security "istio.io/api/security/v1alpha1"

	"github.com/coxswain-mesh/coxswain/test/bench/usage"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// badLogin tries to get in, and says what is wrong with how that ended.
type badLogin func() error

// TestFloodOverTLS: 10,000 bad logins in a minute at the secure port, with wrong tokens at streams
// and at the CA, and with wrong certificates in TLS: each is refused with the right code, while
// others are served, and memory and processor time stay bounded.
func TestFloodOverTLS(t *testing.T) {
	need.All(t)
	const logins, length = 10_000, time.Minute
	was := binary
	binary = mesh.PlainProgram(t) // the race detector keeps some words beside each word of memory
	t.Cleanup(func() { binary = was })
	w := start(t, func(dir string) {
		w := &world{dir: dir}
		w.put(t, "tokens.yaml", tokens+"- {token: "+cartToken+", identities: [spiffe://cluster.local/ns/shop/sa/cart]}\n")
	})
	roots := w.roots(t, "state/ca.pem")
	bad := w.badLogins(t, roots)
	c := w.dial(t, roots)
	request := csr(t, newKey(t))
	good := func() error {
		_, err := security.NewIstioCertificateServiceClient(c).CreateCertificate(bearer(t, webToken), &security.IstioCertificateRequest{Csr: request})
		if err == nil {
			err = asks(t, c, "authorization", "Bearer "+webToken)
		}
		return err
	}
	wait.For(t, "a good caller is served", good)
	for _, login := range bad { // those who answer are awake
		if err := login(); err != nil {
			t.Fatal(err)
		}
	}
	stays, err := opened(t, c, "authorization", "Bearer "+webToken)
	if err != nil {
		t.Fatal(err)
	}
	memory, cpu, began, slowest, served := taken(w.PID()), usage.CPU(w.PID()), time.Now(), time.Duration(0), 0
	peak := memory

	var workers sync.WaitGroup
	work := make(chan badLogin)
	for range 16 {
		workers.Go(func() {
			for login := range work {
				if err := login(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for second := time.NewTicker(time.Second); ; {
			at := time.Now()
			if err := good(); err != nil {
				t.Errorf("a good caller, meanwhile: %v", err)
			}
			slowest, peak, served = max(slowest, time.Since(at)), max(peak, taken(w.PID())), served+1
			select {
			case <-second.C:
			case <-over:
				second.Stop()
				return
			}
		}
	}()
	for n := range logins {
		<-time.After(time.Until(began.Add(time.Duration(n) * length / logins))) // who is late catches up
		work <- bad[n%len(bad)]
	}
	close(work)
	workers.Wait()
	close(over)
	<-ended
	took, spent := time.Since(began), usage.CPU(w.PID())-cpu
	if err := more(stays); err != nil {
		t.Errorf("a stream that was open before: %v", err)
	}
	t.Logf("%d bad logins in %s (%.0f a minute); %.1f s of CPU, %.2f ms each; memory %d MB, %d at most; %d good callers, the slowest in %s",
		logins, took.Round(time.Second), logins/took.Minutes(), spent, 1000*spent/logins, int(memory), int(peak), served, slowest.Round(time.Millisecond))
	if peak > memory+64 {
		t.Errorf("memory grew from %.0f to %.0f MB", memory, peak)
	}
	if slowest > 5*time.Second {
		t.Errorf("a good caller waited for %s", slowest)
	}
	w.log(t, webToken, strangerToken, cartToken, unknownToken)
}

// taken is the memory of a process and of those that it started, in MB.
func taken(pid int) (sum float64) {
	for _, p := range usage.Tree(pid) {
		sum += usage.PSS(p)
	}
	return sum
}

const cartToken, unknownToken = "cart-token-0123456789", "unknown-token-0123456789"

// badLogins are wrong tokens over connections that are kept, and wrong certificates, each in a
// connection of its own.
func (w *world) badLogins(t *testing.T, roots *x509.CertPool) []badLogin {
	t.Helper()
	c := w.dial(t, roots)
	stream := func(code codes.Code, headers ...string) badLogin {
		return func() error { return refusedWith(asks(t, c, headers...), code) }
	}
	request := csr(t, newKey(t))
	signing := func(code codes.Code, headers ...string) badLogin {
		return func() error {
			ctx := metadata.AppendToOutgoingContext(bearer(t, ""), headers...)
			_, err := security.NewIstioCertificateServiceClient(c).CreateCertificate(ctx, &security.IstioCertificateRequest{Csr: request})
			return refusedWith(err, code)
		}
	}
	shows := func(own tls.Certificate) badLogin {
		return func() error { return w.refusedByTLS(roots, own) }
	}
	const header = "authorization"
	return []badLogin{
		stream(codes.Unauthenticated, header, "Bearer "+unknownToken),
		signing(codes.Unauthenticated, header, "Bearer "+unknownToken),
		shows(selfSigned(t, time.Now().Add(time.Hour))),
		stream(codes.Unauthenticated),
		stream(codes.PermissionDenied, header, "Bearer "+cartToken),
		stream(codes.PermissionDenied, header, "Bearer "+strangerToken),
		shows(selfSigned(t, time.Now().Add(-time.Hour))),
		signing(codes.PermissionDenied, header, "Bearer "+strangerToken),
		stream(codes.Unauthenticated, header, "Bearer "+strings.Repeat("x", 16<<10)),
		stream(codes.Unauthenticated, header, "Bearer "+webToken, header, "Bearer "+webToken),
	}
}

// refusedByTLS reports how a connection with a certificate ends, if not by TLS.
func (w *world) refusedByTLS(roots *x509.CertPool, own tls.Certificate) error {
	c, err := tls.Dial("tcp", w.Secure, &tls.Config{
		RootCAs: roots, ServerName: "istiod.istio-system.svc", NextProtos: []string{"h2"},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil },
	})
	if err != nil {
		return fmt.Errorf("it can't connect: %w", err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1)) // of TLS 1.3 the server's word comes after the handshake
	var alert *net.OpError
	if !errors.Is(err, syscall.ECONNRESET) && !(errors.As(err, &alert) && alert.Op == "remote error") {
		return fmt.Errorf("a wrong certificate is not refused by TLS: %w", err)
	}
	return nil
}

// selfSigned is a certificate of web's that nobody here has signed.
func selfSigned(t *testing.T, end time.Time) tls.Certificate {
	t.Helper()
	id, err := url.Parse(web)
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"cluster.local"}},
		URIs: []*url.URL{id}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func refusedWith(err error, code codes.Code) error {
	if status.Code(err) != code {
		return fmt.Errorf("a bad login ends with %w; wanted %v", err, code)
	}
	return nil
}

// opened is a stream of web's proxy that asks for clusters.
func opened(t *testing.T, c *grpc.ClientConn, headers ...string) (discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient, error) {
	t.Helper()
	s, err := discovery.NewAggregatedDiscoveryServiceClient(c).StreamAggregatedResources(metadata.AppendToOutgoingContext(t.Context(), headers...))
	if err != nil {
		return nil, err
	}
	m, err := structpb.NewStruct(map[string]any{"NAMESPACE": "shop", "SERVICE_ACCOUNT": "web"})
	if err != nil {
		return nil, err
	}
	node := &corev3.Node{Id: "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local", Metadata: m}
	_ = s.Send(&discovery.DiscoveryRequest{Node: node, TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"}) // Recv says why
	return s, nil
}

// asks opens a stream, and reports how its first request ends.
func asks(t *testing.T, c *grpc.ClientConn, headers ...string) error {
	t.Helper()
	s, err := opened(t, c, headers...)
	if err != nil {
		return err
	}
	_, err = s.Recv()
	_ = s.CloseSend()
	return err
}

// more reads what an open stream was answered, and asks it for listeners.
func more(s discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient) error {
	if _, err := s.Recv(); err != nil {
		return err
	}
	const listeners = "type.googleapis.com/envoy.config.listener.v3.Listener"
	if err := s.Send(&discovery.DiscoveryRequest{TypeUrl: listeners}); err != nil {
		return err
	}
	m, err := s.Recv()
	if err == nil && m.TypeUrl != listeners {
		err = fmt.Errorf("it is answered %s", m.TypeUrl)
	}
	return err
}
