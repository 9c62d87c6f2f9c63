// Command generator-clusters is a small generator: a static cluster for each service that has
// endpoints, the same for all proxies.
package main

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func main() { sdk.Serve(plugin()) }

func plugin() sdk.GeneratorPlugin {
	return sdk.GeneratorPlugin{
		Name: "clusters", Version: "1", Reads: []string{"endpoints"},
		Types: []sdk.Type{{Url: "type.googleapis.com/envoy.config.cluster.v3.Cluster"}},
		New:   sdk.WithoutConfig(func() (sdk.Generator, error) { return sdk.GeneratorFuncs{GenerateFunc: generate}, nil }),
	}
}

func generate(s *state.State, _, _ string, _ []string) (clusters []sdk.Resource, err error) {
	endpoints := map[string][]*endpointv3.LbEndpoint{} // by host
	from := map[string][]state.Name{}
	for _, key := range s.Table("endpoints").Keys() {
		e, err := sdk.EndpointOf(s.Row("endpoints", key))
		if err != nil {
			return nil, err
		}
		endpoints[e.Host] = append(endpoints[e.Host], lbEndpoint(e))
		from[e.Host] = append(from[e.Host], state.Name{Table: "endpoints", Key: key})
	}
	for host, all := range endpoints {
		body, err := proto.MarshalOptions{Deterministic: true}.Marshal(&clusterv3.Cluster{
			Name: host,
			LoadAssignment: &endpointv3.ClusterLoadAssignment{
				ClusterName: host, Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: all}},
			},
		})
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, sdk.Resource{Name: host, Body: body, From: from[host]})
	}
	return clusters, nil
}

func lbEndpoint(e *sdk.Endpoint) *endpointv3.LbEndpoint {
	socket := &corev3.SocketAddress{Address: e.Address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: e.Port}}
	address := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: socket}}
	endpoint := &endpointv3.Endpoint{Address: address}
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: endpoint}}
}
