package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { wait.Main(m) }

const webID = "spiffe://cluster.local/ns/shop/sa/web"

// authenticating is a control with one authenticator, a real plugin without a process around it.
func authenticating(t *testing.T, f sdk.AuthenticatorFunc, headers ...string) *control.Control {
	t.Helper()
	c, err := control.New(control.Config{
		Plugins: []control.Expected{
			{Name: "a", Kind: pb.KindAuthenticator, Limits: control.Limits{Call: 10 * time.Second}, Headers: headers},
			{Name: "other", Order: 1, Kind: pb.KindAuthenticator, Headers: []string{"x-other"}}, // it never runs
		},
		Rules:  control.Rules{Choose: func(string, *corev3.Node, bool, []string) string { return "" }},
		Timing: revision.Timings(), Log: slog.New(slog.DiscardHandler), Metrics: newMetrics(prometheus.NewRegistry(), nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := session.Pipe()
	link := session.NewCore(ours)
	ran, served := make(chan error, 1), make(chan error, 1)
	go func() {
		ran <- sdk.Run(context.Background(),
			sdk.AuthenticatorPlugin{Name: "a", New: sdk.WithoutConfig(func() (sdk.Authenticator, error) { return f, nil })},
			theirs)
	}()
	hello := &pb.FromCore{Hello: &pb.Hello{Versions: []uint32{session.Version}, Limits: &pb.Limits{CallMs: 10_000}}}
	if err := link.Send(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	m, _, err := link.Recv(t.Context())
	if err != nil || m.Ready == nil {
		t.Fatal(m, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		served <- c.Serve(ctx, &host.Instance{Entry: &manifest.Entry{Name: "a"}, Ready: m.Ready, Link: link})
	}()
	t.Cleanup(func() {
		cancel()
		<-served
		<-ran
	})
	for end := time.Now().Add(10 * time.Second); !c.PluginRows()["a"].Stale.Since.IsZero() || !joined(c); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the plugin does not join")
		}
	}
	return c
}

// anybody may be any node.
var anybody = caller.Naming{May: func(_ *corev3.Node, identities []string) ([]string, error) { return identities, nil }}

// TestWhoANodeMayBe: of a caller's identities a stream has those that its node may have, and is
// refused without any.
func TestWhoANodeMayBe(t *testing.T) {
	c := authenticating(t, func(context.Context, sdk.Credentials) ([]string, error) { return []string{webID, "other"}, nil })
	for want, naming := range map[string]caller.Naming{
		"other": {May: func(_ *corev3.Node, identities []string) ([]string, error) { return identities[1:], nil }},
		"": {May: func(n *corev3.Node, _ []string) ([]string, error) {
			return nil, status.Error(codes.PermissionDenied, n.Id)
		}},
	} {
		guarded := listen(t, &identify{control: c, naming: naming, plaintext: true}, insecure.NewCredentials())
		ids, err := guarded(insecure.NewCredentials())
		refused := status.Code(err) == codes.PermissionDenied && strings.Contains(err.Error(), "web-1.shop")
		if strings.Join(ids, " ") != want || refused != (want == "") {
			t.Errorf("got %v, %v, want %q", ids, err, want)
		}
	}
}

// joined reports whether there is somebody to ask.
func joined(c *control.Control) bool {
	_, err := c.Authenticate(context.Background(), caller.Credentials{})
	return err == nil || !strings.Contains(err.Error(), ": a is away")
}

// listen serves a port whose streams are identified. The function opens a stream and returns what
// its handler learnt.
func listen(t *testing.T, i *identify, creds credentials.TransportCredentials) func(client credentials.TransportCredentials,
	headers ...string) ([]string, error) {
	t.Helper()
	got := make(chan []string, 1)
	g := grpc.NewServer(grpc.Creds(creds), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		ids, err := i.caller(s.Context(), &corev3.Node{Id: "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local"})
		got <- ids
		return err
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- g.Serve(l) }()
	t.Cleanup(func() {
		g.Stop()
		<-done
	})
	return func(client credentials.TransportCredentials, headers ...string) ([]string, error) {
		t.Helper()
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(client))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // it ends anyway
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), headers...), 20*time.Second)
		defer cancel()
		s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/any/Thing")
		if err != nil {
			return nil, err
		}
		err = s.RecvMsg(nil)
		select {
		case ids := <-got:
			return ids, err
		default: // no handler has run
			return nil, err
		}
	}
}

// TestVerifiedCertificates: of a connection over TLS the chain that TLS verified reaches the
// authenticators, whatever the setting for plain text.
func TestVerifiedCertificates(t *testing.T) {
	ca, caKey := certificate(t, nil, nil, "")
	leaf, leafKey := certificate(t, ca, caKey, webID)
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	server := tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: leafKey}
	c := authenticating(t, func(_ context.Context, c sdk.Credentials) ([]string, error) {
		if len(c.Certificates) == 0 {
			return nil, errors.New("no certificate")
		}
		if len(c.Certificates) != 2 || !bytes.Equal(c.Certificates[0], leaf.Raw) || !bytes.Equal(c.Certificates[1], ca.Raw) {
			return nil, errors.New("not the chain, leaf first")
		}
		shown, err := x509.ParseCertificate(c.Certificates[0])
		if err != nil {
			return nil, err
		}
		return []string{shown.URIs[0].String()}, nil
	})
	learn := listen(t, &identify{control: c, naming: anybody}, credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{server}, ClientCAs: roots, ClientAuth: tls.VerifyClientCertIfGiven,
	}))
	ids, err := learn(credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{server}, ServerName: "localhost"}))
	if !slices.Equal(ids, []string{webID}) {
		t.Error(ids, err)
	}
	ids, err = learn(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "localhost"}))
	if len(ids) != 0 || status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "a: no certificate; other is away") {
		t.Error(ids, err)
	}
}

