package beside

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	security "istio.io/api/security/v1alpha1"
)

const (
	clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	secrets  = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	// patience is how long an answer may take.
	patience = 20 * time.Second
)

// server is a control plane.
type server struct {
	name string
	// plain and secure are its ports.
	plain, secure string
	roots         *x509.CertPool
	// silent: it says nothing of what there isn't, and answers the requests of a stream in their
	// order.
	silent bool
}

// caller is who asks, and what it shows.
type caller struct {
	plain       bool
	certificate *tls.Certificate
	// headers are names and values, in turn.
	headers []string
	// node is the proxy that it says it is: a part of its id (its name and namespace), and
	// metadata.
	node     string
	metadata map[string]any
}

// bearer shows a token.
func bearer(token string, headers ...string) caller {
	return caller{headers: append([]string{"authorization", "Bearer " + token}, headers...)}
}

// shows shows a certificate in TLS.
func shows(c tls.Certificate, headers ...string) caller {
	return caller{certificate: &c, headers: headers}
}

// inPlain asks in plain text.
func (c caller) inPlain() caller {
	c.plain = true
	return c
}

// as says that it is a proxy of an account, NAMESPACE/ACCOUNT, with more metadata: names and
// values, in turn.
func (c caller) as(account string, more ...string) caller {
	namespace, name, _ := strings.Cut(account, "/")
	c.node, c.metadata = "one."+namespace, map[string]any{"NAMESPACE": namespace, "SERVICE_ACCOUNT": name, "CLUSTER_ID": "Kubernetes"}
	for i := 0; i < len(more); i += 2 {
		c.metadata[more[i]] = more[i+1]
		if more[i+1] == "" {
			delete(c.metadata, more[i])
		}
	}
	return c
}

// dial connects to a server.
func (s *server) dial(t *testing.T, c caller) (*grpc.ClientConn, context.Context) {
	t.Helper()
	address, how := s.secure, credentials.NewTLS(s.tls(c))
	if c.plain {
		address, how = s.plain, insecure.NewCredentials()
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(how))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(func() { cancel(); _ = conn.Close() })
	return conn, metadata.AppendToOutgoingContext(ctx, c.headers...)
}

func (s *server) tls(c caller) *tls.Config {
	config := &tls.Config{RootCAs: s.roots, ServerName: "istiod.istio-system.svc"}
	if c.certificate != nil {
		// whichever authorities the server names
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.certificate, nil }
	}
	return config
}

// proxy is the node that a caller says it is.
func (c caller) proxy(t *testing.T) *corev3.Node {
	t.Helper()
	if c.metadata == nil {
		c = c.as("shop/web")
	}
	m, err := structpb.NewStruct(c.metadata)
	if err != nil {
		t.Fatal(err)
	}
	_, namespace, _ := strings.Cut(c.node, ".")
	return &corev3.Node{Id: "sidecar~10.0.0.1~" + c.node + "~" + namespace + ".svc.cluster.local", Metadata: m}
}

// byTLS is how a connection ends whose certificate the server doesn't take.
const byTLS = "TLS refuses"

// came says how something ended: by the code, or by TLS. The connection of a client of TLS 1.3 may
// be closed before it reads why.
func came(err error) string {
	code := status.Code(err)
	if code == codes.Unavailable {
		for _, words := range []string{"tls: ", "connection reset", "EOF", "broken pipe"} {
			if strings.Contains(err.Error(), words) {
				return byTLS
			}
		}
	}
	return code.String()
}

// comes asks for clusters.
func (s *server) comes(t *testing.T, c caller) string {
	t.Helper()
	return s.asks(t, c, clusters)
}

// asks asks for all of a type, or for names.
func (s *server) asks(t *testing.T, c caller, typeURL string, names ...string) string {
	t.Helper()
	conn, ctx := s.dial(t, c)
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return came(err)
	}
	if err := stream.Send(&discovery.DiscoveryRequest{Node: c.proxy(t), TypeUrl: typeURL, ResourceNames: names}); err == nil {
		_, err = stream.Recv()
		return came(err)
	}
	_, err = stream.Recv()
	return came(err)
}

