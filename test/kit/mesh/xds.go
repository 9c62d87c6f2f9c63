package mesh

import (
	"context"
	"slices"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Fetch asks for all resources of a type, as the node that a bootstrap (JSON) names, and returns
// them.
func (p *Plane) Fetch(t testing.TB, bootstrap []byte, typeURL string) []*anypb.Any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, err := grpc.NewClient(p.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: node(t, bootstrap), TypeUrl: typeURL}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatalf("xDS answer for %s: %v", typeURL, err)
	}
	return answer.Resources
}

// Follow keeps a stream open until the test ends that has all resources of a type and acknowledges
// what comes, as the node that a bootstrap (JSON) names. It returns the node's id once the first
// answer is there.
func (p *Plane) Follow(t testing.TB, bootstrap []byte, typeURL string) string {
	t.Helper()
	conn, err := grpc.NewClient(p.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	request := &discoveryv3.DiscoveryRequest{Node: node(t, bootstrap), TypeUrl: typeURL}
	acknowledged := make(chan error, 1)
	if err := stream.Send(request); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			answer, err := stream.Recv()
			select {
			case acknowledged <- err:
			default:
			}
			if err != nil {
				return
			}
			_ = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, VersionInfo: answer.VersionInfo, ResponseNonce: answer.Nonce})
		}
	}()
	select {
	case err := <-acknowledged:
		if err != nil {
			t.Fatalf("xDS answer for %s: %v", typeURL, err)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("no xDS answer for %s", typeURL)
	}
	return request.Node.Id
}

// Names of resources that have a field `name`, sorted.
func Names(t testing.TB, resources []*anypb.Any) []string {
	t.Helper()
	names := make([]string, 0, len(resources))
	for _, r := range resources {
		m, err := r.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		named, ok := m.(interface {
			proto.Message
			GetName() string
		})
		if !ok {
			t.Fatalf("%s has no name", r.TypeUrl)
		}
		names = append(names, named.GetName())
	}
	slices.Sort(names)
	return names
}
