package xds

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// server says what a test wants it to say, also what no real one would.
type server struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	address string
	stop    func()

	mu sync.Mutex
	// requests are all that came, of all streams; headers those of the last stream.
	requests []*discovery.DiscoveryRequest
	headers  metadata.MD
	// says are answers that wait to be said; streams is how many there were, and live ends the
	// present one.
	says    chan *discovery.DiscoveryResponse
	streams int
	live    context.CancelCauseFunc
	// refuse is why each stream ends at once whose authorization is not accept.
	refuse error
	accept string
	// on is told of each request.
	on func(*discovery.DiscoveryRequest) *discovery.DiscoveryResponse
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{says: make(chan *discovery.DiscoveryResponse, 1000)}
	s.address = wait.Address(t) // it is left and taken again
	s.again(t)
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *server) serve(l net.Listener) {
	g := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(g, s)
	var done sync.WaitGroup
	done.Go(func() { _ = g.Serve(l) })
	s.stop = func() { g.Stop(); done.Wait() }
}

// again serves at its address, the first time or after stop.
func (s *server) again(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.serve(l)
}

func (s *server) StreamAggregatedResources(stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	ctx, end := context.WithCancelCause(stream.Context())
	defer end(nil)
	s.mu.Lock()
	s.streams++
	s.live = end
	s.headers, _ = metadata.FromIncomingContext(ctx)
	refuse, on := s.refuse, s.on
	refused := s.accept != "" && !slices.Equal(s.headers.Get("authorization"), []string{s.accept})
	s.mu.Unlock()
	if refuse != nil && refused {
		return refuse
	}
	answers := make(chan *discovery.DiscoveryResponse, 1000) // this stream's alone
	go func() {
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.requests = append(s.requests, r)
			s.mu.Unlock()
			if on == nil {
				continue
			}
			if m := on(r); m != nil {
				answers <- m
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-answers:
			if err := stream.Send(m); err != nil {
				return err
			}
		case m := <-s.says:
			if err := stream.Send(m); err != nil {
				return err
			}
		}
	}
}

// cut ends the stream with an error.
func (s *server) cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live(err)
}

func (s *server) seen(is func(*discovery.DiscoveryRequest) bool) (list []*discovery.DiscoveryRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if is(r) {
			list = append(list, r)
		}
	}
	return list
}

func (s *server) streamed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams
}

func (s *server) with(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// run runs the plugin against it until the test's end.
func (s *server) run(t *testing.T, config map[string]any) *shard {
	t.Helper()
	whole := map[string]any{"address": "xds://" + s.address, "maxRetry": "1s"}
	maps.Copy(whole, config)
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	c, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	out := newShard()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := (&source{config: c}).Run(ctx, out); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return out
}

// empty answers each first request of a type with nothing.
func empty(r *discovery.DiscoveryRequest) *discovery.DiscoveryResponse {
	if r.ResponseNonce != "" {
		return nil
	}
	return say(r.TypeUrl, "1")
}

func say(typeURL, version string, resources ...*anypb.Any) *discovery.DiscoveryResponse {
	return &discovery.DiscoveryResponse{TypeUrl: typeURL, VersionInfo: version, Nonce: fmt.Sprintf("%s of %s", version, typeURL), Resources: resources}
}

// replies are requests that answer something of a type.
func replies(typeURL string) func(*discovery.DiscoveryRequest) bool {
	return func(r *discovery.DiscoveryRequest) bool { return r.TypeUrl == typeURL && r.ResponseNonce != "" }
}

var allKinds = len(kinds.All())
