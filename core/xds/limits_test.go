package xds

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// limits returns the defaults as edited.
func limits(edit func(*budget.Limits)) budget.Limits {
	l := budget.Defaults()
	edit(&l)
	return l
}

// withMetadata returns a node with one string in its metadata.
func withMetadata(key, value string) *core.Node {
	n := node()
	n.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewStringValue(value)}}
	return n
}

func padded(bytes int) *core.Node { return withMetadata("PAD", strings.Repeat("x", bytes)) }

func extended(many, bytes int) *core.Node {
	n := node()
	for i := range many {
		n.Extensions = append(n.Extensions, &core.Extension{Name: fmt.Sprintf("%d.%s", i, strings.Repeat("x", bytes))})
	}
	return n
}

func called(id string) *core.Node { return &core.Node{Id: id} }

// numbered returns names that don't exist, of some bytes more than they need.
func numbered(many, padding int) []string {
	var names []string
	for i := range many {
		names = append(names, fmt.Sprintf("name-%d%s", i, strings.Repeat("x", padding)))
	}
	return names
}

func versions(many int) map[string]string {
	out := map[string]string{}
	for _, n := range numbered(many, 0) {
		out[n] = "1"
	}
	return out
}

// say sends requests of either protocol on one stream and returns what it ends with, or nil once it
// has answered as many times.
func say(t *testing.T, conn *grpc.ClientConn, requests ...request) error {
	t.Helper()
	var send func(request) error
	var receive func() error
	if requests[0].delta != nil {
		s, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(deadline(t))
		if err != nil {
			t.Fatal(err)
		}
		send, receive = func(r request) error { return s.Send(r.delta) }, func() error { _, err := s.Recv(); return err }
	} else {
		s := open(t, conn)
		send, receive = func(r request) error { return s.Send(r.sotw) }, func() error { _, err := s.Recv(); return err }
	}
	for _, r := range requests {
		_ = send(r) // receiving says why
	}
	for range requests {
		if err := receive(); err != nil {
			return err
		}
	}
	return nil
}

func sotw(n *core.Node, typeURL string, names ...string) request {
	return request{sotw: &discovery.DiscoveryRequest{Node: n, TypeUrl: typeURL, ResourceNames: names}}
}

func delta(typeURL string, names ...string) request {
	return request{delta: &discovery.DeltaDiscoveryRequest{Node: node(), TypeUrl: typeURL, ResourceNamesSubscribe: names}}
}

