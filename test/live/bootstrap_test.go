package live

import (
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/bootstrap/internal_listener/v3" // stand in bootstraps
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// agentClusters are clusters that Istio's bootstrap has in addition, and that resources may name.
var agentClusters = []string{"sds-grpc", "envoy_accesslog_service"}

// bootstrap is for a node whose agent listens on a socket.
func bootstrap(t *testing.T, p *mesh.Plane, node *corev3.Node, protocol, admin, socket string) []byte {
	t.Helper()
	var b bootstrapv3.Bootstrap
	made := p.Bootstrap(t, "--xds", "unix:"+socket, "--admin", "unix:"+admin, "--protocol", protocol, "--type",
		"sidecar", "--name", "x", "--namespace", "x", "--ip", "127.0.0.1")
	if err := protojson.Unmarshal(made, &b); err != nil {
		t.Fatal(err)
	}
	b.Node = node
	for _, name := range agentClusters {
		c := proto.Clone(b.StaticResources.Clusters[0]).(*clusterv3.Cluster)
		c.Name, c.LoadAssignment.ClusterName = name, name
		b.StaticResources.Clusters = append(b.StaticResources.Clusters, c)
	}
	out, err := protojson.Marshal(&b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