// secret asks for one secret and describes it.
func (s *server) secret(t *testing.T, c caller, name string) string {
	t.Helper()
	conn, ctx := s.dial(t, c)
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return came(err)
	}
	requests := []*discovery.DeltaDiscoveryRequest{{Node: c.proxy(t), TypeUrl: secrets, ResourceNamesSubscribe: []string{name}}}
	if s.silent || c.plain { // what nobody may ask for in plain text is passed over at once
		requests = append(requests, &discovery.DeltaDiscoveryRequest{TypeUrl: clusters})
	}
	for _, r := range requests {
		if err := stream.Send(r); err != nil {
			break // Recv says why
		}
	}
	for {
		m, err := stream.Recv()
		switch {
		case err != nil:
			return came(err)
		case m.TypeUrl == clusters, slices.Contains(m.RemovedResources, name):
			return "none"
		}
		for _, r := range m.Resources {
			if r.Name == name {
				return describe(t, r)
			}
		}
	}
}

// describe says what a secret has.
func describe(t *testing.T, r *discovery.Resource) string {
	t.Helper()
	var s tlsv3.Secret
	if err := r.Resource.UnmarshalTo(&s); err != nil {
		t.Fatal(err)
	}
	if c := s.GetTlsCertificate(); c != nil {
		text := "certificate of " + names(c.CertificateChain.GetInlineBytes())
		if _, err := tls.X509KeyPair(c.CertificateChain.GetInlineBytes(), c.PrivateKey.GetInlineBytes()); err == nil {
			text += " with its key"
		}
		if staple := c.OcspStaple.GetInlineBytes(); len(staple) > 0 {
			text += ", stapled"
		}
		return text
	}
	text := "trust in " + names(s.GetValidationContext().GetTrustedCa().GetInlineBytes())
	if crl := s.GetValidationContext().GetCrl().GetInlineBytes(); len(crl) > 0 {
		text += " but for revoked ones"
	}
	return text
}

// names are those of certificates in PEM.
func names(text []byte) string {
	var all []string
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "what can't be read"
		}
		all = append(all, c.Subject.CommonName)
	}
	return strings.Join(all, " and ")
}

// signing is a request for a certificate.
type signing struct {
	seconds  int64
	names    *x509.CertificateRequest
	key      crypto.Signer
	metadata map[string]any
	csr      string
}

// certifies asks for a certificate, and says what it is like.
func (s *server) certifies(t *testing.T, c caller, of signing) string {
	t.Helper()
	leaf, chain, err := s.signs(t, c, of)
	if err != nil {
		return came(err)
	}
	between := x509.NewCertPool()
	for _, text := range chain[1 : len(chain)-1] {
		between.AppendCertsFromPEM([]byte(text))
	}
	trust := "trusted"
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots: s.roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		trust = "not trusted"
	}
	if s.roots.Equal(poolOf([]byte(chain[len(chain)-1]))) {
		trust += ", the last is the root"
	}
	return fmt.Sprintf("%v %v for %v, %s, %d in the chain", leaf.URIs, leaf.DNSNames, time.Until(leaf.NotAfter).Round(time.Minute), trust, len(chain))
}

// signs asks for a certificate.
func (s *server) signs(t *testing.T, c caller, of signing) (leaf *x509.Certificate, chain []string, err error) {
	t.Helper()
	conn, ctx := s.dial(t, c)
	if of.key == nil {
		of.key = newKey(t)
	}
	if of.names == nil {
		of.names = &x509.CertificateRequest{}
	}
	if of.csr == "" {
		der, err := x509.CreateCertificateRequest(rand.Reader, of.names, of.key)
		if err != nil {
			t.Fatal(err)
		}
		of.csr = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	}
	m, err := structpb.NewStruct(of.metadata)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := security.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx,
		&security.IstioCertificateRequest{Csr: of.csr, ValidityDuration: of.seconds, Metadata: m})
	if err != nil {
		return nil, nil, err
	}
	if len(answer.CertChain) < 2 {
		return nil, nil, fmt.Errorf("a chain of %d", len(answer.CertChain))
	}
	block, _ := pem.Decode([]byte(answer.CertChain[0]))
	if block == nil {
		return nil, nil, fmt.Errorf("no certificate: %q", answer.CertChain[0])
	}
	leaf, err = x509.ParseCertificate(block.Bytes)
	return leaf, answer.CertChain, err
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func poolOf(text []byte) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool
}

func uri(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
