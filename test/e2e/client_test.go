package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"
)

const endpoints = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

// proxy is an xDS client (delta) that wants all clusters and some assignments, and notes what it
// gets.
type proxy struct {
	refuse func(name string) bool

	mu         sync.Mutex
	err        error
	resources  map[string]string // name -> version
	deliveries map[string]int
	sets       map[string][]string // assignment -> the sets of addresses that it has had, in order
}

// newProxy connects a client. It acknowledges what it gets, but for resources that refuse names.
func newProxy(t *testing.T, plane *mesh.Plane, id string, refuse func(string) bool, assignments ...string) *proxy {
	t.Helper()
	return newProxyOf(t, plane, id, nil, refuse, assignments...)
}

// newProxyOf connects one with more metadata.
func newProxyOf(t *testing.T, plane *mesh.Plane, id string, more map[string]any, refuse func(string) bool, assignments ...string) *proxy {
	t.Helper()
	return newProxyWith(t, plane, id, "", more, refuse, assignments...)
}

// newProxyWith connects one that shows a token, if there is one.
func newProxyWith(t *testing.T, plane *mesh.Plane, id, token string, more map[string]any, refuse func(string) bool, assignments ...string) *proxy {
	t.Helper()
	p := &proxy{refuse: refuse, resources: map[string]string{}, deliveries: map[string]int{}, sets: map[string][]string{}}
	conn, err := grpc.NewClient(plane.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	says := map[string]any{"NAMESPACE": "default"}
	maps.Copy(says, more)
	facts, err := structpb.NewStruct(says)
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{Id: "sidecar~10.9.0.1~" + id + ".default~default.svc.cluster.local", Metadata: facts}
	for _, r := range []*discoveryv3.DeltaDiscoveryRequest{
		{Node: node, TypeUrl: clusters}, {TypeUrl: endpoints, ResourceNamesSubscribe: assignments},
	} {
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	var ended sync.WaitGroup
	ended.Go(func() { p.run(stream) })
	t.Cleanup(func() { cancel(); ended.Wait(); _ = conn.Close() })
	return p
}

func (p *proxy) run(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient) {
	for {
		r, err := stream.Recv()
		if err != nil {
			p.mu.Lock()
			p.err = err
			p.mu.Unlock()
			return
		}
		ack := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}
		if name := p.take(r); name != "" {
			ack.ErrorDetail = &status.Status{Code: 3, Message: "I don't like " + name}
		}
		_ = stream.Send(ack)
	}
}

// take notes a response. It returns the name of a resource that is refused.
func (p *proxy) take(r *discoveryv3.DeltaDiscoveryResponse) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range r.Resources {
		if p.refuse != nil && p.refuse(one.Name) {
			return one.Name
		}
		p.deliveries[r.TypeUrl+" "+one.Name]++
		p.resources[one.Name] = one.Version
		var c clusterv3.Cluster
		if r.TypeUrl == clusters && one.Resource.UnmarshalTo(&c) == nil && c.LoadAssignment != nil {
			p.sets[one.Name] = append(p.sets[one.Name], strings.Join(addresses(c.LoadAssignment), " "))
		}
		var a endpointv3.ClusterLoadAssignment
		if r.TypeUrl == endpoints && one.Resource.UnmarshalTo(&a) == nil {
			p.sets[one.Name] = append(p.sets[one.Name], strings.Join(addresses(&a), " "))
		}
	}
	for _, name := range r.RemovedResources {
		delete(p.resources, name)
	}
	return ""
}

func addresses(a *endpointv3.ClusterLoadAssignment) []string {
	var all []string
	for _, l := range a.Endpoints {
		for _, e := range l.LbEndpoints {
			all = append(all, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	slices.Sort(all)
	return all
}

// has reports whether the client has a resource.
func (p *proxy) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resources[name] != ""
}

// got returns how often the client got each resource, as "TYPE NAME", and why it gets no more.
func (p *proxy) got() (map[string]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.deliveries), p.err
}

// want is an error if the client has not got a resource, or has it and should not.
func (p *proxy) want(name string, there bool) error {
	if p.has(name) != there {
		return fmt.Errorf("%s: %v", name, !there)
	}
	return nil
}
