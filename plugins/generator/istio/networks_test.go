package istio

import (
	"slices"
	"testing"

	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func TestServicesAsGatewaysOfNetworks(t *testing.T) {
	named := &meshv1.MeshNetworks{Networks: map[string]*meshv1.Network{"b": {
		Endpoints: []*meshv1.Network_NetworkEndpoints{{Ne: &meshv1.Network_NetworkEndpoints_FromRegistry{FromRegistry: "east"}}},
		Gateways: []*meshv1.Network_IstioNetworkGateway{
			{Gw: &meshv1.Network_IstioNetworkGateway_RegistryServiceName{RegistryServiceName: "gw.ns"}, Port: 443},
		},
	}}}
	at := func(network, cluster, address string, port uint32) endpoint.Gateway {
		return endpoint.Gateway{Network: network, Cluster: cluster, Address: address, Port: port}
	}
	for _, c := range []struct {
		name   string
		labels map[string]string
		want   []endpoint.Gateway
	}{
		{"by the settings: in the registry's cluster", nil, []endpoint.Gateway{at("b", "east", "1.1.1.1", 30443), at("b", "east", "1.1.1.2", 30443)}},
		{
			"by label", map[string]string{workload.NetworkLabel: "c"},
			[]endpoint.Gateway{at("c", "east", "1.1.1.1", 15443), at("c", "east", "1.1.1.2", 15443), at("c", "west", "2.2.2.2", 15443)},
		},
		{"with a port", map[string]string{workload.NetworkLabel: "c", workload.GatewayPortLabel: "443"},
			[]endpoint.Gateway{at("c", "east", "1.1.1.1", 30443), at("c", "east", "1.1.1.2", 30443), at("c", "west", "2.2.2.2", 443)}},
		{"with a port that is none", map[string]string{workload.NetworkLabel: "c", workload.GatewayPortLabel: "x"},
			[]endpoint.Gateway{at("c", "east", "1.1.1.1", 15443), at("c", "east", "1.1.1.2", 15443), at("c", "west", "2.2.2.2", 15443)}},
		{"with a port that it hasn't got", map[string]string{workload.NetworkLabel: "c", workload.GatewayPortLabel: "444"}, nil},
	} {
		s := &config.Service{Service: pb.Service{
			Host: "gw.ns", Labels: c.labels, ExternalAddresses: map[string]string{"east": "1.1.1.1,1.1.1.2", "west": "2.2.2.2"},
			ExternalPorts: map[string]uint32{"east/443": 30443}, Ports: []*pb.Port{{Number: 443}, {Number: 15443}},
		}}
		if got := workload.NetworkGateways(s, named); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestNetworksSplitViews: who is where counts only where there are networks.
func TestNetworksSplitViews(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.attach(1, proxy(sidecarID, nil, map[string]any{"NETWORK": "a"}))
	w.attach(2, proxy(sidecarID, nil, map[string]any{"NETWORK": "b"}))
	at := func(c uint64) uint64 { return w.out.placed[c][encode.EndpointType] }
	if at(1) != at(2) {
		t.Error("without networks proxies of different ones share a view")
	}
	gateway := &sdk.Service{
		Host: "gw", Namespace: "default", Labels: map[string]string{workload.NetworkLabel: "b"},
		ExternalAddresses: map[string]string{"east": "9.9.9.9"},
	}
	gateway.Ports = []*pb.Port{{Number: 15443}}
	w.commit(rows(state.Services, sdk.ServiceRow(gateway)))
	if at(1) == at(2) {
		t.Error("a network's gateway tells them apart")
	}
	e := &sdk.Endpoint{
		Host: "web.default.svc.cluster.local", Namespace: "default", PortName: "http", ServicePort: 80,
		Address: "10.2.0.1", Port: 8080, Network: "b", TlsMode: "istio",
	}
	w.commit(rows(state.Endpoints, sdk.EndpointRow(e)))
	for c, want := range map[uint64][]string{1: {"10.1.0.1", "9.9.9.9"}, 2: {"10.1.0.1", "10.2.0.1"}} {
		got := addresses(t, w.get(c, encode.EndpointType, webCluster)[webCluster])
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("connection %d: %v, want %v", c, got, want)
		}
	}
}

// TestGatewaysThatAreNoServices: a row of networkgateways is a gateway of its network for as long
// as it is there.
func TestGatewaysThatAreNoServices(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.attach(1, proxy(sidecarID, nil, map[string]any{"NETWORK": "a"}))
	e := &sdk.Endpoint{
		Host: "web.default.svc.cluster.local", Namespace: "default", PortName: "http", ServicePort: 80,
		Address: "10.2.0.1", Port: 8080, Network: "b", TlsMode: "istio",
	}
	w.commit(rows(state.Endpoints, sdk.EndpointRow(e)))
	entrance := &pb.Endpoint{Network: "b", Cluster: "east", Address: "9.9.9.9", Port: 15443}
	for _, step := range []struct {
		change *pb.TableRows
		want   []string
	}{
		{rows(state.NetworkGateways, &sdk.Row{Key: "x", Payload: entrance.AppendTo(nil)}), []string{"10.1.0.1", "9.9.9.9"}},
		{&pb.TableRows{Table: state.NetworkGateways, Deletes: []string{"x"}}, []string{"10.1.0.1", "10.2.0.1"}},
	} {
		w.commit(step.change)
		got := addresses(t, w.get(1, encode.EndpointType, webCluster)[webCluster])
		slices.Sort(got)
		if !slices.Equal(got, step.want) {
			t.Errorf("%v, want %v", got, step.want)
		}
	}
}
