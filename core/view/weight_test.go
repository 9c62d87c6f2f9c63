package view

import (
	"testing"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
)

// TestWeight: what counts is what proxies could lose, whatever else a resource holds.
func TestWeight(t *testing.T) {
	const assignments, routes = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
		"type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	one := &endpoint.LbEndpoint{}
	host := func(name string, n int) *route.VirtualHost {
		return &route.VirtualHost{Name: name, Domains: []string{name, "x"}, Routes: make([]*route.Route, n)}
	}
	filled := func(hosts ...*route.VirtualHost) *route.RouteConfiguration {
		for _, h := range hosts {
			for i := range h.Routes {
				h.Routes[i] = &route.Route{Name: "r"}
			}
		}
		return &route.RouteConfiguration{Name: "a", VirtualHosts: hosts, InternalOnlyHeaders: []string{"a", "b"}}
	}
	for _, c := range []struct {
		url     string
		message proto.Message
		want    int
	}{
		{assignments, &endpoint.ClusterLoadAssignment{ClusterName: "\x12\x02\x12\x00"}, 0},
		{assignments, &endpoint.ClusterLoadAssignment{ClusterName: "a", Endpoints: []*endpoint.LocalityLbEndpoints{{Priority: 1}}}, 0},
		{assignments, &endpoint.ClusterLoadAssignment{
			ClusterName: "a",
			Endpoints:   []*endpoint.LocalityLbEndpoints{{LbEndpoints: []*endpoint.LbEndpoint{one, one}}, {LbEndpoints: []*endpoint.LbEndpoint{one}}},
		}, 1},
		{routes, filled(), 0},
		{routes, filled(host("a", 0)), 0},
		{routes, filled(host("a", 1), host("b", 3), host("c", 0)), 2},
		{clusterType, sample(t), 1},
	} {
		if got := Weight(c.url, NewBody(c.url, "a", encode(t, c.message), 0)); got != c.want {
			t.Errorf("%v: %d, want %d", c.message, got, c.want)
		}
	}
	if Weight(clusterType, nil) != 0 || Weight(clusterType, Absent("a")) != 0 {
		t.Error("what is not there weighs something")
	}
}