// TestLimitsOfStreams: what is beyond a limit is refused with a code and a text that names the
// setting, and counted; what is within it is served. Another client's edits come all the while.
func TestLimitsOfStreams(t *testing.T) {
	small := limits(func(l *budget.Limits) {
		l.Stream.NodeBytes, l.Stream.Extensions, l.Stream.ExtensionBytes, l.Stream.NameBytes = 4<<10, 20, 2<<10, 300
		l.Stream.TypeNames, l.Stream.Names, l.Stream.Types, l.Stream.Bytes, l.Stream.HeaderBytes = 50, 80, 3, 16<<10, 4<<10
	})
	initial := func(versions map[string]string) request {
		r := delta(eds)
		r.delta.InitialResourceVersions = versions
		return r
	}
	for _, test := range []struct {
		name     string
		requests []request
		code     codes.Code // OK: served
		limit    string
	}{
		{name: "node within", requests: []request{sotw(padded(3<<10), cds)}},
		{name: "node", requests: []request{sotw(padded(5<<10), cds)}, code: codes.InvalidArgument, limit: "maxNodeBytes"},
		{name: "the node's id", requests: []request{sotw(called(strings.Repeat("x", 400)), cds)}, code: codes.InvalidArgument, limit: "maxNameBytes"},
		{name: "lines in the node's id", requests: []request{sotw(called("a\nlevel=ERROR"), cds)}, code: codes.InvalidArgument, limit: "characters"},
		{name: "extensions within", requests: []request{sotw(extended(20, 20), cds)}},
		{name: "extensions", requests: []request{sotw(extended(21, 1), cds)}, code: codes.InvalidArgument, limit: "maxExtensions"},
		{name: "bytes of extensions", requests: []request{sotw(extended(15, 200), cds)}, code: codes.InvalidArgument, limit: "maxExtensionBytes"},
		{name: "a name within", requests: []request{sotw(node(), eds, "a", strings.Repeat("x", 300))}},
		{name: "a name", requests: []request{sotw(node(), eds, strings.Repeat("x", 301))}, code: codes.InvalidArgument, limit: "maxNameBytes"},
		{name: "a name, delta", requests: []request{delta(eds, strings.Repeat("x", 301))}, code: codes.InvalidArgument, limit: "maxNameBytes"},
		{name: "lines in a name", requests: []request{sotw(node(), eds, "a\nb")}, code: codes.InvalidArgument, limit: "characters"},
		{name: "a type", requests: []request{sotw(node(), strings.Repeat("x", 301))}, code: codes.InvalidArgument, limit: "maxNameBytes"},
		{name: "names within", requests: []request{sotw(node(), eds, append(numbered(49, 0), "a")...)}},
		{name: "names", requests: []request{sotw(node(), eds, numbered(51, 0)...)}, code: codes.ResourceExhausted, limit: "maxNamesPerType"},
		{
			name:     "names bit by bit",
			requests: []request{delta(eds, numbered(40, 0)...), delta(eds, numbered(11, 1)...)},
			code:     codes.ResourceExhausted, limit: "maxNamesPerType",
		},
		{
			name:     "names of all types",
			requests: []request{sotw(node(), eds, numbered(50, 0)...), sotw(nil, rds, numbered(31, 0)...)},
			code:     codes.ResourceExhausted, limit: "maxNamesPerStream",
		},
		{
			name:     "types",
			requests: []request{sotw(node(), cds), sotw(nil, eds, "a"), sotw(nil, rds, "a"), sotw(nil, plain, "a")},
			code:     codes.ResourceExhausted, limit: "maxTypes",
		},
		{
			name:     "bytes of names",
			requests: []request{sotw(node(), eds, numbered(50, 250)...), sotw(nil, rds, numbered(20, 250)...)},
			code:     codes.ResourceExhausted, limit: "maxBytesPerStream",
		},
		{name: "initial versions within", requests: []request{initial(versions(50))}},
		{name: "initial versions", requests: []request{initial(versions(51))}, code: codes.ResourceExhausted, limit: "maxNamesPerType"},
		{
			name: "a long version", requests: []request{initial(map[string]string{"a": strings.Repeat("x", 301)})},
			code: codes.InvalidArgument, limit: "maxNameBytes",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			source := oneCluster()
			server, conn := serve(t, Config{Source: source, Limits: small, OrderPatience: -1})
			other := open(t, dial(t, conn.Target()))
			ask(t, other, sotw(node(), cds).sotw)
			receiveNames(t, other)

			err := say(t, conn, test.requests...)
			if status.Code(err) != test.code {
				t.Fatalf("got %v, want %v", err, test.code)
			}
			if test.code != codes.OK {
				if n := count(t, server.metrics.limits.WithLabelValues(test.limit)); n != 1 {
					t.Errorf("%s is counted %v times", test.limit, n)
				}
				if test.limit != "characters" && !strings.Contains(err.Error(), test.limit) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
					t.Errorf("says %q", err)
				}
			}
			source.change(func(r map[string]map[string]string) { r[cds]["b"] = "1" })
			if got := receiveNames(t, other); !slices.Equal(got, []string{"a", "b"}) {
				t.Error("the other client has", got)
			}
		})
	}
}

// TestLongRefusals: a client's words about an error reach the source cut to size and in one line.
func TestLongRefusals(t *testing.T) {
	source := oneCluster()
	server, conn := serve(t, Config{Source: source, HealthType: healthType, Limits: limits(func(l *budget.Limits) { l.Stream.ErrorBytes = 100 })})
	s := open(t, conn)
	ask(t, s, sotw(node(), cds).sotw)
	r, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	long := &rpc.Status{Message: "one\ntwo" + strings.Repeat("x", 1<<20)}
	ask(t, s, &discovery.DiscoveryRequest{TypeUrl: cds, ResponseNonce: r.Nonce, ErrorDetail: long})
	ask(t, s, &discovery.DiscoveryRequest{TypeUrl: healthType, ErrorDetail: long})
	eventually(t, func() bool { return len(source.reported()) == 2 })
	for _, o := range source.reported() {
		if !strings.HasPrefix(o.Refused, "one two") || len(o.Refused) > 110 {
			t.Errorf("%d bytes: %.40q", len(o.Refused), o.Refused)
		}
	}
	if n := count(t, server.metrics.limits.WithLabelValues("maxErrorBytes")); n != 2 {
		t.Error(n)
	}
}

