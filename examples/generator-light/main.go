// Command generator-light is generator-clusters for a small module: it writes resources by the
// numbers of their fields, without Envoy's types.
package main

import (
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/sdk/wire"
)

func main() { sdk.Serve(plugin()) }

func plugin() sdk.GeneratorPlugin {
	return sdk.GeneratorPlugin{
		Name: "clusters", Version: "1", Reads: []string{"endpoints"}, Types: []sdk.Type{{Url: "type.googleapis.com/envoy.config.cluster.v3.Cluster"}},
		New: sdk.WithoutConfig(func() (sdk.Generator, error) { return sdk.GeneratorFuncs{GenerateFunc: generate}, nil }),
	}
}

func generate(s *state.State, _, _ string, _ []string) (clusters []sdk.Resource, err error) {
	endpoints := map[string][]byte{} // LocalityLbEndpoints, by host
	for _, key := range s.Table("endpoints").Keys() {
		e, err := sdk.EndpointOf(s.Row("endpoints", key))
		if err != nil {
			return nil, err
		}
		socket := wire.Number(wire.String(nil, 2, e.Address), 3, uint64(e.Port))           // SocketAddress{address, port_value}
		endpoints[e.Host] = wire.Bytes(endpoints[e.Host], 2, wire.Nested(socket, 1, 1, 1)) // LbEndpoint{endpoint: {address: {socket_address}}}
	}
	for host, locality := range endpoints {
		assignment := wire.Bytes(wire.String(nil, 1, host), 2, locality) // ClusterLoadAssignment{cluster_name, endpoints}
		clusters = append(clusters, sdk.Resource{Name: host, Body: wire.Bytes(wire.String(nil, 1, host), 33, assignment)})
	}
	return clusters, nil
}
