package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

const envoy = "type.googleapis.com/envoy."

// Types that Envoy asks for, in the order in which it does.
const (
	clusters   = envoy + "config.cluster.v3.Cluster"
	endpoints  = envoy + "config.endpoint.v3.ClusterLoadAssignment"
	listeners  = envoy + "config.listener.v3.Listener"
	routes     = envoy + "config.route.v3.RouteConfiguration"
	extensions = envoy + "config.core.v3.TypedExtensionConfig"
)

var order = []string{clusters, endpoints, listeners, routes, extensions}

// answers are a proxy's resources: type URL -> name -> body. What proxies have in common they
// share.
type answers map[string]map[string]*body

// body of a resource, and the one number of all that have its bytes.
type body struct {
	number int
	any    *anypb.Any
	// version is that of the whole resource, where any is it without what is secret in it.
	version string
}

// ask asks for what a proxy asks for, and for what that names.
func ask(ctx context.Context, conn *grpc.ClientConn, proxy Proxy, patience time.Duration, keep func(*anypb.Any) *body) (answers, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A context with a deadline would tell it to the server, which could end the stream first.
	late := time.AfterFunc(patience, func() { cancel(fmt.Errorf("no answer in %s (--timeout)", patience)) })
	defer late.Stop()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return nil, fault(ctx, "connecting", err)
	}
	got, wanted, node := answers{}, proxy.wants(), proxy.Node
	for _, typeURL := range wanted.order() {
		if len(wanted[typeURL]) == 0 {
			continue
		}
		list := slices.Sorted(maps.Keys(wanted[typeURL]))
		if len(list) == 1 && list[0] == all {
			list = nil // as older clients ask
		}
		request := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: list, Node: node}
		node = nil // once
		if err := stream.Send(request); err != nil {
			return nil, fault(ctx, typeURL, err)
		}
		if got[typeURL], err = answered(stream, typeURL, wanted, keep); err != nil {
			return nil, fault(ctx, typeURL, err)
		}
	}
	return got, nil
}

// answered takes the answer to a question about a type, and notes what it names.
func answered(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient, typeURL string,
	wanted names, keep func(*anypb.Any) *body) (map[string]*body, error) {
	got := map[string]*body{}
	for missing := len(wanted[typeURL]); missing > 0; {
		r, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}); err != nil {
			return nil, err
		}
		if r.TypeUrl != typeURL {
			continue // said again after another type, with the same
		}
		for _, res := range r.Resources {
			if got[res.Name] == nil {
				missing--
			}
			got[res.Name] = keep(res.Resource)
			if err := refer(res.Resource, wanted); err != nil {
				return nil, fmt.Errorf("%s: %w", res.Name, err)
			}
		}
		missing -= len(r.RemovedResources)
		if wanted[typeURL][all] { // all of them, at once
			missing = 0
		}
	}
	return got, nil
}

// fault says what went wrong, and at what.
func fault(ctx context.Context, at string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("%s: %w", at, err)
}

// refer notes what a cluster, a listener or a route refers to by name.
func refer(a *anypb.Any, wanted names) error {
	m, err := a.UnmarshalNew()
	if err != nil {
		return err
	}
	if m, ok := m.(*clusterv3.Cluster); ok {
		if m.GetType() == clusterv3.Cluster_EDS {
			wanted.add(endpoints, cmp.Or(m.GetEdsClusterConfig().GetServiceName(), m.Name))
		}
		return nil
	}
	if a.TypeUrl == listeners || a.TypeUrl == routes {
		visit(m.ProtoReflect(), wanted)
	}
	return nil
}

// visit notes the route configurations and extensions that are named anywhere in a message and,
// unless all are asked for, the clusters.
func visit(m protoreflect.Message, wanted names) {
	switch of := m.Interface().(type) {
	case *anypb.Any:
		if in, err := of.UnmarshalNew(); err == nil {
			visit(in.ProtoReflect(), wanted)
		}
		return
	case *hcmv3.Rds:
		wanted.add(routes, of.RouteConfigName)
		return
	case *routev3.RouteAction:
		wanted.cluster(of.GetCluster())
	case *routev3.WeightedCluster_ClusterWeight:
		wanted.cluster(of.Name)
	}
	if f := m.Descriptor().Fields().ByName("config_discovery"); f != nil && m.Has(f) {
		if name := m.Descriptor().Fields().ByName("name"); name != nil {
			wanted.add(extensions, m.Get(name).String())
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				visit(v.List().Get(i).Message(), wanted)
			}
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { visit(v.Message(), wanted); return true })
		case !f.IsList() && !f.IsMap() && f.Message() != nil:
			visit(v.Message(), wanted)
		}
		return true
	})
}

// cluster notes a cluster that clients of gRPC ask for by its name.
func (n names) cluster(name string) {
	if name != "" && n.order()[0] == listeners {
		n.add(clusters, name)
	}
}

// bodies are those of a side, or of both, each once. Any goroutine may keep one.
type bodies struct {
	mu  sync.Mutex
	all map[string]*body
}

func (b *bodies) keep(a *anypb.Any) *body { return b.keepOf(a, "") }

// keepOf keeps one of which a control plane showed all but what is secret, and the version of the
// whole; no version: it is whole.
func (b *bodies) keepOf(a *anypb.Any, version string) *body {
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(a)
	key := version + string(text)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]*body{}
	}
	if b.all[key] == nil {
		b.all[key] = &body{len(b.all), a, version}
	}
	return b.all[key]
}

// differences are those of two resources, of which one may lack what is secret in it.
func (b *body) differences(now *body) []Change {
	if b.version == "" && now.version == "" {
		return Compared(b.any.TypeUrl, b.any.Value, now.any.Value)
	}
	if b.whole() == now.whole() {
		return nil
	}
	all := Compared(b.any.TypeUrl, redact.Message(b.any.TypeUrl, b.any.Value), redact.Message(now.any.TypeUrl, now.any.Value))
	if len(all) == 0 {
		all = Withheld()
	}
	return all
}

// whole is the version of the whole resource.
func (b *body) whole() string {
	if b.version != "" {
		return b.version
	}
	return view.NewBody(b.any.TypeUrl, "", b.any.Value, 0).Version()
}
