package hooks

import (
	"bytes"
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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// plugins answer as a func does.
type plugins func(ctx context.Context, m *pb.Call) ([]byte, error)

func (p plugins) Call(ctx context.Context, m *pb.Call) ([]byte, error) { return p(ctx, m) }

// signed returns a certificate that signs itself.
func signed(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func pool(c tls.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(c.Leaf)
	return p
}

// opened is a port with a client that believes it.
type opened struct {
	url    string
	client *http.Client
	own    tls.Certificate
}

func open(t *testing.T, p plugins, clients func() (*x509.CertPool, error)) *opened {
	t.Helper()
	own, at := signed(t), make(chan net.Addr, 1)
	port := New(Config{
		Address: "127.0.0.1:0", Plugins: p, Clients: clients, Log: slog.New(slog.DiscardHandler), Listening: func(a net.Addr) { at <- a },
		TLS: func(context.Context) (*tls.Config, error) {
			return &tls.Config{Certificates: []tls.Certificate{own}}, nil
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- port.Run(ctx) }()
	o := &opened{url: "https://" + (<-at).String(), own: own}
	o.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(own)}}}
	t.Cleanup(func() {
		o.client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return o
}

func (o *opened) post(t *testing.T, path, kind string, body []byte) (code int, text string) {
	t.Helper()
	r, err := o.client.Post(o.url+path, kind, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	out, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(out)
}

// TestAway: a request waits for a plugin that starts again, for half of what its caller waits at
// most; what a plugin refuses is asked once.
func TestAway(t *testing.T) {
	var asked atomic.Int32
	o := open(t, func(_ context.Context, m *pb.Call) ([]byte, error) {
		switch n := asked.Add(1); {
		case m.Method == "POST /refused":
			return nil, status.Error(codes.InvalidArgument, "no")
		case m.Method == "POST /gone" || n < 4:
			return nil, status.Error(codes.Unavailable, "plugin injector is away")
		}
		return m.Request, nil
	}, nil)
	for _, c := range []struct {
		path string
		code int
		asks func(n int32) bool
	}{
		{"/back", http.StatusOK, func(n int32) bool { return n == 4 }},
		{"/refused", http.StatusBadRequest, func(n int32) bool { return n == 1 }},
		{"/gone?timeout=200ms", http.StatusServiceUnavailable, func(n int32) bool { return n > 1 && n < 10 }},
	} {
		asked.Store(0)
		if code, text := o.post(t, c.path, "application/json", []byte("{}")); code != c.code || !c.asks(asked.Load()) {
			t.Errorf("%s: %d %q after %d questions", c.path, code, text, asked.Load())
		}
	}
}

// TestPatience: an answer is due a little before the caller waits no more.
func TestPatience(t *testing.T) {
	for said, want := range map[string]time.Duration{
		"": 9 * time.Second, "10s": 9 * time.Second, "1s": 900 * time.Millisecond, "30s": 27 * time.Second, "1h": 27 * time.Second,
		"-1s": 9 * time.Second, "soon": 9 * time.Second,
	} {
		if is := patience(said); is != want {
			t.Errorf("who says %q is answered within %v, not %v", said, is, want)
		}
	}
}

// TestAnswersInTime: whatever keeps a request from being answered, its caller hears that while he
// waits: a plugin that is silent, one that is away all the time, one that ends after it was silent,
// and a body that doesn't come. One that is back after it was silent is asked again.
func TestAnswersInTime(t *testing.T) {
	const waits = 5 * time.Second
	var asked atomic.Int32
	o := open(t, func(ctx context.Context, m *pb.Call) ([]byte, error) {
		switch m.Method {
		case "POST /silent":
			<-ctx.Done()
			return nil, status.FromContextError(ctx.Err()).Err()
		case "POST /away":
			return nil, status.Error(codes.Unavailable, "plugin x is away")
		}
		if n := asked.Add(1); n == 1 { // it hangs for more than half of that time, and is replaced
			select {
			case <-ctx.Done():
			case <-time.After(waits * 6 / 10):
			}
			return nil, status.Error(codes.Unavailable, "plugin x ended while it was asked")
		} else if n < 4 {
			return nil, status.Error(codes.Unavailable, "plugin x is away")
		}
		return m.Request, nil
	}, nil)
	var all sync.WaitGroup
	for _, c := range []struct {
		path string
		body io.Reader
		size int64
		code int
	}{
		{"/silent", strings.NewReader("{}"), 2, http.StatusGatewayTimeout},
		{"/away", strings.NewReader("{}"), 2, http.StatusServiceUnavailable},
		{"/replaced", strings.NewReader("{}"), 2, http.StatusOK},
		{"/silent", stuck{t.Context()}, 100, http.StatusRequestTimeout},
	} {
		all.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.url+c.path+"?timeout="+waits.String(), c.body)
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = c.size
			began := time.Now()
			said, err := o.client.Do(r)
			if err != nil {
				t.Errorf("%s: %v", c.path, err)
				return
			}
			_ = said.Body.Close()
			if took := time.Since(began); said.StatusCode != c.code || took >= waits {
				t.Errorf("%s: %d after %v, not %d within %v", c.path, said.StatusCode, took, c.code, waits)
			}
		})
	}
	all.Wait()
}

// TestNextOfAConnection: a review that is not answered in time takes none of those with it that its
// connection brings afterwards, by HTTP/1.1 as by HTTP/2.
func TestNextOfAConnection(t *testing.T) {
	for _, two := range []bool{false, true} {
		o := open(t, func(ctx context.Context, m *pb.Call) ([]byte, error) {
			if m.Method != "POST /silent" {
				return m.Request, nil
			}
			<-ctx.Done()
			<-time.After(50 * time.Millisecond) // whatever else ends with the time that the caller gives has ended
			return nil, status.FromContextError(ctx.Err()).Err()
		}, nil)
		o.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(o.own)}, ForceAttemptHTTP2: two}
		for _, body := range [][]byte{[]byte("{}"), nil, []byte("{}"), nil} {
			if code, text := o.post(t, "/silent?timeout=100ms", "application/json", body); code != http.StatusGatewayTimeout {
				t.Errorf("HTTP/2 %v: a silent plugin: %d %s", two, code, text)
			}
			if code, text := o.post(t, "/next", "application/json", body); code != http.StatusOK {
				t.Errorf("HTTP/2 %v: the next review of the connection: %d %s", two, code, text)
			}
		}
	}
}

