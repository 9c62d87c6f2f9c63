package xds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/push"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

// Config of a server. Zero values mean the defaults that are named.
type Config struct {
	Source Source
	Log    *slog.Logger
	// Registerer takes the metrics; nil: they are counted and not shown.
	Registerer prometheus.Registerer
	// Identifier is sent as control_plane.identifier.
	Identifier string
	// Identify returns the verified identities of a stream's client, given what it says of itself
	// and the stream's context; nil: no client has any. An error, a gRPC status, refuses the
	// stream.
	Identify func(context.Context, *core.Node) ([]string, error)
	// Answerer answers types per request; nil: there are none.
	Answerer Answerer
	// Limits of what clients may cost: budget.Defaults.
	Limits budget.Limits
	// HealthType is a type by which clients report the health of what they are beside, as the error
	// of a request that is answered by nothing; empty: there is none.
	HealthType string
	// Version returns what a node says its client's version is, by which streams are counted; nil,
	// or empty: unknown.
	Version   func(*core.Node) string
	Keepalive Keepalive
	// Memory returns how many bytes the process uses and may use; nil: nothing is shed for lack of
	// it.
	Memory func() (used, limit uint64)
	// Relieve is called now and then while there is little memory, to let go of so many bytes that
	// can be done without; short says that streams are refused. Optional.
	Relieve func(bytes uint64, short bool)
	// SendTimeout ends the stream of a client that takes nothing for so long: 30 s. Negative:
	// never.
	SendTimeout time.Duration
	// SlowAfter is when a client that takes nothing gives its place in the push queue to others:
	// 100 ms.
	SlowAfter time.Duration
	// OrderPatience is how long routes and removals wait for the client to accept what they depend
	// on: 500 ms. Negative: they don't.
	OrderPatience time.Duration
	// Calls answers unary calls of services that are not the server's own: it gets the method, as
	// `/package.Service/Method`, and the encoded request, and returns the encoded response or a
	// gRPC status. Nil: they are Unimplemented.
	Calls func(ctx context.Context, method string, request []byte) (response []byte, err error)
	// Push limits what goes on at once: no limit, but that twice as many as there are processors
	// compose their responses.
	Push push.Limits
	// StopTimeout is how long Serve waits for connections to end: 5 s.
	StopTimeout time.Duration
}

// Keepalive says how it is found out that a client is gone: it is pinged each Interval (30 s) in
// which it says nothing, and has Timeout (10 s) to answer. Clients may ping twice as often. It is
// sent away after MaxAge (no limit), give or take a tenth, and has Grace (10 s) to go.
type Keepalive struct {
	Interval, Timeout time.Duration
	MaxAge, Grace     time.Duration
}

// maxVersion is how many bytes of a version are shown.
const maxVersion = 64

func (c *Config) version(n *core.Node) string {
	version := ""
	if c.Version != nil {
		version = budget.Line(c.Version(n), maxVersion)
	}
	return cmp.Or(version, "unknown")
}

