package admin

import (
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// dump answers with what a proxy is to have: the parts of Envoy's own dump. Of secrets there are
// the names alone.
func (q *Questions) dump(who asker, node string) ([]*view.Body, error) {
	id, ok := q.server.cfg.node(who, node)
	var types []TypeDump
	if ok {
		types, ok = q.server.cfg.Source.Dump(id)
	}
	if !ok {
		return nil, status.Error(codes.NotFound, notConnected(node))
	}
	var out []*view.Body
	for _, t := range types {
		m := dumped(t).message()
		if m == nil {
			continue
		}
		body, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return nil, err
		}
		out = append(out, view.NewBody(prefix+string(m.ProtoReflect().Descriptor().FullName()), t.Type, body, 0))
	}
	return out, nil
}

// message is the part of a ConfigDump for a type; nil for types that Envoy's dump has not.
func (t dumped) message() proto.Message {
	switch t.Type {
	case typeURL("cds"):
		m := &adminv3.ClustersConfigDump{}
		for _, b := range t.Bodies {
			m.DynamicActiveClusters = append(m.DynamicActiveClusters,
				&adminv3.ClustersConfigDump_DynamicCluster{VersionInfo: b.Version(), Cluster: t.resource(b)})
		}
		return m
	case typeURL("lds"):
		m := &adminv3.ListenersConfigDump{}
		for _, b := range t.Bodies {
			m.DynamicListeners = append(m.DynamicListeners, &adminv3.ListenersConfigDump_DynamicListener{
				Name: b.Name(), ActiveState: &adminv3.ListenersConfigDump_DynamicListenerState{VersionInfo: b.Version(), Listener: t.resource(b)},
			})
		}
		return m
	case typeURL("rds"):
		m := &adminv3.RoutesConfigDump{}
		for _, b := range t.Bodies {
			m.DynamicRouteConfigs = append(m.DynamicRouteConfigs,
				&adminv3.RoutesConfigDump_DynamicRouteConfig{VersionInfo: b.Version(), RouteConfig: t.resource(b)})
		}
		return m
	case typeURL("eds"):
		m := &adminv3.EndpointsConfigDump{}
		for _, b := range t.Bodies {
			m.DynamicEndpointConfigs = append(m.DynamicEndpointConfigs,
				&adminv3.EndpointsConfigDump_DynamicEndpointConfig{VersionInfo: b.Version(), EndpointConfig: t.resource(b)})
		}
		return m
	case typeURL("ecds"):
		m := &adminv3.EcdsConfigDump{}
		for _, b := range t.Bodies {
			m.EcdsFilters = append(m.EcdsFilters, &adminv3.EcdsConfigDump_EcdsFilterConfig{VersionInfo: b.Version(), EcdsFilter: t.resource(b)})
		}
		return m
	case typeURL("sds"):
		m := &adminv3.SecretsConfigDump{}
		for _, b := range t.Bodies {
			m.DynamicActiveSecrets = append(m.DynamicActiveSecrets, &adminv3.SecretsConfigDump_DynamicSecret{Name: b.Name(), VersionInfo: b.Version()})
		}
		return m
	}
	return nil
}

// resource is a body without what is secret, nothing where all of it is.
func (t dumped) resource(b *view.Body) *anypb.Any {
	if t.Sensitive {
		return nil
	}
	return &anypb.Any{TypeUrl: t.Type, Value: redact.Message(t.Type, b.Value())}
}
