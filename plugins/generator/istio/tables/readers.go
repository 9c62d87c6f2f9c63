package tables

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func parseMesh(r *pb.Row) (*meshv1.MeshConfig, error) {
	m := &meshv1.MeshConfig{}
	if err := proto.Unmarshal(r.Payload, m); err != nil {
		return nil, fmt.Errorf("mesh config: %w", err)
	}
	return m, nil
}

func parseNetworks(r *pb.Row) (*meshv1.MeshNetworks, error) {
	m := &meshv1.MeshNetworks{}
	if err := proto.Unmarshal(r.Payload, m); err != nil {
		return nil, fmt.Errorf("mesh networks: %w", err)
	}
	return m, nil
}

// readGateway reads a row of table networkgateways.
func readGateway(r *pb.Row) (endpoint.Gateway, error) {
	e, err := sdk.EndpointOf(r)
	if err != nil {
		return endpoint.Gateway{}, err
	}
	return endpoint.Gateway{Network: e.Network, Cluster: e.Cluster, Address: e.Address, Port: e.Port}, nil
}

// Unread is a workload of which the row is known to be right, and nothing else kept: there are
// many, and few have a proxy that asks.
type Unread struct{}

func readWorkload(r *pb.Row) (Unread, error) {
	_, err := sdk.WorkloadOf(r)
	return Unread{}, err
}

func labelsOfNamespace(r *pb.Row) (map[string]string, error) {
	n := &pb.Namespace{}
	err := n.Unmarshal(r.Payload)
	return n.Labels, err
}