// stuck is a body that doesn't come.
type stuck struct{ ctx context.Context }

func (s stuck) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// TestAnswers: plugins get what comes, and what they say becomes a status of HTTP.
func TestAnswers(t *testing.T) {
	o := open(t, func(ctx context.Context, m *pb.Call) ([]byte, error) {
		if _, bounded := ctx.Deadline(); !bounded || m.RemoteAddress == "" || m.Core || len(m.Identities) > 0 {
			t.Errorf("bounded %v, from %q: %+v", bounded, m.RemoteAddress, m)
		}
		switch m.Method {
		case "POST /echo/a":
			return m.Request, nil
		case "POST /slow":
			<-ctx.Done()
			return nil, status.FromContextError(ctx.Err()).Err()
		case "POST /away":
			return nil, status.Error(codes.Unavailable, "plugin x is away")
		case "POST /bad":
			return nil, status.Error(codes.InvalidArgument, "no")
		}
		return nil, status.Error(codes.Unimplemented, "nobody")
	}, nil)
	large := bytes.Repeat([]byte("x"), MostBody)
	for _, c := range []struct {
		path, kind string
		body       []byte
		code       int
		text       string
	}{
		{"/echo/a?timeout=5s", "application/json", []byte("{}"), 200, "{}"}, {"/echo/a", "application/json; charset=utf-8", large, 200, string(large)},
		{"/echo/a", "application/json", append(large, 'x'), 413, "8388608"}, {"/echo/a", "text/plain", nil, 415, "application/json"},
		{"/slow?timeout=1ms", "application/json", nil, 504, ""}, {"/away", "application/json", nil, 503, "away"}, {"/bad", "application/json", nil, 400, "no"},
		{"/other", "application/json", nil, 404, "nobody"},
	} {
		if code, text := o.post(t, c.path, c.kind, c.body); code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %.100s", c.path, code, text)
		}
	}
	for path, want := range map[string]int{Ready: 200, "/ready": 200, "/echo/a": 405} {
		r, err := o.client.Get(o.url + path)
		if err != nil {
			t.Fatal(err)
		}
		if _ = r.Body.Close(); r.StatusCode != want {
			t.Errorf("GET %s: %d", path, r.StatusCode)
		}
	}
}

// TestClients: who shows no certificate of an authority that is believed asks nothing.
func TestClients(t *testing.T) {
	client := signed(t)
	o := open(t, func(context.Context, *pb.Call) ([]byte, error) { return []byte("{}"), nil }, func() (*x509.CertPool, error) { return pool(client), nil })
	if code, _ := o.post(t, "/x", "application/json", nil); code != http.StatusForbidden {
		t.Errorf("without a certificate: %d", code)
	}
	o.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(o.own), Certificates: []tls.Certificate{client}}}
	if code, _ := o.post(t, "/x", "application/json", nil); code != http.StatusOK {
		t.Errorf("with its certificate: %d", code)
	}
	o.client.CloseIdleConnections()
	o.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(o.own), Certificates: []tls.Certificate{signed(t)}}}
	if r, err := o.client.Post(o.url+"/x", "application/json", nil); err == nil {
		_ = r.Body.Close()
		t.Errorf("with another's certificate: %d", r.StatusCode)
	}
}

// TestLoads: an address may have so many bytes in hand, each request with what it costs beside its
// body, more of them if it is verified; one that asks for more is refused, and keeps nobody else
// from asking.
func TestLoads(t *testing.T) {
	for _, c := range []struct {
		clients func() (*x509.CertPool, error)
		most    int
	}{{nil, mostInHand}, {func() (*x509.CertPool, error) { return nil, nil }, mostVerified}} {
		p := New(Config{Clients: c.clients})
		var leave []func()
		enter := func(who string, bytes int, want bool) {
			t.Helper()
			l, ok := p.enter(who, bytes)
			if ok != want {
				t.Fatalf("%s with %d bytes is let in: %v, after %d", who, bytes, ok, len(leave))
			}
			if ok {
				leave = append(leave, l)
			}
		}
		const pod = 8 << 10
		many := c.most / (pod + perRequest)
		if many < 800 {
			t.Errorf("%d reviews of pods are too few for an API server", many)
		}
		for range many {
			enter("a", pod, true)
		}
		enter("a", pod, false)
		enter("b", MostBody, true)
		enter("b", c.most-MostBody-2*perRequest, true)
		enter("b", 0, false)
		for who := range mostOfAll/c.most - 2 {
			enter(string(rune('c'+who)), c.most-perRequest, true)
		}
		enter("z", c.most, false)
		for _, l := range leave {
			l()
		}
		if p.total != 0 || len(p.by) != 0 {
			t.Errorf("%d bytes and %d addresses are left", p.total, len(p.by))
		}
	}
}