func (c *Config) complete() error {
	if c.Source == nil {
		return errors.New("xds: no source")
	}
	if c.Push.Running < 0 || c.Push.Bytes < 0 {
		return fmt.Errorf("xds: limits must not be negative (%+v); 0 means no limit", c.Push)
	}
	orDefault(&c.Limits, budget.Defaults())
	if err := c.Limits.Check(); err != nil {
		return fmt.Errorf("xds: %w", err)
	}
	if c.Memory != nil {
		_, limit := c.Memory()
		c.Limits = c.Limits.Within(limit)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	orDefault(&c.Keepalive.Interval, 30*time.Second)
	orDefault(&c.Keepalive.Timeout, 10*time.Second)
	orDefault(&c.Keepalive.Grace, 10*time.Second)
	orDefault(&c.SendTimeout, 30*time.Second)
	orDefault(&c.SlowAfter, 100*time.Millisecond)
	orDefault(&c.OrderPatience, 500*time.Millisecond)
	orDefault(&c.StopTimeout, 5*time.Second)
	orDefault(&c.Push.Composing, 2*runtime.GOMAXPROCS(0))
	return nil
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Server serves xDS from a Source.
type Server struct {
	config Config
	common *common
	turns  *push.Turns
	peers  *budget.Peers
	// unfinished is the account of messages that aren't complete, unread that of those that wait to
	// be read.
	unfinished, unread *budget.Unfinished
	codec              codec
	conns              conns
	pressure           atomic.Pointer[pressure]
	slow               slow
	metrics            *metrics
	seed               uint32
	lines              *lines

	mu      sync.Mutex
	streams map[*stream]struct{}
}

// New checks the configuration. It opens nothing.
func New(c Config) (*Server, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	m, err := newMetrics(c.Registerer)
	if err != nil {
		return nil, fmt.Errorf("xds: %w", err)
	}
	s := &Server{
		config: c, common: newCommon(c.OrderPatience, c.Identifier), turns: push.NewTurns(c.Push),
		metrics: m, seed: rand.Uint32(), lines: newLines(), peers: budget.NewPeers(c.Limits),
		unfinished: budget.NewUnfinished(c.Limits), unread: budget.NewUnfinished(c.Limits), codec: newCodec(),
		conns: conns{all: map[string]*conn{}}, streams: map[*stream]struct{}{},
	}
	s.pressure.Store(&pressure{})
	return s, nil
}

// Serve serves xDS, health and reflection on a listener until ctx ends, and closes it. Without
// credentials it does so in plain text; several listeners may be served at once.
func (s *Server) Serve(ctx context.Context, l net.Listener, creds credentials.TransportCredentials) error {
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	e := &endpoint{server: s, stop: make(chan struct{})}
	options := append(s.options(), grpc.Creds(&metering{creds, s}))
	if s.config.Calls != nil {
		options = append(options, grpc.UnknownServiceHandler(e.call))
	}
	g := grpc.NewServer(options...)
	e.register(g)
	healthServer := health.NewServer()
	healthpb.RegisterHealthServer(g, healthServer)
	reflection.Register(g)

	failed := make(chan error, 1)
	go func() { failed <- g.Serve(&gate{l, s, budget.Files(budget.OpenFiles())}) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		healthServer.Shutdown()
	}
	close(e.stop)
	e.drain(g, s.config.StopTimeout)
	if err != nil {
		return fmt.Errorf("xds: %s: %w", l.Addr(), err)
	}
	return nil
}

// streamWindow is how much of a stream may come before it is read.
const streamWindow = 64 << 10

// options are those of every gRPC server of ours.
func (s *Server) options() []grpc.ServerOption {
	c := &s.config
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(s.codec),
		grpc.MaxRecvMsgSize(c.Limits.Stream.RequestBytes),
		// Twice that: what is a little more is refused by us, with words.
		grpc.MaxHeaderListSize(2 * uint32(c.Limits.Stream.HeaderBytes)),
		// Requests are small: what is not read yet must not grow with the speed of the network, as
		// it does by default.
		grpc.StaticStreamWindowSize(streamWindow),
		// And connections that say nothing are to cost little.
		grpc.ReadBufferSize(4 << 10),
		grpc.StaticConnWindowSize(1 << 20),
		grpc.ChainStreamInterceptor(s.guardStream), grpc.ChainUnaryInterceptor(s.guardCall),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: c.Keepalive.Interval / 2, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: c.Keepalive.Interval, Timeout: c.Keepalive.Timeout,
			MaxConnectionIdle: c.Limits.Stream.Idle,
			MaxConnectionAge:  c.Keepalive.MaxAge, MaxConnectionAgeGrace: c.Keepalive.Grace,
		}),
	}
	if n := c.Limits.Total.StreamsPerConnection; n > 0 {
		options = append(options, grpc.MaxConcurrentStreams(uint32(n)))
	}
	if d := c.Limits.Stream.Idle; d > 0 {
		options = append(options, grpc.ConnectionTimeout(d))
	}
	return options
}

// endpoint is the server on one listener.
type endpoint struct {
	server *Server
	stop   chan struct{}
	wg     sync.WaitGroup // goroutines that outlive their handler
}

// drain waits for what runs to end, and ends it after the timeout.
func (e *endpoint) drain(g *grpc.Server, timeout time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.GracefulStop()
	}()
	select {
	case <-done:
	case <-time.After(timeout):
		g.Stop()
		<-done
	}
	e.wg.Wait()
}
