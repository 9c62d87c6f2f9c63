package registries

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// endpoint is what a client knows of one.
type endpoint struct {
	weight  uint32
	healthy bool
}

// client is an xDS client (state of the world) that wants all clusters and some of their endpoints,
// and notes what it gets.
type client struct {
	stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient

	mu       sync.Mutex
	err      error
	wants    []string
	version  string
	nonce    string
	clusters map[string]bool
	// sets are the healthy and other endpoints of clusters, by address; first is when an address
	// came first.
	sets  map[string]map[string]endpoint
	first map[string]time.Time
	// losses say when a set or a cluster that was there went, of those that are guarded.
	guarded map[string]bool
	losses  []string
}

// connect connects one. Sets of guarded clusters must never be empty once they aren't; those of
// other clusters that it wants may.
func connect(t testing.TB, address string, guarded, others []string) *client {
	t.Helper()
	c := &client{
		wants: slices.Concat(guarded, others), clusters: map[string]bool{}, sets: map[string]map[string]endpoint{},
		first: map[string]time.Time{}, guarded: map[string]bool{},
	}
	for _, name := range guarded {
		c.guarded[name] = true
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stream, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": "default"})
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{Id: "sidecar~127.0.0.1~watcher.default~default.svc.cluster.local", Metadata: metadata}
	for _, r := range []*discoveryv3.DiscoveryRequest{{Node: node, TypeUrl: clusterType}, {TypeUrl: endpointType, ResourceNames: c.wants}} {
		if err := c.stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	var ended sync.WaitGroup
	ended.Go(c.run)
	t.Cleanup(func() { cancel(); ended.Wait(); _ = conn.Close() })
	return c
}

func (c *client) run() {
	for {
		r, err := c.stream.Recv()
		at := time.Now()
		c.mu.Lock()
		if err == nil {
			ack := &discoveryv3.DiscoveryRequest{TypeUrl: r.TypeUrl, VersionInfo: r.VersionInfo, ResponseNonce: r.Nonce}
			if err = c.take(r, at); r.TypeUrl == endpointType {
				c.version, c.nonce = r.VersionInfo, r.Nonce
				ack.ResourceNames = c.wants
			}
			if err == nil {
				err = c.stream.Send(ack)
			}
		}
		c.err = err
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// want asks for the endpoints of further clusters, which are guarded.
func (c *client) want(t testing.TB, names ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wants = append(slices.Clip(c.wants), names...)
	for _, name := range names {
		c.guarded[name] = true
	}
	if err := c.stream.Send(&discoveryv3.DiscoveryRequest{
		TypeUrl: endpointType, VersionInfo: c.version, ResponseNonce: c.nonce, ResourceNames: c.wants,
	}); err != nil {
		t.Fatal(err)
	}
}

// take notes a response; mu is held.
func (c *client) take(r *discoveryv3.DiscoveryResponse, at time.Time) error {
	if r.TypeUrl == clusterType {
		now := map[string]bool{}
		for _, one := range r.Resources {
			var cluster clusterv3.Cluster
			if err := proto.Unmarshal(one.Value, &cluster); err != nil {
				return err
			}
			now[cluster.Name] = true
		}
		for name := range c.clusters {
			if c.guarded[name] && !now[name] {
				c.losses = append(c.losses, fmt.Sprintf("%s: cluster %s went", at.Format(time.StampMilli), name))
			}
		}
		c.clusters = now
		return nil
	}
	for _, one := range r.Resources {
		var a endpointv3.ClusterLoadAssignment
		if err := proto.Unmarshal(one.Value, &a); err != nil {
			return err
		}
		now := map[string]endpoint{}
		for _, l := range a.Endpoints {
			for _, e := range l.LbEndpoints {
				address := e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
				healthy := e.HealthStatus == corev3.HealthStatus_UNKNOWN || e.HealthStatus == corev3.HealthStatus_HEALTHY
				now[address] = endpoint{max(e.GetLoadBalancingWeight().GetValue(), 1), healthy}
				if _, known := c.first[address]; !known {
					c.first[address] = at
				}
			}
		}
		if was := len(c.sets[a.ClusterName]); was > 0 && len(now) == 0 && c.guarded[a.ClusterName] {
			c.losses = append(c.losses, fmt.Sprintf("%s: %s had %d endpoints and was emptied", at.Format(time.StampMilli), a.ClusterName, was))
		}
		c.sets[a.ClusterName] = now
	}
	return nil
}

// set returns the endpoints of a cluster.
func (c *client) set(cluster string) map[string]endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.sets[cluster])
}

// until waits until the healthy endpoints of a cluster are at these addresses.
func (c *client) until(t testing.TB, what, cluster string, addresses ...string) {
	t.Helper()
	slices.Sort(addresses)
	wait.For(t, fmt.Sprintf("%s: %s has the healthy endpoints %v", what, cluster, addresses), func() error {
		if err := c.failed(); err != nil {
			t.Fatalf("the client's stream has ended: %v", err)
		}
		if got := c.healthy(cluster); !slices.Equal(got, addresses) {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
}

// healthy returns the addresses of a cluster's healthy endpoints, sorted.
func (c *client) healthy(cluster string) (all []string) {
	for address, e := range c.set(cluster) {
		if e.healthy {
			all = append(all, address)
		}
	}
	slices.Sort(all)
	return all
}

// count returns how many endpoints clusters have.
func (c *client) count(clusters []string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range clusters {
		n += len(c.sets[name])
	}
	return n
}

// arrived returns when an address came first.
func (c *client) arrived(address string) (at time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok = c.first[address]
	return at, ok
}

func (c *client) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// lost returns what was lost since it was asked last.
func (c *client) lost() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.losses
	c.losses = nil
	return all
}
