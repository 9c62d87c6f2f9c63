// Package hooks is the webhook port: requests of HTTP over TLS, which controllers answer. The core
// carries them, within bounds, and opens none.
package hooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bounds of what comes in.
const (
	// MostBody is how large a request's body may be: an update of an object has two of them.
	MostBody = 8 << 20
	// mostInHand is how many bytes of requests an address may have in hand, mostVerified one that
	// has shown a certificate which is believed, mostOfAll all together. A request counts as its
	// body and perRequest, about what its connection and whoever waits for it take. So an API
	// server, through which everybody's objects come, may have 800 reviews of pods in hand: more
	// than it handles requests at once by default (600). What it asks beyond what is answered at
	// once waits for its turn, in order, and is told in time where there is none for it.
	mostInHand, mostVerified, mostOfAll = 32 << 20, 64 << 20, 128 << 20
	perRequest                          = 32 << 10
	// largeBody is from how many bytes on bodies are handed on one at a time, so that a plugin
	// never owes more than it may.
	largeBody = 2 << 20
	// mostOfOne is how many connections an address may have, of which each has one request by
	// HTTP/1.1, as API servers speak it with webhooks; mostConnections is how many all may have.
	mostOfOne       = 1024
	mostConnections = 4096
	// usualTimeout is how long a caller waits that does not say, mostTimeout the most that counts.
	usualTimeout, mostTimeout = 10 * time.Second, 30 * time.Second
	// margin is what is left of it for the way of the answer.
	margin = 10
	// away is for how long a request waits for a plugin that is away, such as one that starts
	// again, from when it was found to be, and at most half of what the caller waits; it asks again
	// after pause, and each time later.
	away, pause = 5 * time.Second, 20 * time.Millisecond
	// idle is how long a connection may have nothing to say, header how long a request's head may
	// take.
	idle, header = 90 * time.Second, 10 * time.Second
	// mostHeader is how large the head may be.
	mostHeader = 16 << 10
)

// Ready is the path at which the port says that it is open.
const Ready = "/httpsReady"

// Plugins are who answer.
type Plugins interface {
	Call(ctx context.Context, m *pb.Call) ([]byte, error)
}

// Config of a port.
type Config struct {
	// Address is HOST:PORT.
	Address string
	// TLS is asked at each connection, for the certificate that counts then.
	TLS func(ctx context.Context) (*tls.Config, error)
	// Clients returns the authorities of those who may send requests; nil: everybody may.
	Clients func() (*x509.CertPool, error)
	Plugins Plugins
	Log     *slog.Logger
	// Listening is called when the port is open.
	Listening func(at net.Addr)
}

// Port answers requests.
type Port struct {
	cfg Config

	// large has room for one large body.
	large chan struct{}

	mu    sync.Mutex
	by    map[string]*load
	total int
}

// load is what an address has in hand.
type load struct{ requests, bytes int }

// most is how many bytes an address may have in hand.
func (p *Port) most() int {
	if p.cfg.Clients != nil { // who isn't verified has nothing
		return mostVerified
	}
	return mostInHand
}

// New returns a port that is closed.
func New(cfg Config) *Port {
	return &Port{cfg: cfg, by: map[string]*load{}, large: make(chan struct{}, 1)}
}

// Run serves until ctx ends, and then lets requests that there are end for as long as they may
// take. The error is why the port can't be opened.
func (p *Port) Run(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.cfg.Address)
	if err != nil {
		return fmt.Errorf("webhook port: %w", err)
	}
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: header, ReadTimeout: mostTimeout, IdleTimeout: idle, MaxHeaderBytes: mostHeader,
		ErrorLog: slog.NewLogLogger(p.cfg.Log.Handler(), slog.LevelDebug),
	}
	p.cfg.Log.Info("listening", "port", "https", "address", l.Addr().String())
	p.cfg.Listening(l.Addr())
	over := make(chan struct{})
	go func() {
		defer close(over)
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), mostTimeout)
		defer cancel()
		if server.Shutdown(end) != nil {
			_ = server.Close()
		}
	}()
	secure := &tls.Config{NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12, GetConfigForClient: p.secure}
	err = server.Serve(tls.NewListener(p.places().Bound(l), secure))
	if errors.Is(err, http.ErrServerClosed) {
		<-over
		return nil
	}
	return err
}

// secure returns how a connection is secured.
func (p *Port) secure(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	c, err := p.cfg.TLS(hello.Context())
	if err != nil {
		return nil, err
	}
	c = c.Clone()
	c.NextProtos, c.ClientAuth, c.ClientCAs, c.VerifyConnection = []string{"h2", "http/1.1"}, tls.NoClientCert, nil, nil
	if p.cfg.Clients == nil {
		return c, nil
	}
	if c.ClientCAs, err = p.cfg.Clients(); err != nil {
		return nil, err
	}
	c.ClientAuth = tls.VerifyClientCertIfGiven // who asks whether the port is ready has none
	return c, nil
}

