package simulator

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// dump is the part of a configuration dump that is read, of all sections at once.
//
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/admin/v3/config_dump.proto
type dump struct {
	Configs []struct {
		StaticListeners []item `json:"static_listeners"`
		Listeners       []struct {
			Active item `json:"active_state"`
		} `json:"dynamic_listeners"`
		StaticClusters  []item `json:"static_clusters"`
		Clusters        []item `json:"dynamic_active_clusters"`
		StaticRoutes    []item `json:"static_route_configs"`
		Routes          []item `json:"dynamic_route_configs"`
		StaticEndpoints []item `json:"static_endpoint_configs"`
		Endpoints       []item `json:"dynamic_endpoint_configs"`
		Filters         []item `json:"ecds_filters"`
	} `json:"configs"`
}

type item struct {
	Listener json.RawMessage `json:"listener"`
	Cluster  json.RawMessage `json:"cluster"`
	Route    json.RawMessage `json:"route_config"`
	Endpoint json.RawMessage `json:"endpoint_config"`
	Filter   json.RawMessage `json:"ecds_filter"`
}

// Read reads a configuration dump: what an Envoy shows under /config_dump?include_eds, or the
// control plane under /debug/config_dump?proxyID=NODE. Messages of types that this program doesn't
// know are read as empty ones. The error says which resource is broken.
func Read(text []byte) (*Config, error) {
	var d dump
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("configuration dump: %w", err)
	}
	c := &Config{}
	var errs []error
	for _, s := range d.Configs {
		for _, l := range s.Listeners {
			c.Listeners = add(c.Listeners, &listenerv3.Listener{}, l.Active.Listener, &errs)
		}
		for _, i := range s.StaticListeners {
			c.Listeners = add(c.Listeners, &listenerv3.Listener{}, i.Listener, &errs)
		}
		for _, i := range append(s.Clusters, s.StaticClusters...) {
			c.Clusters = add(c.Clusters, &clusterv3.Cluster{}, i.Cluster, &errs)
		}
		for _, i := range append(s.Routes, s.StaticRoutes...) {
			c.Routes = add(c.Routes, &routev3.RouteConfiguration{}, i.Route, &errs)
		}
		for _, i := range append(s.Endpoints, s.StaticEndpoints...) {
			c.Endpoints = add(c.Endpoints, &endpointv3.ClusterLoadAssignment{}, i.Endpoint, &errs)
		}
		for _, i := range s.Filters {
			c.Filters = add(c.Filters, &corev3.TypedExtensionConfig{}, i.Filter, &errs)
		}
	}
	return c, errors.Join(errs...)
}

// add reads a resource and adds it, if there is one: listeners may be warming.
func add[T proto.Message](list []T, into T, raw json.RawMessage, errs *[]error) []T {
	if len(raw) == 0 {
		return list
	}
	var a anypb.Any
	err := protojson.UnmarshalOptions{DiscardUnknown: true, Resolver: resolver{protoregistry.GlobalTypes}}.Unmarshal(raw, &a)
	if err == nil {
		err = a.UnmarshalTo(into)
	}
	if err != nil {
		*errs = append(*errs, fmt.Errorf("configuration dump: %s: %w", into.ProtoReflect().Descriptor().Name(), err))
		return list
	}
	return append(list, into)
}

// resolver reads messages of types that this program doesn't know as empty ones, so that the rest
// is read.
type resolver struct{ *protoregistry.Types }

func (r resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	t, err := r.Types.FindMessageByURL(url)
	if errors.Is(err, protoregistry.NotFound) {
		return (&emptypb.Empty{}).ProtoReflect().Type(), nil
	}
	return t, err
}
