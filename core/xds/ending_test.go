package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/push"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ends returns how many streams ended with a code.
func ends(t *testing.T, s *Server, code codes.Code) float64 {
	t.Helper()
	return count(t, s.metrics.ended.WithLabelValues(code.String()))
}

// TestClientThatNeverReads is cut off after the send timeout, though gRPC has taken its response
// into the queue; others go on meanwhile, although only one push may run at once.
func TestClientThatNeverReads(t *testing.T) {
	source := newTwin()
	big := strings.Repeat("x", 1<<20)
	source.change(func(r map[string]map[string]string) { r[cds] = map[string]string{"a": big} })
	server, conn := serve(t, Config{
		Source: source, SendTimeout: 4 * time.Second, SlowAfter: 5 * time.Millisecond, Push: push.Limits{Running: 1, Bytes: 1 << 20},
	})
	deaf, s := open(t, dial(t, conn.Target(), smallWindows)), open(t, conn)
	ask(t, deaf, &discovery.DiscoveryRequest{Node: node(), TypeUrl: cds})
	eventually(t, func() bool { return len(server.Status()) == 1 })
	ask(t, s, &discovery.DiscoveryRequest{Node: node(), TypeUrl: cds})
	for i := 0; i < 3 || ends(t, server, codes.DeadlineExceeded) == 0; i++ {
		r, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		source.change(func(r map[string]map[string]string) { r[cds]["a"] = big + fmt.Sprint(i) })
		ask(t, s, &discovery.DiscoveryRequest{TypeUrl: cds, ResponseNonce: r.Nonce})
	}
	if n := count(t, server.metrics.timeouts); n != 1 {
		t.Fatal(n)
	}
	var err error
	for err == nil { // what was under way comes first
		_, err = deaf.Recv()
	}
	if status.Code(err) != codes.DeadlineExceeded {
		t.Fatal(err)
	}
}

// TestEndsAreCounted by what ended them.
func TestEndsAreCounted(t *testing.T) {
	server, conn := serve(t, Config{Source: oneCluster()})
	begin := func(conn *grpc.ClientConn) sotwStream {
		s := open(t, conn)
		ask(t, s, &discovery.DiscoveryRequest{Node: node(), TypeUrl: cds})
		receiveNames(t, s)
		return s
	}
	silent := open(t, conn)
	if err := silent.CloseSend(); err != nil { // before it said anything
		t.Fatal(err)
	}
	if _, err := silent.Recv(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := begin(conn).CloseSend(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return ends(t, server, codes.OK) == 1 })
	other := dial(t, conn.Target())
	begin(other)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return ends(t, server, codes.Canceled) == 1 })
	ask(t, begin(conn), &discovery.DiscoveryRequest{TypeUrl: strings.Repeat("x", 5<<20)})
	eventually(t, func() bool { return ends(t, server, codes.ResourceExhausted) == 1 })
}

// TestLinesAreBounded: what isn't said is counted, and said later.
func TestLinesAreBounded(t *testing.T) {
	l := newLines()
	l.limit.SetLimit(0) // no time passes
	for range endsAtOnce + 5 {
		l.log(slog.New(slog.DiscardHandler), slog.LevelInfo, "x")
	}
	if n := l.unsaid.Load(); n != 5 {
		t.Fatal(n)
	}
}

// mute is a connection that can be made to lose everything without a word, as a machine that is
// switched off does.
type mute struct {
	net.Conn
	off *atomic.Bool
}

func (m mute) Read(b []byte) (int, error) {
	for {
		n, err := m.Conn.Read(b)
		if err != nil || !m.off.Load() {
			return n, err
		}
	}
}

func (m mute) Write(b []byte) (int, error) {
	if m.off.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// TestKeepalive: a client that gives no sign of life is let go.
func TestKeepalive(t *testing.T) {
	t.Parallel()
	server, conn := serve(t, Config{Source: oneCluster(), Keepalive: Keepalive{Interval: time.Second, Timeout: 5 * time.Second}})
	var off atomic.Bool
	dead := dial(t, conn.Target(), grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		return mute{c, &off}, err
	}))
	quiet, lost := open(t, conn), open(t, dead)
	for _, s := range []sotwStream{quiet, lost} {
		ask(t, s, &discovery.DiscoveryRequest{Node: node(), TypeUrl: cds})
		receiveNames(t, s)
	}
	off.Store(true)
	eventually(t, func() bool { return ends(t, server, codes.Canceled) == 1 })
	if n := len(server.Status()); n != 1 {
		t.Errorf("%d streams are left; one that is quiet but alive should be", n)
	}
}

// TestConnectionAge: clients are sent away when their connection is old: new streams go to a new
// one, those that stay are ended after the grace.
func TestConnectionAge(t *testing.T) {
	t.Parallel()
	server, conn := serve(t, Config{Source: oneCluster(), Keepalive: Keepalive{MaxAge: 3 * time.Second, Grace: time.Second}})
	s := open(t, conn)
	ask(t, s, &discovery.DiscoveryRequest{Node: node(), TypeUrl: cds})
	receiveNames(t, s)
	if _, err := s.Recv(); status.Code(err) != codes.Unavailable && status.Code(err) != codes.Canceled {
		t.Fatal(err)
	}
	eventually(t, func() bool { return ends(t, server, codes.Canceled) == 1 })
	again := open(t, conn)
	ask(t, again, &discovery.DiscoveryRequest{Node: node(), TypeUrl: cds})
	receiveNames(t, again)
}
