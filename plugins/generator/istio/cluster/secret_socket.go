package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// BuildSecretSocket makes the cluster of the socket beside a proxy that serves credentials.
func BuildSecretSocket(connectTimeout *durationpb.Duration) *clusterv3.Cluster {
	at := &core.Address{Address: &core.Address_Pipe{Pipe: &core.Pipe{Path: encode.SecretSocket}}}
	c := &clusterv3.Cluster{
		Name:                 encode.SocketCluster,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:       connectTimeout,
		AltStatName:          stat(encode.SocketCluster),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{ClusterName: encode.SocketCluster, Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: at}}}},
		}}},
	}
	setHTTP(c, &http.HttpProtocolOptions{UpstreamProtocolOptions: onlyHTTP2()})
	return c
}