// certificate returns one that a parent signed, or its own authority.
func certificate(t *testing.T, parent *x509.Certificate, parentKey *ecdsa.PrivateKey, id string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
		IsCA: parent == nil, BasicConstraintsValid: true,
	}
	if parent == nil {
		parent, parentKey = c, key
	} else {
		u, err := url.Parse(id)
		if err != nil {
			t.Fatal(err)
		}
		c.SerialNumber, c.URIs = big.NewInt(2), []*url.URL{u}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

// TestPlaintext: nobody is asked about plain text, unless the setting says so; then only some
// headers travel.
func TestPlaintext(t *testing.T) {
	c := authenticating(t, func(_ context.Context, c sdk.Credentials) ([]string, error) {
		if c.Headers["authorization"] != "Bearer sesame" {
			return nil, errors.New("no token")
		}
		for name := range c.Headers {
			if name != "authorization" && name != "clusterid" && name != "x-forwarded-client-cert" {
				return nil, errors.New(name + " travels")
			}
		}
		if got := c.Headers["x-forwarded-client-cert"]; got != "" && got != "By=a,By=b" {
			return nil, errors.New("the other header is wrong")
		}
		if h, _, err := net.SplitHostPort(c.RemoteAddress); err != nil || h != "127.0.0.1" || len(c.Certificates) > 0 {
			return nil, errors.New("not this client")
		}
		return []string{webID}, nil
	})
	open := listen(t, &identify{control: c, naming: anybody}, insecure.NewCredentials())
	if ids, err := open(insecure.NewCredentials(), "authorization", "Bearer sesame"); len(ids) > 0 || err == nil || status.Code(err) == codes.Unauthenticated {
		t.Error(ids, err)
	}
	guarded := listen(t, &identify{control: c, naming: anybody, plaintext: true}, insecure.NewCredentials())
	for _, c := range []struct {
		name    string
		headers []string
		refused string
	}{
		{"a token", []string{"authorization", "Bearer sesame", "cookie", "x", "clusterid", "c"}, ""},
		{"hops", []string{"authorization", "Bearer sesame", "x-forwarded-client-cert", "By=a", "x-forwarded-client-cert", "By=b"}, ""},
		{"none", nil, "a: no token; other is away"},
		{"two", []string{"authorization", "Bearer sesame", "authorization", "Bearer x"}, "authorization is given 2 times"},
		{"too long", []string{"authorization", strings.Repeat("x", maxHeaders)}, "65536 are taken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ids, err := guarded(insecure.NewCredentials(), c.headers...)
			if c.refused == "" {
				if !slices.Equal(ids, []string{webID}) {
					t.Error(ids, err)
				}
				return
			}
			code := codes.Unauthenticated
			if c.name == "none" {
				code = codes.Unavailable
			}
			if len(ids) > 0 || status.Code(err) != code || !strings.Contains(err.Error(), c.refused) {
				t.Error(ids, err)
			}
		})
	}
}

// TestHeadersOfAnEntry: an authenticator gets the headers that its entry names, and not those of
// another's.
func TestHeadersOfAnEntry(t *testing.T) {
	c := authenticating(t, func(_ context.Context, c sdk.Credentials) ([]string, error) {
		if len(c.Headers) != 1 || c.Headers["x-api-key"] != "sesame" {
			return nil, fmt.Errorf("%d headers, the key is %q", len(c.Headers), c.Headers["x-api-key"])
		}
		return []string{webID}, nil
	}, "x-api-key")
	guarded := listen(t, &identify{control: c, naming: anybody, plaintext: true}, insecure.NewCredentials())
	if ids, err := guarded(insecure.NewCredentials(), "x-api-key", "sesame", "x-other", "secret", "x-third", "y"); !slices.Equal(ids, []string{webID}) {
		t.Error(ids, err)
	}
	if ids, err := guarded(insecure.NewCredentials(), "x-api-key", "sesame", "x-api-key", "two"); len(ids) > 0 ||
		!strings.Contains(errorText(err), "x-api-key is given 2 times") {
		t.Error(ids, err)
	}
}

// words have no namespaces.
var words = Words{Naming: caller.Naming{
	May: anybody.May, Namespaces: func([]string) []string { return nil }, NamespaceOf: func(*corev3.Node) string { return "" },
}}

// TestNamingIsNeeded: nobody may be any node because the command forgot to say who may.
func TestNamingIsNeeded(t *testing.T) {
	_, err := New(Config{Set: &manifest.Set{}, Log: slog.New(slog.DiscardHandler)})
	if !strings.Contains(errorText(err), "Words.Naming") {
		t.Error(err)
	}
}

// TestSettingNeedsAuthenticator: asking for what nobody can do is an error at once.
func TestSettingNeedsAuthenticator(t *testing.T) {
	for set, want := range map[string]bool{
		"plugins:\n- {name: a, kind: config, builtin: config/a}\n":               false,
		"plugins:\n- {name: a, kind: authenticator, builtin: authenticator/a}\n": true,
	} {
		s, err := manifest.Parse("plugins.yaml", []byte(set))
		if err != nil {
			t.Fatal(err)
		}
		if got := authenticates(s); got != want {
			t.Errorf("%s: %v", set, got)
		}
		_, err = New(Config{Set: s, Words: words, Log: slog.New(slog.DiscardHandler), AuthPlaintext: true})
		if strings.Contains(errorText(err), "authPlaintext") == want {
			t.Errorf("%s: %v", set, err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
