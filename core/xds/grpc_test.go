package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	clusters "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpoints "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
)

// healthType is what clients of tests report their health by.
const healthType = "type.googleapis.com/agents.Health"

type sotwStream = grpc.BidiStreamingClient[discovery.DiscoveryRequest, discovery.DiscoveryResponse]

func open(t *testing.T, conn *grpc.ClientConn) sotwStream {
	t.Helper()
	s, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(t *testing.T, s sotwStream, r *discovery.DiscoveryRequest) {
	t.Helper()
	if err := s.Send(r); err != nil {
		t.Fatal(err)
	}
}

func receiveNames(t *testing.T, s sotwStream) []string {
	t.Helper()
	r, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return names(r)
}

func oneCluster() *twin {
	source := newTwin()
	source.change(func(r map[string]map[string]string) {
		r[cds], r[eds] = map[string]string{"a": "1"}, map[string]string{"a": "1"}
	})
	return source
}

// TestFirstRequest is row 14: who doesn't say who it is gets a code and a hint.
func TestFirstRequest(t *testing.T) {
	for _, test := range []struct {
		name   string
		node   *core.Node
		refuse error
		code   codes.Code
		hint   string
	}{
		{"no node", nil, nil, codes.InvalidArgument, "missing node information"},
		{"no id", &core.Node{}, nil, codes.InvalidArgument, "set node.id"},
		{"refused", node(), status.Error(codes.InvalidArgument, "missing parts in the node id"), codes.InvalidArgument, "missing parts"},
		{"not ready", node(), status.Error(codes.Unavailable, "not ready: x"), codes.Unavailable, "not ready"},
	} {
		t.Run(test.name, func(t *testing.T) {
			source := oneCluster()
			source.refuse = test.refuse
			_, conn := serve(t, Config{Source: source})
			s := open(t, conn)
			ask(t, s, &discovery.DiscoveryRequest{Node: test.node, TypeUrl: cds})
			_, err := s.Recv()
			if status.Code(err) != test.code || !strings.Contains(err.Error(), test.hint) {
				t.Fatal(err)
			}
		})
	}
}

// TestUnknownTypeAndHealth are rows 13 and 15: neither ends the stream.
func TestUnknownTypeAndHealth(t *testing.T) {
	source, registry := oneCluster(), prometheus.NewRegistry()
	server, conn := serve(t, Config{Source: source, Registerer: registry, HealthType: healthType})
	s := open(t, conn)
	ask(t, s, &discovery.DiscoveryRequest{TypeUrl: healthType}) // before any node: ignored
	ask(t, s, &discovery.DiscoveryRequest{Node: node(), TypeUrl: "type.googleapis.com/nobody.serves.This"})
	ask(t, s, &discovery.DiscoveryRequest{TypeUrl: healthType, ErrorDetail: &rpc.Status{Message: "unwell"}})
	ask(t, s, &discovery.DiscoveryRequest{TypeUrl: cds})
	if got := receiveNames(t, s); !slices.Equal(got, []string{"a"}) {
		t.Fatal(got)
	}
	if n := count(t, server.metrics.unknown); n != 1 {
		t.Fatal(n)
	}
	if o := source.reported(); len(o) != 1 || !o[0].Health || o[0].Refused != "unwell" {
		t.Fatal(o)
	}
	// a response is counted once gRPC has written it, which may be after its client had it
	wait.For(t, "its metrics", func() error {
		families, err := registry.Gather()
		if err != nil {
			return err
		}
		var have []string
		for _, f := range families {
			have = append(have, f.GetName())
		}
		for _, name := range []string{
			"coxswain_xds_streams", "coxswain_xds_responses_total", "coxswain_xds_send_seconds",
			"coxswain_xds_response_seconds", "coxswain_xds_queue_seconds", "coxswain_xds_response_bytes",
			"coxswain_xds_write_timeouts_total", "coxswain_xds_turns_total",
		} {
			if !slices.Contains(have, name) {
				return fmt.Errorf("no metric %s in %v", name, have)
			}
		}
		return nil
	})
}

func count(t *testing.T, c prometheus.Metric) float64 {
	t.Helper()
	m := &dto.Metric{}
	if err := c.Write(m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

// TestPerTypeServices: the type may be left out there, and each service has both protocols; Fetch
// has none.
func TestPerTypeServices(t *testing.T) {
	_, conn := serve(t, Config{Source: oneCluster()})
	s, err := clusters.NewClusterDiscoveryServiceClient(conn).StreamClusters(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	ask(t, s, &discovery.DiscoveryRequest{Node: node()})
	if got := receiveNames(t, s); !slices.Equal(got, []string{"a"}) {
		t.Fatal(got)
	}
	d, err := endpoints.NewEndpointDiscoveryServiceClient(conn).DeltaEndpoints(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Send(&discovery.DeltaDiscoveryRequest{Node: node(), ResourceNamesSubscribe: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	r, err := d.Recv()
	if err != nil || len(r.Resources) != 1 || r.Resources[0].Name != "a" || r.TypeUrl != eds {
		t.Fatal(r, err)
	}
	if _, err := clusters.NewClusterDiscoveryServiceClient(conn).FetchClusters(deadline(t),
		&discovery.DiscoveryRequest{}); status.Code(err) != codes.Unimplemented {
		t.Fatal(err)
	}
}

// TestHealthAndReflection go through the same codec.
func TestHealthAndReflection(t *testing.T) {
	_, conn := serve(t, Config{Source: oneCluster()})
	h, err := healthpb.NewHealthClient(conn).Check(deadline(t), &healthpb.HealthCheckRequest{})
	if err != nil || h.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatal(h, err)
	}
	r, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	answer, err := r.Recv()
	if err != nil || len(answer.GetListServicesResponse().GetService()) < 10 {
		t.Fatal(answer, err)
	}
}

// TestStreamsOfOneNode: a proxy that restarts has two streams for a while (trap 7).
func TestStreamsOfOneNode(t *testing.T) {
	source := oneCluster()
	server, conn := serve(t, Config{Source: source})
	a, b := open(t, conn), open(t, conn)
	for _, s := range []sotwStream{a, b} {
		ask(t, s, &discovery.DiscoveryRequest{Node: node(), TypeUrl: cds})
		receiveNames(t, s)
	}
	if n := len(server.Status()); n != 2 {
		t.Fatal(n)
	}
	a.CloseSend()
	if _, err := a.Recv(); err != io.EOF {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(server.Status()) == 1 })
	source.change(func(r map[string]map[string]string) { r[cds]["b"] = "1" })
	if got := receiveNames(t, b); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatal(got)
	}
}

// TestChangesWhileStreamsBegin: no change that comes while a stream registers is lost (trap 7).
func TestChangesWhileStreamsBegin(t *testing.T) {
	source := oneCluster()
	_, conn := serve(t, Config{Source: source})
	for i := range 50 {
		s := open(t, conn)
		done := make(chan struct{})
		go func() {
			defer close(done)
			source.change(func(r map[string]map[string]string) { r[cds]["a"] = fmt.Sprint("v", i) })
		}()
		ask(t, s, &discovery.DiscoveryRequest{Node: node(), TypeUrl: cds})
		for got := ""; got != fmt.Sprint("v", i); {
			r, err := s.Recv()
			if err != nil {
				t.Fatal(err)
			}
			_, content := lastField(r.Resources[0].Value, 99)
			got = string(content)
		}
		<-done
		s.CloseSend()
	}
}

// TestRateLimit: a stream above the rate waits and is refused after a second.
func TestRateLimit(t *testing.T) {
	_, conn := serve(t, Config{Source: oneCluster(), Limits: limits(func(l *budget.Limits) { l.Total.NewStreams = 0.01 })})
	first, second := open(t, conn), open(t, conn)
	for _, s := range []sotwStream{first, second} {
		// io.EOF: the stream was refused already; Recv says why.
		if err := s.Send(&discovery.DiscoveryRequest{Node: node(), TypeUrl: cds}); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	_, one := first.Recv()
	_, two := second.Recv()
	got := []codes.Code{status.Code(one), status.Code(two)}
	slices.Sort(got)
	if !slices.Equal(got, []codes.Code{codes.OK, codes.ResourceExhausted}) {
		t.Fatal(one, two)
	}
}

// TestSecretsByIdentity: a stream gets sensitive types if it is known who it is (row 11).
func TestSecretsByIdentity(t *testing.T) {
	source := oneCluster()
	source.change(func(r map[string]map[string]string) { r[sds] = map[string]string{"default": "1"} })
	_, conn := serve(t, Config{Source: source, Identify: func(context.Context, *core.Node) ([]string, error) { return []string{"spiffe://a"}, nil }})
	s := open(t, conn)
	ask(t, s, &discovery.DiscoveryRequest{Node: node(), TypeUrl: sds, ResourceNames: []string{"default"}})
	if got := receiveNames(t, s); !slices.Equal(got, []string{"default"}) {
		t.Fatal(got)
	}
}

// TestStop: a server that stops ends its streams with Unavailable, so that clients go elsewhere,
// and leaves no connection behind.
func TestStop(t *testing.T) {
	source := oneCluster()
	server, err := New(Config{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	address, stop := start(t, server)
	t.Cleanup(stop)
	s := open(t, dial(t, address))
	ask(t, s, &discovery.DiscoveryRequest{Node: node(), TypeUrl: cds})
	receiveNames(t, s)
	stop()
	if _, err := s.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the control plane is stopping") {
		t.Errorf("the stream ended with %v", err)
	}
	source.mu.Lock()
	defer source.mu.Unlock()
	if len(source.connections) != 0 {
		t.Error("connections are left")
	}
}

// TestSourceEndsStream: a source may refuse a node after it has looked at it.
func TestSourceEndsStream(t *testing.T) {
	source := oneCluster()
	_, conn := serve(t, Config{Source: source})
	s := open(t, conn)
	ask(t, s, &discovery.DiscoveryRequest{Node: node(), TypeUrl: cds})
	receiveNames(t, s)
	source.mu.Lock()
	source.failed = status.Error(codes.InvalidArgument, "no")
	source.mu.Unlock()
	source.change(func(map[string]map[string]string) {})
	if _, err := s.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Fatal(err)
	}
}

// TestConfig checks what New refuses.
func TestConfig(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Fatal("no source")
	}
	if _, err := New(Config{Source: newTwin(), Limits: limits(func(l *budget.Limits) { l.Total.NewStreams = -1 })}); err == nil {
		t.Fatal("negative rate")
	}
	registry := prometheus.NewRegistry()
	if _, err := New(Config{Source: newTwin(), Registerer: registry}); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Source: newTwin(), Registerer: registry}); err == nil {
		t.Fatal("registered twice")
	}
}
