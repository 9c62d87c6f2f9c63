package grpc

import (
	"context"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/credentials/insecure"
)

// request asks for a listener by name, and returns the first answer.
func request(t *testing.T, address, name string) (*discoveryv3.DiscoveryResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn := connect(t, address, insecure.NewCredentials())
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return nil, err
	}
	err = s.Send(&discoveryv3.DiscoveryRequest{
		Node: &corev3.Node{Id: "by-hand"}, TypeUrl: "type.googleapis.com/envoy.config.listener.v3.Listener", ResourceNames: []string{name},
	})
	if err != nil {
		return nil, err
	}
	return s.Recv()
}
