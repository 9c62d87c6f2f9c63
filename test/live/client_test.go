package live

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// client is a proxy that keeps what it gets. It asks for what an Envoy would: all clusters and
// listeners, the load assignments and routes that these name.
type client struct {
	name string
	mu   sync.Mutex
	// has are resources by type and name.
	has map[string]map[string][]byte
	// wanted names by type, and names that were asked for and have not come.
	wanted, missing map[string]map[string]bool
	// faults are pushes of nothing new, and the error that ended the stream.
	faults []string
	// warming are clusters that have changed: an Envoy waits for their load assignments again,
	// changed or not.
	warming map[string]bool
	// answered types: the first answers may come at any time.
	answered map[string]bool
	say      func(typeURL, nonce string, more, fewer []string) error
}

func newClient(name string) *client {
	c := &client{
		name: name, has: map[string]map[string][]byte{}, wanted: map[string]map[string]bool{},
		missing: map[string]map[string]bool{}, answered: map[string]bool{},
		warming: map[string]bool{},
	}
	for _, t := range []string{clusterType, endpointType, listenerType, routeType} {
		c.has[t], c.wanted[t], c.missing[t] = map[string][]byte{}, map[string]bool{}, map[string]bool{}
	}
	return c
}

// connect begins a stream that ends with the test.
func connect(t *testing.T, address, protocol string, p recordedProxy) *client {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c, ads := newClient(p.name+" ("+protocol+")"), discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	run := c.sotw
	if protocol == "delta" {
		run = c.delta
	}
	receive, err := run(ctx, ads, p.node)
	if err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			if err := receive(); err != nil {
				if ctx.Err() == nil {
					c.fault("the stream ends: " + err.Error())
				}
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); ended.Wait(); _ = conn.Close() })
	return c
}

func (c *client) sotw(ctx context.Context, ads discoveryv3.AggregatedDiscoveryServiceClient, node *corev3.Node) (func() error, error) {
	s, err := ads.StreamAggregatedResources(ctx)
	if err != nil {
		return nil, err
	}
	nonces := map[string]string{}
	c.say = func(typeURL, nonce string, _, _ []string) error {
		if nonce != "" {
			nonces[typeURL] = nonce
		}
		return s.Send(&discoveryv3.DiscoveryRequest{
			TypeUrl: typeURL, ResponseNonce: nonces[typeURL],
			ResourceNames: slices.Sorted(maps.Keys(c.wanted[typeURL])),
		})
	}
	for _, typeURL := range []string{clusterType, listenerType} {
		if err := s.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL}); err != nil {
			return nil, err
		}
	}
	return func() error {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		got := map[string][]byte{}
		for _, x := range r.Resources {
			got[nameOf(x)] = x.Value
		}
		var gone []string
		if r.TypeUrl == clusterType || r.TypeUrl == listenerType {
			gone = without(c.has[r.TypeUrl], got)
		}
		return c.take(r.TypeUrl, r.Nonce, got, gone, false)
	}, nil
}

func (c *client) delta(ctx context.Context, ads discoveryv3.AggregatedDiscoveryServiceClient, node *corev3.Node) (func() error, error) {
	s, err := ads.DeltaAggregatedResources(ctx)
	if err != nil {
		return nil, err
	}
	c.say = func(typeURL, nonce string, more, fewer []string) error {
		return s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResponseNonce: nonce, ResourceNamesSubscribe: more, ResourceNamesUnsubscribe: fewer})
	}
	for _, typeURL := range []string{clusterType, listenerType} {
		if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: typeURL}); err != nil {
			return nil, err
		}
	}
	return func() error {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		got := map[string][]byte{}
		for _, x := range r.Resources {
			got[x.Name] = x.Resource.Value
		}
		return c.take(r.TypeUrl, r.Nonce, got, r.RemovedResources, true)
	}, nil
}

func without[V any](has, got map[string]V) []string {
	var out []string
	for name := range has {
		if _, ok := got[name]; !ok {
			out = append(out, name)
		}
	}
	return out
}

// take keeps an answer, accepts it, and asks for what it names. Where each is a change, each must
// be one; otherwise one of them.
func (c *client) take(typeURL, nonce string, got map[string][]byte, gone []string, each bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var same []string
	named := typeURL == endpointType || typeURL == routeType
	for name, body := range got {
		if named && !c.wanted[typeURL][name] {
			continue // it was on its way when this proxy gave it up
		}
		if had, ok := c.has[typeURL][name]; !ok || !bytes.Equal(had, body) {
			c.warming[name] = typeURL == clusterType || c.warming[name]
		} else if typeURL != endpointType || !c.warming[name] {
			same = append(same, name)
		} else {
			delete(c.warming, name)
		}
		c.has[typeURL][name] = body
		delete(c.missing[typeURL], name)
	}
	for _, name := range gone {
		delete(c.has[typeURL], name)
		delete(c.missing[typeURL], name)
	}
	if len(same) > 0 && (each || len(same) == len(got) && len(gone) == 0) && c.answered[typeURL] {
		c.faults = append(c.faults, fmt.Sprintf("%s: pushed though they were so before: %s", typeURL, strings.Join(same, ", ")))
	}
	c.answered[typeURL] = true
	if err := c.say(typeURL, nonce, nil, nil); err != nil {
		return err
	}
	switch typeURL {
	case clusterType:
		return c.want(endpointType, outbound(c.has[clusterType]))
	case listenerType:
		return c.want(routeType, routesOf(c.has[listenerType]))
	}
	return nil
}

func outbound(clusters map[string][]byte) map[string]bool {
	out := map[string]bool{}
	for name := range clusters {
		if strings.HasPrefix(name, "outbound") {
			out[name] = true
		}
	}
	return out
}

func routesOf(listeners map[string][]byte) map[string]bool {
	out := map[string]bool{}
	for _, body := range listeners {
		var l listenerv3.Listener
		if proto.Unmarshal(body, &l) != nil {
			continue
		}
		for _, chain := range append(l.FilterChains, l.DefaultFilterChain) {
			for _, f := range chain.GetFilters() {
				var m hcmv3.HttpConnectionManager
				if f.GetTypedConfig().MessageIs(&m) && f.GetTypedConfig().UnmarshalTo(&m) == nil && m.GetRds() != nil {
					out[m.GetRds().RouteConfigName] = true
				}
			}
		}
	}
	return out
}

// want asks for names of a type, and for others no more.
func (c *client) want(typeURL string, names map[string]bool) error {
	more, fewer := without(names, c.wanted[typeURL]), without(c.wanted[typeURL], names)
	if len(more)+len(fewer) == 0 {
		return nil
	}
	for _, name := range more {
		c.missing[typeURL][name] = true
	}
	for _, name := range fewer {
		delete(c.missing[typeURL], name)
		delete(c.has[typeURL], name)
	}
	c.wanted[typeURL] = names
	return c.say(typeURL, "", more, fewer)
}

func (c *client) fault(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, text)
}

func (c *client) complaints() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.faults)
}

// snapshot is all that it has; an error while something is missing.
func (c *client) snapshot() (map[string][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string][]byte{}
	for typeURL, resources := range c.has {
		if !c.answered[typeURL] && (typeURL == clusterType || typeURL == listenerType) || len(c.missing[typeURL]) > 0 {
			return nil, fmt.Errorf("%s: no answer for %s: %v", c.name, typeURL, slices.Sorted(maps.Keys(c.missing[typeURL])))
		}
		for name, body := range resources {
			out[typeURL+" "+name] = body
		}
	}
	return out, nil
}