// TestEmptyNames: no resource has the empty name, so asking for it alone is asking for nothing.
func TestEmptyNames(t *testing.T) {
	_, conn := serve(t, Config{Source: oneCluster()})
	s := open(t, conn)
	ask(t, s, sotw(node(), cds, "").sotw) // not a wildcard either
	ask(t, s, sotw(nil, eds, "").sotw)
	ask(t, s, sotw(nil, eds, "a", "", "a").sotw)
	if r, err := s.Recv(); err != nil || r.TypeUrl != eds || !slices.Equal(names(r), []string{"a"}) {
		t.Fatal(r, err)
	}
	d, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []request{delta(cds, ""), delta(eds, "", "a")} {
		if err := d.Send(r.delta); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := d.Recv(); err != nil || r.TypeUrl != eds || len(r.Resources) != 1 {
		t.Fatal(r, err)
	}
}

// TestVersionsOfProxies: what a client says of its version is a label of a metric, whatever it is,
// and makes no new one for ever.
func TestVersionsOfProxies(t *testing.T) {
	server, conn := serve(t,
		Config{Source: oneCluster(), Version: func(n *core.Node) string { return n.GetMetadata().GetFields()["VERSION"].GetStringValue() }})
	for i := range 2 * maxVersions {
		number := fmt.Sprint(i)
		s := open(t, conn)
		ask(t, s, sotw(withMetadata("VERSION", number+strings.Repeat("x", 63-len(number))+"é"), cds).sotw) // 64 bytes end within a letter
		receiveNames(t, s)
		if i%2 == 0 {
			if err := s.CloseSend(); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, func() bool {
		server.mu.Lock()
		defer server.mu.Unlock()
		return len(server.streams) == maxVersions && len(server.metrics.versions) <= maxVersions+1
	})
}

// TestLimitsOfPeers: what the streams of one address are together is bounded, too; what ends is
// given back.
func TestLimitsOfPeers(t *testing.T) {
	for _, test := range []struct {
		name  string
		edit  func(*budget.Limits)
		other request // a second stream asks for it, beside one that has 60 names and 3 KiB of metadata
		limit string
	}{
		{
			"within", func(l *budget.Limits) { l.Peer = budget.Peer{Streams: 2, Names: 60, Bytes: 32 << 10} },
			sotw(node(), eds, append(numbered(59, 0), "a")...), "",
		},
		{"streams", func(l *budget.Limits) { l.Peer.Streams = 1 }, sotw(node(), eds, "a"), "maxStreamsPerPeer"},
		{"new streams", func(l *budget.Limits) { l.Peer.NewStreams = 0.01 }, sotw(node(), eds, "a"), "maxNewStreamsPerPeer"},
		{"new streams of all", func(l *budget.Limits) { l.Total.NewStreams = 0.01 }, sotw(node(), eds, "a"), "maxRequestsPerSecond"},
		{"names", func(l *budget.Limits) { l.Peer.Names = 80 }, sotw(node(), eds, append(numbered(20, 1), "a")...), "maxNamesPerPeer"},
		{"bytes", func(l *budget.Limits) { l.Peer.Bytes = 7 << 10 }, sotw(padded(3<<10), eds, "a"), "maxBytesPerPeer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, conn := serve(t, Config{Source: oneCluster(), Limits: limits(test.edit), OrderPatience: -1})
			first := open(t, conn)
			ask(t, first, sotw(padded(3<<10), eds, append(numbered(59, 0), "a")...).sotw)
			receiveNames(t, first)
			err := say(t, dial(t, conn.Target()), test.other)
			if test.limit == "" && err != nil ||
				test.limit != "" && (status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), test.limit)) {
				t.Fatal(err)
			}
			if n := count(t, server.metrics.limits.WithLabelValues(test.limit)); test.limit != "" && n != 1 {
				t.Error(test.limit, "is counted", n, "times")
			}
			if err := first.CloseSend(); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() bool {
				u := server.peers.Uses()
				return len(u) == 0 || u[0].Names+u[0].Bytes == 0 || test.limit == ""
			})
			if strings.HasPrefix(test.name, "new streams") || test.name == "names" || test.limit == "" {
				return // the next may come in some minutes
			}
			if err := say(t, conn, test.other); err != nil {
				t.Error("when the first has ended:", err)
			}
		})
	}
}

