package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// kinds are types by the names that scenarios have for them.
var kinds = map[string]string{
	"cds":   "type.googleapis.com/envoy.config.cluster.v3.Cluster",
	"eds":   "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
	"lds":   "type.googleapis.com/envoy.config.listener.v3.Listener",
	"rds":   "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
	"sds":   "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
	"ecds":  "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
	"rtds":  "type.googleapis.com/envoy.service.runtime.v3.Runtime",
	"other": "type.googleapis.com/example.Unknown",
}

// kindOf is the other way round.
func kindOf(typeURL string) string {
	for k, t := range kinds {
		if t == typeURL {
			return k
		}
	}
	return typeURL
}

// object is a resource as files have it. Its content stands in some field that Envoy allows.
type object map[string]any

func newObject(kind, name, content string) object {
	o := object{"@type": kinds[kind], "name": name}
	switch kind {
	case "cds":
		o["alt_stat_name"] = content
	case "eds":
		delete(o, "name")
		o["cluster_name"] = name
		o["endpoints"] = []any{object{"locality": object{"region": content}}}
	case "lds":
		o["stat_prefix"] = content
		o["address"] = object{"socket_address": object{"address": "127.0.0.1", "port_value": 1}}
	case "rds":
		o["virtual_hosts"] = []any{object{"name": content, "domains": []any{"*"}}}
	case "sds":
		o["generic_secret"] = object{"secret": object{"inline_string": content}}
	case "ecds":
		o["typed_config"] = object{"@type": "type.googleapis.com/google.protobuf.StringValue", "value": content}
	case "rtds":
		o["layer"] = object{"content": content}
	}
	return o
}

// offered is what there is: kind, name, content.
type offered map[string]map[string]string

// text is a file with all of it.
func (o offered) text() ([]byte, error) {
	list := []object{}
	for _, kind := range slices.Sorted(maps.Keys(o)) {
		for _, name := range slices.Sorted(maps.Keys(o[kind])) {
			list = append(list, newObject(kind, name, o[kind][name]))
		}
	}
	return json.MarshalIndent(list, "", "  ")
}

// read returns the name and the content of a resource.
func read(packed *anypb.Any) (name, content string, err error) {
	m, err := packed.UnmarshalNew()
	if err != nil {
		return "", "", err
	}
	switch x := m.(type) {
	case *clusterv3.Cluster:
		return x.Name, x.AltStatName, nil
	case *endpointv3.ClusterLoadAssignment:
		for _, e := range x.Endpoints {
			content = e.GetLocality().GetRegion()
		}
		return x.ClusterName, content, nil
	case *listenerv3.Listener:
		return x.Name, x.StatPrefix, nil
	case *routev3.RouteConfiguration:
		for _, v := range x.VirtualHosts {
			content = v.Name
		}
		return x.Name, content, nil
	case *tlsv3.Secret:
		return x.Name, x.GetGenericSecret().GetSecret().GetInlineString(), nil
	case *corev3.TypedExtensionConfig:
		var text wrapperspb.StringValue
		err := x.TypedConfig.UnmarshalTo(&text)
		return x.Name, text.Value, err
	case *runtimev3.Runtime:
		return x.Name, x.GetLayer().GetFields()["content"].GetStringValue(), nil
	}
	return "", "", fmt.Errorf("unexpected %s", packed.TypeUrl)
}
