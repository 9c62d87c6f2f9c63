package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
)

// methods of the services, for the state of the world and for delta.
var methods = map[string][2]string{
	"ads": {
		"/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
		"/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
	},
	"cds": {"/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters", "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters"},
	"eds": {"/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints", "/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints"},
	"lds": {"/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners", "/envoy.service.listener.v3.ListenerDiscoveryService/DeltaListeners"},
	"rds": {"/envoy.service.route.v3.RouteDiscoveryService/StreamRoutes", "/envoy.service.route.v3.RouteDiscoveryService/DeltaRoutes"},
	"sds": {"/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets", "/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets"},
	"ecds": {
		"/envoy.service.extension.v3.ExtensionConfigDiscoveryService/StreamExtensionConfigs",
		"/envoy.service.extension.v3.ExtensionConfigDiscoveryService/DeltaExtensionConfigs",
	},
	"rtds": {"/envoy.service.runtime.v3.RuntimeDiscoveryService/StreamRuntime", "/envoy.service.runtime.v3.RuntimeDiscoveryService/DeltaRuntime"},
}

// patience with the server: it is busy with other tests, perhaps.
const patience = 30 * time.Second

// response of either protocol.
type response struct {
	kind, nonce, version string
	// resources are contents by name, versions those of delta.
	resources, versions map[string]string
	removed             []string
}

// String is how scenarios write it.
func (r *response) String() string {
	words := make([]string, 0, len(r.resources)+len(r.removed)+1)
	for name, content := range r.resources {
		words = append(words, name+"="+content)
	}
	slices.Sort(words)
	for _, name := range slices.Sorted(slices.Values(r.removed)) {
		words = append(words, "-"+name)
	}
	return strings.Join(append([]string{r.kind}, words...), " ")
}

// request of either protocol.
type request struct {
	kind, nonce, version   string
	names                  []string
	subscribe, unsubscribe []string
	initial                map[string]string
	refused                *status.Status
}

// stream is a client's.
type stream struct {
	grpc.ClientStream
	delta    bool
	started  bool
	received chan *response
	err      error // once received is closed
	stop     context.CancelFunc
}

// open opens a stream of a service.
func open(conn *grpc.ClientConn, service string, delta bool) (*stream, error) {
	ctx, stop := context.WithCancel(context.Background())
	method := methods[service][0]
	if delta {
		method = methods[service][1]
	}
	c, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		stop()
		return nil, err
	}
	s := &stream{ClientStream: c, delta: delta, received: make(chan *response, 100), stop: stop}
	go s.run()
	return s, nil
}

func (s *stream) run() {
	defer close(s.received)
	for {
		r, err := s.receive()
		if err != nil {
			s.err = err
			return
		}
		s.received <- r
	}
}

func (s *stream) receive() (*response, error) {
	r := &response{resources: map[string]string{}, versions: map[string]string{}}
	if !s.delta {
		m := &discoveryv3.DiscoveryResponse{}
		if err := s.RecvMsg(m); err != nil {
			return nil, err
		}
		r.kind, r.nonce, r.version = kindOf(m.TypeUrl), m.Nonce, m.VersionInfo
		for _, packed := range m.Resources {
			if err := r.add(packed, ""); err != nil {
				return nil, err
			}
		}
		return r, nil
	}
	m := &discoveryv3.DeltaDiscoveryResponse{}
	if err := s.RecvMsg(m); err != nil {
		return nil, err
	}
	r.kind, r.nonce, r.removed = kindOf(m.TypeUrl), m.Nonce, m.RemovedResources
	for _, resource := range m.Resources {
		if err := r.add(resource.Resource, resource.Version); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *response) add(packed *anypb.Any, version string) error {
	if packed.GetTypeUrl() != kinds[r.kind] {
		return fmt.Errorf("a response of %s has a resource of %s", kinds[r.kind], packed.GetTypeUrl())
	}
	name, content, err := read(packed)
	if err != nil {
		return err
	}
	if _, twice := r.resources[name]; twice {
		return fmt.Errorf("a response has %s twice", name)
	}
	r.resources[name], r.versions[name] = content, version
	return nil
}

// send sends a request, the first with who asks.
func (s *stream) send(r request) error {
	var node *corev3.Node
	if !s.started {
		node, s.started = &corev3.Node{Id: "conformance", Cluster: "conformance"}, true
	}
	if s.delta {
		return s.SendMsg(&discoveryv3.DeltaDiscoveryRequest{
			Node: node, TypeUrl: kinds[r.kind], ResponseNonce: r.nonce, ErrorDetail: r.refused,
			ResourceNamesSubscribe: r.subscribe, ResourceNamesUnsubscribe: r.unsubscribe, InitialResourceVersions: r.initial,
		})
	}
	return s.SendMsg(&discoveryv3.DiscoveryRequest{
		Node: node, TypeUrl: kinds[r.kind], ResponseNonce: r.nonce, VersionInfo: r.version, ErrorDetail: r.refused, ResourceNames: r.names,
	})
}

// next waits for a response.
func (s *stream) next() (*response, error) {
	select {
	case r, ok := <-s.received:
		if !ok {
			return nil, fmt.Errorf("the stream has ended: %w", s.err)
		}
		return r, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("nothing after %v", patience)
	}
}

// finish ends it from the client's side, and returns what the server says until it ends it too.
func (s *stream) finish() ([]*response, error) {
	defer s.stop()
	if err := s.CloseSend(); err != nil {
		return nil, err
	}
	var rest []*response
	for {
		select {
		case r, ok := <-s.received:
			if ok {
				rest = append(rest, r)
				continue
			}
			if errors.Is(s.err, io.EOF) {
				return rest, nil
			}
			return rest, fmt.Errorf("the server ends the stream: %w", s.err)
		case <-time.After(patience):
			return rest, fmt.Errorf("the server has not ended a stream that its client has ended, after %v", patience)
		}
	}
}
