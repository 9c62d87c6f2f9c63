package grpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	xdscredentials "google.golang.org/grpc/credentials/xds"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// bootstrap is a client's or a server's (A27, A29, A36). metadata of its node may be nil;
// certificates is a folder with files of its own, or empty.
func bootstrap(t *testing.T, address, id string, metadata map[string]any, certificates string) []byte {
	t.Helper()
	b := map[string]any{
		"xds_servers": []any{map[string]any{
			"server_uri": address, "channel_creds": []any{map[string]any{"type": "insecure"}}, "server_features": []any{"xds_v3"},
		}},
		"node":                                   map[string]any{"id": id, "locality": map[string]any{"region": "here"}, "metadata": metadata},
		"server_listener_resource_name_template": "xds.istio.io/grpc/lds/inbound/%s",
		"certificate_providers":                  map[string]any{},
	}
	if certificates != "" {
		b["certificate_providers"] = map[string]any{"default": map[string]any{"plugin_name": "file_watcher", "config": map[string]any{
			"certificate_file":    filepath.Join(certificates, "cert-chain.pem"),
			"private_key_file":    filepath.Join(certificates, "key.pem"),
			"ca_certificate_file": filepath.Join(certificates, "root-cert.pem"),
			"refresh_interval":    "600s",
		}}}
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// whoMethod answers with the server's name. With the header `fail: N`, the first N calls of an id
// fail.
const whoMethod = "/test.Echo/Who"

// server answers calls with its name.
type server struct {
	name string
	mu   sync.Mutex
	seen map[string]int
}

func (s *server) who(ctx context.Context) (*wrapperspb.StringValue, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ids := md.Get("id"); len(ids) > 0 {
		if s.seen[ids[0]]++; s.seen[ids[0]] <= 2 {
			return nil, status.Error(codes.Unavailable, "not yet")
		}
	}
	secured := ""
	if p, ok := peer.FromContext(ctx); ok && p.AuthInfo != nil && p.AuthInfo.AuthType() == "tls" {
		secured = " by TLS"
	}
	return wrapperspb.String(s.name + secured), nil
}

func (s *server) service() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{ServiceName: "test.Echo", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "Who",
		Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			if err := decode(&emptypb.Empty{}); err != nil {
				return nil, err
			}
			return s.who(ctx)
		},
	}}}
}

// start starts a server that knows nothing of xDS, and returns its port.
func start(t *testing.T, name string) (port int) {
	t.Helper()
	g, s := grpc.NewServer(), &server{name: name, seen: map[string]int{}}
	g.RegisterService(s.service(), s)
	l := listen(t)
	serve(t, func() error { return g.Serve(l) }, g.Stop)
	return l.Addr().(*net.TCPAddr).Port
}

// startXDS starts a server that asks for its own listener.
func startXDS(t *testing.T, name string, bootstrap []byte) (port int) {
	t.Helper()
	secure, err := xdscredentials.NewServerCredentials(xdscredentials.ServerOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	var once sync.Once
	g, err := xds.NewGRPCServer(xds.BootstrapContentsForTesting(bootstrap), grpc.Creds(secure),
		xds.ServingModeCallback(func(_ net.Addr, a xds.ServingModeChangeArgs) {
			if a.Err != nil {
				t.Logf("%s: %v", name, a.Err)
				return
			}
			once.Do(func() { close(ready) })
		}))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{name: name, seen: map[string]int{}}
	g.RegisterService(s.service(), s)
	l := listen(t)
	serve(t, func() error { return g.Serve(l) }, g.Stop)
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatalf("%s does not serve after %v", name, patience)
	}
	return l.Addr().(*net.TCPAddr).Port
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func serve(t *testing.T, run func() error, stop func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("serve: %v", err)
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
}

// patience with the control plane.
const patience = 30 * time.Second

// dial makes a client of a target.
func dial(t *testing.T, bootstrap []byte, target string) *grpc.ClientConn {
	t.Helper()
	resolver, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	secure, err := xdscredentials.NewClientCredentials(xdscredentials.ClientOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, "xds:///"+target, secure, grpc.WithResolvers(resolver))
}

func connect(t *testing.T, target string, secure credentials.TransportCredentials, more ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(target, append(more, grpc.WithTransportCredentials(secure))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask makes a call with headers (pairs), and returns who answers.
func ask(c *grpc.ClientConn, headers ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out wrapperspb.StringValue
	err := c.Invoke(metadata.AppendToOutgoingContext(ctx, headers...), whoMethod, &emptypb.Empty{}, &out)
	return out.Value, err
}

// shares makes calls, and returns how many each server answered.
func shares(c *grpc.ClientConn, n int) (map[string]int, error) {
	out := map[string]int{}
	for range n {
		who, err := ask(c)
		if err != nil {
			return out, fmt.Errorf("after %v: %w", out, err)
		}
		out[who]++
	}
	return out, nil
}
