package main

import (
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{Kind: "generator"}, append(plugintest.Built(t, "."), plugintest.Memory(plugin()))...)
}

const cds = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

func TestCluster(t *testing.T) {
	h := plugintest.Start(t, plugin(), nil)
	h.Update("endpoints", []*sdk.Row{
		sdk.EndpointRow(&sdk.Endpoint{Host: "a.example", Namespace: "test", PortName: "http", Address: "127.0.0.1", Port: 1}),
		sdk.EndpointRow(&sdk.Endpoint{Host: "a.example", Namespace: "test", PortName: "http", Address: "127.0.0.2", Port: 2}),
	})
	p := &sdk.Proxy{Types: []string{cds}}
	h.Attach(p)
	var cluster clusterv3.Cluster
	if err := proto.Unmarshal(h.Resources(p.Connection, cds)["a.example"], &cluster); err != nil {
		t.Fatal(err)
	}
	var ports []uint32
	for _, e := range cluster.LoadAssignment.Endpoints[0].LbEndpoints {
		ports = append(ports, e.GetEndpoint().Address.GetSocketAddress().GetPortValue())
	}
	if cluster.Name != "a.example" || !slices.Equal(ports, []uint32{1, 2}) {
		t.Errorf("%v", &cluster)
	}
}