// places bounds how many connections there are at once. An address of this machine has no more than
// others: an API server may be there.
func (*Port) places() budget.Places {
	return budget.Places{Most: mostConnections, OfAddress: mostOfOne, Files: budget.FilesOfPages(budget.OpenFiles())}
}

// ServeHTTP implements http.Handler.
func (p *Port) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == Ready || r.URL.Path == "/ready" {
		_, _ = io.WriteString(w, "ok\n")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience(r.URL.Query().Get("timeout")))
	defer cancel()
	code, body := p.answer(ctx, w, r)
	if code != http.StatusOK {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
	} else {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// answer returns a status of HTTP and a body, before ctx ends or at once then. All but 200 is a
// failure for an API server, which then does what the webhook's failure policy says.
func (p *Port) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) (code int, body []byte) {
	switch {
	case r.Method != http.MethodPost:
		return http.StatusMethodNotAllowed, []byte("only POST is answered here\n")
	case p.cfg.Clients != nil && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0):
		return http.StatusForbidden, []byte("a client certificate is needed here, of an authority that is believed\n")
	case r.ContentLength > MostBody:
		return http.StatusRequestEntityTooLarge, fmt.Appendf(nil, "a body may have %d bytes\n", MostBody)
	case r.ContentLength < 0:
		return http.StatusLengthRequired, []byte("Content-Length is needed\n")
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		return http.StatusUnsupportedMediaType, []byte("the body must be application/json\n")
	}
	leave, ok := p.enter(budget.Address(r.RemoteAddr), int(r.ContentLength))
	if !ok {
		return http.StatusTooManyRequests, []byte("this address asks for too much at once\n")
	}
	defer leave()
	request, err := read(ctx, w, r)
	if ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
		if r.ProtoMajor == 1 { // what is left of the body would be the next request
			w.Header().Set("Connection", "close")
		}
		return http.StatusRequestTimeout, []byte("the body did not come in time\n")
	}
	if err != nil {
		return http.StatusBadRequest, []byte("the body can't be read\n")
	}
	return p.ask(ctx, r, request)
}

// read reads a body, of which nothing is waited for when ctx has ended. The connection's deadline
// goes then: one that runs out while the review is answered would end the connection's next ones.
func read(ctx context.Context, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	of := http.NewResponseController(w)
	if end, ok := ctx.Deadline(); ok {
		_ = of.SetReadDeadline(end)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, MostBody))
	if err == nil {
		err = of.SetReadDeadline(time.Time{})
	}
	return body, err
}

// ask has a plugin answer.
func (p *Port) ask(ctx context.Context, r *http.Request, request []byte) (code int, body []byte) {
	if len(request) > largeBody {
		select {
		case p.large <- struct{}{}:
			defer func() { <-p.large }()
		case <-ctx.Done():
			return http.StatusGatewayTimeout, []byte("other large bodies are being answered\n")
		}
	}
	response, err := p.again(ctx, &pb.Call{Method: pb.Webhook + r.URL.EscapedPath(), Request: request, RemoteAddress: r.RemoteAddr})
	if err == nil {
		return http.StatusOK, response
	}
	said := status.Convert(err)
	switch said.Code() {
	case codes.Unimplemented:
		code = http.StatusNotFound
	case codes.InvalidArgument:
		code = http.StatusBadRequest
	case codes.DeadlineExceeded, codes.Canceled:
		code = http.StatusGatewayTimeout
	case codes.Unavailable, codes.ResourceExhausted:
		code = http.StatusServiceUnavailable
	default:
		code = http.StatusInternalServerError
	}
	return code, []byte(said.Message() + "\n")
}

// again asks until a plugin is there, for a while: a review changes nothing, so that it may be
// asked twice.
func (p *Port) again(ctx context.Context, m *pb.Call) (response []byte, err error) {
	most := away
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)/2)
	}
	var waits <-chan time.Time
	for next := pause; ; next *= 2 {
		response, err = p.cfg.Plugins.Call(ctx, m)
		if status.Code(err) != codes.Unavailable {
			return response, err
		}
		if waits == nil { // it may have been asked for long
			waits = time.After(most)
		}
		select {
		case <-time.After(next):
		case <-waits:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
	}
}

// patience is how long an answer may take: what the caller says that it waits, less a little.
func patience(said string) time.Duration {
	d, err := time.ParseDuration(said)
	if err != nil || d <= 0 {
		d = usualTimeout
	}
	d = min(d, mostTimeout)
	return d - d/margin
}

// enter takes a request down; not ok if its address has too much in hand, or all have.
func (p *Port) enter(who string, bytes int) (leave func(), ok bool) {
	bytes += perRequest
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.by[who]
	if l == nil {
		l = &load{}
	}
	if l.bytes+bytes > p.most() || p.total+bytes > mostOfAll {
		return nil, false
	}
	p.by[who] = l
	l.requests++
	l.bytes += bytes
	p.total += bytes
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		l.requests--
		l.bytes -= bytes
		p.total -= bytes
		if l.requests == 0 {
			delete(p.by, who)
		}
	}, true
}
