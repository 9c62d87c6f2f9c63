// Package otlp takes traces in tests, as a collector of OpenTelemetry does.
package otlp

import (
	"context"
	"maps"
	"net"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Collector takes spans until the test ends.
type Collector struct {
	// URL is where it listens.
	URL string

	sink sink
}

type sink struct {
	collector.UnimplementedTraceServiceServer
	hang   <-chan struct{}
	mu     sync.Mutex
	traces map[string]Trace // by id
}

// Start starts one on loopback. It answers nobody before hang is closed, if that isn't nil.
func Start(t testing.TB, hang <-chan struct{}) *Collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{URL: "http://" + l.Addr().String(), sink: sink{hang: hang, traces: map[string]Trace{}}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, &c.sink)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return c
}

// Trace has the last span of each service and name of a trace, as "SERVICE: NAME".
type Trace map[string]*tracepb.Span

// Below reports whether a span is there, right below another.
func (t Trace) Below(span, parent string) bool {
	return t[span] != nil && t[parent] != nil && string(t[span].ParentSpanId) == string(t[parent].SpanId)
}

// Traces returns what has come.
func (c *Collector) Traces() (all []Trace) {
	c.sink.mu.Lock()
	defer c.sink.mu.Unlock()
	for _, t := range c.sink.traces {
		all = append(all, maps.Clone(t))
	}
	return all
}

// Export implements the service of collectors.
func (s *sink) Export(ctx context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	if s.hang != nil {
		select {
		case <-s.hang:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range r.ResourceSpans {
		service := ""
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				id := string(span.TraceId)
				if s.traces[id] == nil {
					s.traces[id] = Trace{}
				}
				s.traces[id][service+": "+span.Name] = span
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}