// TestFastRequests: requests that come too fast are taken slowly, and none is lost; another
// stream's aren't slow for it.
func TestFastRequests(t *testing.T) {
	source := oneCluster()
	server, conn := serve(t, Config{Source: source, Limits: limits(func(l *budget.Limits) { l.Stream.Requests = 10 }), OrderPatience: -1})
	fast := open(t, conn)
	ask(t, fast, sotw(node(), cds).sotw)
	receiveNames(t, fast)
	go func() {
		for range 1000 { // at 10 a second it takes longer than the test
			if fast.Send(&discovery.DiscoveryRequest{TypeUrl: eds, ResourceNames: []string{"a"}}) != nil {
				return
			}
		}
	}()
	eventually(t, func() bool { return count(t, server.metrics.limits.WithLabelValues("maxRequestsPerStream")) > 2 })
	if err := say(t, conn, sotw(node(), cds), sotw(nil, eds, "a")); err != nil {
		t.Fatal(err)
	}
	source.change(func(r map[string]map[string]string) { r[cds]["b"] = "1" })
	for {
		r, err := fast.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.TypeUrl == cds && slices.Equal(names(r), []string{"a", "b"}) {
			return
		}
	}
}

// TestSilentStreams: a stream that has not asked for anything, and a connection without a stream,
// end after a while.
func TestSilentStreams(t *testing.T) {
	server, conn := serve(t, Config{Source: oneCluster(), Limits: limits(func(l *budget.Limits) { l.Stream.Idle = 2 * time.Second })})
	s := open(t, conn)
	if _, err := s.Recv(); status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "idleTimeout") {
		t.Fatal(err)
	}
	if n := count(t, server.metrics.limits.WithLabelValues("idleTimeout")); n != 1 {
		t.Error(n)
	}
	silent, err := net.Dial("tcp", conn.Target())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if err := silent.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, silent); err != nil {
		t.Fatal("it is not closed:", err)
	}
}

// TestHeaders: more of them than may be is refused.
func TestHeaders(t *testing.T) {
	server, conn := serve(t, Config{Source: oneCluster(), Limits: limits(func(l *budget.Limits) { l.Stream.HeaderBytes = 4 << 10 })})
	for _, c := range []struct {
		bytes int
		code  codes.Code
	}{{3 << 10, codes.OK}, {5 << 10, codes.InvalidArgument}, {1 << 20, codes.Internal}} {
		s, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(metadata.AppendToOutgoingContext(deadline(t),
			"x", strings.Repeat("x", c.bytes)))
		if err == nil {
			_ = s.Send(sotw(node(), cds).sotw)
			_, err = s.Recv()
		}
		if status.Code(err) != c.code {
			t.Errorf("%d bytes: %v", c.bytes, err)
		}
	}
	if n := count(t, server.metrics.limits.WithLabelValues("maxHeaderBytes")); n != 1 {
		t.Error(n)
	}
}

// closed reports whether the other end has closed a connection.
func closed(t *testing.T, c net.Conn) bool {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err := io.Copy(io.Discard, c)
	var timeout net.Error
	return !errors.As(err, &timeout) || !timeout.Timeout()
}

