//go:build !wasip1

package process

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// ErrByHand is returned where no core started this process.
var ErrByHand = errors.New("not started by a core")

// lastWords is how long the core has to read the session's end before the process ends by itself.
const lastWords = time.Second

// limitTrailer names, at a session's end, the limit of plugins.yaml that the plugin crossed.
const limitTrailer = "coxswain-limit"

// Serve runs a session with the core that started this process and returns what run returned. The
// session's end is the end of the process; so is the core's death, which the lifeline tells. It
// reads the environment, as go-plugin does.
func Serve(run func(context.Context, session.Carrier) error) error {
	if os.Getenv(cookieKey) != cookieValue {
		return ErrByHand
	}
	watchLifeline()
	s := &server{run: run, stderr: os.Stderr}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: Handshake(),
		Plugins:         plugin.PluginSet{Name: &served{server: s}},
		GRPCServer:      s.grpc,
		Logger:          hclog.NewNullLogger(),
	})
	if err := s.result.Load(); err != nil {
		return *err
	}
	return nil
}

// server serves one session.
type server struct {
	run    func(context.Context, session.Carrier) error
	stderr *os.File
	server *grpc.Server
	taken  atomic.Bool
	result atomic.Pointer[error]
}

func (s *server) grpc(opts []grpc.ServerOption) *grpc.Server {
	if len(opts) == 0 { // go-plugin gives its TLS, if the core asked for that
		opts = append(opts, grpc.Creds(newCoreAlone()))
	}
	s.server = grpc.NewServer(append(opts,
		grpc.ForceServerCodecV2(newCodec()), grpc.MaxRecvMsgSize(maxFrame), grpc.MaxSendMsgSize(maxFrame),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window))...)
	return s.server
}

// serveSession serves the stream; an error becomes the stream's status, which the core shows.
func (s *server) serveSession(stream grpc.ServerStream) error {
	if !s.taken.CompareAndSwap(false, true) {
		return status.Error(codes.FailedPrecondition, "this process serves one session, and has had it")
	}
	// go-plugin put pipes in their place that it empties only while the core reads them. Author
	// code may write to both.
	os.Stdout, os.Stderr = s.stderr, s.stderr
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	err := s.run(ctx, newCarrier(stream, cancel))
	s.result.Store(&err)
	time.AfterFunc(lastWords, s.server.Stop)
	if err == nil {
		return nil
	}
	if limit := session.CrossedLimit(err); limit != "" {
		stream.SetTrailer(metadata.Pairs(limitTrailer, limit))
	}
	return status.Error(codes.Aborted, err.Error())
}
