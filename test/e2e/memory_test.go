package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

const remembered = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: test}
spec:
  hosts: [%[1]s.example]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1}]
`

// TestShortOfMemory: clients that make the core keep more than it may are refused, and the heaviest
// ended, while one that asks for little goes on; when the heavy ones have gone all are let in
// again, though what they asked for would be kept for an hour.
func TestShortOfMemory(t *testing.T) {
	const limit = 128 << 20 // twice what it needs without clients, and more: of less it warns
	dir := t.TempDir()
	place := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), fmt.Appendf(nil, remembered, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	place("one")
	plane := mesh.Start(t, program, dir, "--memoryLimit", fmt.Sprint(limit), "--viewRetention", "1h")
	plane.Ready(t)
	light := openClusters(t, dial(t, plane))
	newcomer := dial(t, plane)
	light.until(t, "one.example")
	ctx, stop := context.WithCancel(t.Context())
	var heavies sync.WaitGroup
	for i := range 16 {
		conn := dial(t, plane)
		heavies.Go(func() {
			for ctx.Err() == nil {
				burden(ctx, conn, i)
			}
		})
	}
	defer heavies.Wait()
	defer stop()
	wait.For(t, "no stream may begin", func() error {
		return refusedFor("memoryLimit", visit(t, newcomer))
	})
	wait.For(t, "the heaviest are ended", func() error {
		if log := plane.Log(); !strings.Contains(log, "state=ending") || !strings.Contains(log, "stream ends") {
			return errors.New(plane.LastLines(5))
		}
		return nil
	})
	place("two")
	light.until(t, "two.example")

	stop()
	heavies.Wait()
	wait.For(t, "streams may begin", func() error { return visit(t, newcomer) })
	plane.Ready(t)
	if err := metricBetween(plane, "go_memstats_heap_sys_bytes", 0, 4*limit); err != nil {
		t.Error("the most that the heap had:", err)
	}
	place("three")
	light.until(t, "three.example")
}

// TestMemoryLimitWithoutRoom: a limit of which the core needs most without any client is said to be
// one when it starts.
func TestMemoryLimitWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	var all strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&all, "---"+remembered, fmt.Sprint("s", i))
	}
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	plane := mesh.Start(t, program, dir, "--memoryLimit", fmt.Sprint(32<<20), "--maxNamespaceBytes", fmt.Sprint(1<<30))
	plane.Ready(t)
	wait.For(t, "the core says so", func() error {
		if !strings.Contains(plane.Log(), "memoryLimit leaves little room") {
			return errors.New(plane.LastLines(5))
		}
		return nil
	})
}

func dial(t *testing.T, plane *mesh.Plane) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(plane.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// metricBetween says what a metric is unless it is from least to most.
func metricBetween(plane *mesh.Plane, name string, least, most float64) error {
	text, err := page.Get(plane.Monitoring, "/metrics")
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			if n, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil || n < least || n > most {
				return fmt.Errorf("%s is %s, not from %v to %v", name, strings.TrimSpace(value), least, most)
			}
			return nil
		}
	}
	return fmt.Errorf("there is no %s", name)
}

// burden asks for names of its own that take some 20 MB, until the stream ends.
func burden(ctx context.Context, conn *grpc.ClientConn, number int) {
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return
	}
	for part := range 10 {
		r := &discoveryv3.DeltaDiscoveryRequest{Node: burdenNode(), TypeUrl: endpointType}
		for i := range 1000 {
			r.ResourceNamesSubscribe = append(r.ResourceNamesSubscribe, fmt.Sprintf("%d-%d-%d-%s", number, part, i, strings.Repeat("x", 2000)))
		}
		if s.Send(r) != nil {
			break
		}
	}
	for err == nil {
		_, err = s.Recv()
	}
}

func burdenNode() *corev3.Node {
	return &corev3.Node{Id: "sidecar~127.0.0.9~memory.test~test.svc.cluster.local"}
}

// clusterStream is a stream that has all clusters.
type clusterStream struct {
	discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	leave context.CancelFunc
}

// openClusters asks for the clusters.
func openClusters(t *testing.T, conn *grpc.ClientConn) clusterStream {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Send(&discoveryv3.DiscoveryRequest{Node: burdenNode(), TypeUrl: clusterType}) // receiving says why
	return clusterStream{s, leave}
}

// visit asks for them, and leaves. It returns why there are none.
func visit(t *testing.T, conn *grpc.ClientConn) error {
	t.Helper()
	s := openClusters(t, conn)
	defer s.leave()
	_, err := s.Recv()
	return err
}

// until acknowledges what comes until a cluster of a host is there.
func (s clusterStream) until(t *testing.T, host string) {
	t.Helper()
	for {
		answer, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: clusterType, VersionInfo: answer.VersionInfo, ResponseNonce: answer.Nonce}); err != nil {
			t.Fatal(err)
		}
		for _, r := range answer.Resources {
			if strings.Contains(string(r.Value), host) {
				return
			}
		}
	}
}

func refusedFor(limit string, err error) error {
	if status.Code(err) != codes.Unavailable || !strings.Contains(fmt.Sprint(err), limit) {
		return fmt.Errorf("got %w", err)
	}
	return nil
}