func dialSilently(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestConnectionsOfPeers: one too many is closed, and there is room again when another one has
// gone.
func TestConnectionsOfPeers(t *testing.T) {
	server, client := serve(t, Config{Source: oneCluster(), Limits: limits(func(l *budget.Limits) { l.Peer.Connections = 3 })})
	if err := say(t, client, sotw(node(), cds)); err != nil {
		t.Fatal(err)
	}
	first, second := dialSilently(t, client.Target()), dialSilently(t, client.Target())
	if third, err := net.Dial("tcp", client.Target()); err == nil {
		defer third.Close()
		eventually(t, func() bool { return closed(t, third) })
	}
	eventually(t, func() bool { return count(t, server.metrics.limits.WithLabelValues("maxConnectionsPerPeer")) > 0 })
	if n := count(t, server.metrics.limits.WithLabelValues("maxConnectionsPerPeer")); n != 1 {
		t.Error(n)
	}
	if closed(t, first) || closed(t, second) {
		t.Error("another one was closed")
	}
	first.Close()
	eventually(t, func() bool { return server.peers.Uses()[0].Connections == 2 })
	if err := say(t, dial(t, client.Target()), sotw(node(), cds)); err != nil {
		t.Error(err)
	}
}

// TestSilentConnectionsGiveWay: when there are as many connections as there may be, those that
// never had a stream go first, and clients get in.
func TestSilentConnectionsGiveWay(t *testing.T) {
	source := oneCluster()
	server, client := serve(t, Config{Source: source, Limits: limits(func(l *budget.Limits) { l.Total.Connections = 10 })})
	served := open(t, client)
	ask(t, served, sotw(node(), cds).sotw)
	receiveNames(t, served)
	for range 9 {
		dialSilently(t, client.Target())
	}
	eventually(t, func() bool { u := server.peers.Uses(); return u[0].Connections == 10 })
	patient := dial(t, client.Target(), grpc.WithDefaultCallOptions(grpc.WaitForReady(true))) // it tries again until others have been silent for long enough
	if err := say(t, patient, sotw(node(), cds)); err != nil {
		t.Fatal(err)
	}
	source.change(func(r map[string]map[string]string) { r[cds]["b"] = "1" })
	if got := receiveNames(t, served); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
}

// TestUnknownNames: names that nobody has an answer for reach the source in parts. A client that
// asks for what exists gets all of it; one that asks for what doesn't is refused before all of it
// was asked for.
func TestUnknownNames(t *testing.T) {
	for _, d := range []bool{false, true} {
		t.Run(protocolName(d), func(t *testing.T) {
			source := newTwin()
			source.unknown[eds] = map[string]bool{"nobody ever knows of it": true}
			for _, n := range numbered(100, 0) {
				source.unknown[eds][n] = true
			}
			server, conn := serve(t, Config{Source: source, OrderPatience: -1, Limits: limits(func(l *budget.Limits) { l.Stream.UnknownNames = 30 })})
			request := func(names ...string) request {
				if d {
					return delta(eds, names...)
				}
				return sotw(node(), eds, names...)
			}
			asked := make(chan error, 1)
			go func() { asked <- say(t, conn, request(numbered(100, 0)...)) }()
			for most, asks := 0, 0; ; { // it asks for what has no answer, and the source has one after a while
				eventually(t, func() bool { asks = len(source.wanted(eds)); return asks > most || len(asked) > 0 })
				if len(asked) > 0 {
					break
				}
				if asks > most+30 {
					t.Fatalf("asks for %d names, with %d answered", asks, most)
				}
				most = asks
				source.change(func(r map[string]map[string]string) {
					if r[eds] == nil {
						r[eds] = map[string]string{}
					}
					for _, n := range source.wantedLocked(eds) {
						r[eds][n] = "1"
						delete(source.unknown[eds], n)
					}
				})
			}
			if err := <-asked; err != nil {
				t.Fatal("those that exist:", err)
			}
			other := open(t, dial(t, conn.Target()))
			ask(t, other, sotw(node(), eds, "name-1").sotw)
			receiveNames(t, other)
			err := say(t, conn, request(numbered(50, 5)...), request(append(numbered(50, 5), "name-1")...))
			if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "maxUnknownNames") {
				t.Fatal("those that don't:", err)
			}
			if n := count(t, server.metrics.limits.WithLabelValues("maxUnknownNames")); n == 0 {
				t.Error("it isn't counted")
			}
			source.change(func(r map[string]map[string]string) { r[eds]["name-1"] = "2" })
			receiveNames(t, other)
		})
	}
}
