package listener

import (
	"slices"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func TestArrivals(t *testing.T) {
	for _, c := range []struct {
		name      string
		addresses []string
		protocol  config.Protocol
		want      []Arrival
	}{
		{"requests share the port", []string{"10.0.0.1"}, config.HTTP, []Arrival{
			{Bind{anyAddress, 80}, Chain{Cluster: "outbound|80||a", Protocol: config.HTTP}}}},
		{"connections by address", []string{"10.0.0.1", "10.0.0.2"}, config.TCP, []Arrival{
			{Bind{"10.0.0.1", 80}, Chain{Cluster: "outbound|80||a", Protocol: config.TCP}},
			{Bind{"10.0.0.2", 80}, Chain{Cluster: "outbound|80||a", Protocol: config.TCP}}}},
		{"ranges", []string{"10.1.2.3/16", "10.2.0.0/16"}, config.TCP, []Arrival{
			{Bind{anyAddress, 80}, Chain{Cluster: "outbound|80||a", Protocol: config.TCP, Prefixes: "10.1.0.0/16,10.2.0.0/16"}}}},
		{"no address: by the name in the hello", nil, config.TLS, []Arrival{
			{Bind{anyAddress, 80}, Chain{Cluster: "outbound|80||a", Protocol: config.TLS, ServerName: "a"}}}},
		{"no address at all", nil, config.TCP, []Arrival{
			{Bind{anyAddress, 80}, Chain{Cluster: "outbound|80||a", Protocol: config.TCP}}}},
	} {
		s := &config.Service{Service: pb.Service{Host: "a", Addresses: c.addresses}}
		if got := Arrivals(s, 80, c.protocol); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestOverlaps(t *testing.T) {
	for _, c := range []struct {
		a, b Chain
		want bool
	}{
		{Chain{}, Chain{}, true},
		{Chain{ServerName: "a"}, Chain{ServerName: "b"}, false},
		{Chain{ServerName: "a"}, Chain{}, false},
		{Chain{Prefixes: "10.0.0.0/8"}, Chain{Prefixes: "10.0.0.0/16"}, false},
		{Chain{Prefixes: "10.0.0.0/8,11.0.0.0/8"}, Chain{Prefixes: "11.0.0.0/8"}, true},
	} {
		if c.a.Overlaps(c.b) != c.want || c.b.Overlaps(c.a) != c.want {
			t.Errorf("%+v and %+v", c.a, c.b)
		}
	}
}
