package xds

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// serve runs a server on a loopback port until the test ends, and returns a connection to it.
func serve(t *testing.T, c Config) (*Server, *grpc.ClientConn) {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	address, stop := start(t, s)
	t.Cleanup(stop)
	return s, dial(t, address)
}

// start runs a server on a loopback port until stop is called.
func start(t *testing.T, s *Server) (address string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, nil) }()
	return l.Addr().String(), sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func dial(t *testing.T, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// smallWindows keeps a client from taking more of a message than it reads: gRPC's windows else grow
// with what comes, the more the slower the machine.
var smallWindows = grpc.WithStaticStreamWindowSize(1 << 16)

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func names(r *discovery.DiscoveryResponse) []string {
	var out []string
	for _, a := range r.Resources {
		_, name := lastField(a.Value, 1)
		out = append(out, string(name))
	}
	slices.Sort(out)
	return out
}

func node() *core.Node {
	return &core.Node{Id: "sidecar~10.9.9.9~c-1.default~default.svc.cluster.local"}
}

func TestStreamOverGRPC(t *testing.T) {
	source := newTwin()
	source.change(func(r map[string]map[string]string) { r[cds] = map[string]string{"a": "1", "b": "1"} })
	server, conn := serve(t, Config{Source: source, Identifier: "test"})
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DiscoveryRequest{Node: node(), TypeUrl: cds}); err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if got := names(first); !slices.Equal(got, []string{"a", "b"}) || first.ControlPlane.GetIdentifier() != "test" {
		t.Fatalf("got %v from %v", got, first.ControlPlane)
	}
	stream.Send(&discovery.DiscoveryRequest{TypeUrl: cds, ResponseNonce: first.Nonce, VersionInfo: first.VersionInfo})
	source.change(func(r map[string]map[string]string) { r[cds]["c"] = "1" })
	second, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if got := names(second); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Fatalf("got %v", got)
	}
	eventually(t, func() bool {
		s := server.Status()
		return len(s) == 1 && s[0].Node == node().Id && s[0].Types[0].Acked == first.Nonce && s[0].Types[0].Sent == second.Nonce
	})
}

// eventually waits for a condition.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}
