package listener

import (
	"slices"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func TestArrivals(t *testing.T) {
	to := func(protocol config.Protocol) Chain { return Chain{Cluster: "outbound|80||a", Protocol: protocol} }
	named := to(config.TLS)
	named.ServerName = "a"
	one, two := to(config.TCP), to(config.TCP)
	one.Prefixes, two.Prefixes = "10.1.2.3/16", "10.2.0.0/16"
	six := func(f config.Families) Dialer { return Dialer{Dialing: config.Dialing{Families: f}} }
	for _, c := range []struct {
		name     string
		service  pb.Service
		protocol config.Protocol
		dialer   Dialer
		want     []Arrival
	}{
		{"requests share the port", pb.Service{Addresses: []string{"10.0.0.1"}}, config.HTTP, Dialer{},
			[]Arrival{{Bind{"0.0.0.0", 80}, "", to(config.HTTP)}}},
		{"connections by address", pb.Service{Addresses: []string{"10.0.0.1", "10.0.0.2"}}, config.TCP, Dialer{},
			[]Arrival{{Bind{"10.0.0.1", 80}, "", to(config.TCP)}, {Bind{"10.0.0.2", 80}, "", to(config.TCP)}}},
		{"ranges", pb.Service{Addresses: []string{"10.1.2.3/16", "10.2.0.0/16"}}, config.TCP, Dialer{},
			[]Arrival{{Bind{"0.0.0.0", 80}, "", one}, {Bind{"0.0.0.0", 80}, "", two}}},
		{"no address: by the name in the hello", pb.Service{}, config.TLS, Dialer{}, []Arrival{{Bind{"0.0.0.0", 80}, "", named}}},
		{"no address at all", pb.Service{}, config.TCP, Dialer{}, []Arrival{{Bind{"0.0.0.0", 80}, "", to(config.TCP)}}},
		{"dialled", pb.Service{Addresses: []string{"10.0.0.1"}}, config.TCP, Dialer{Dialed: true},
			[]Arrival{{Bind{"127.0.0.1", 80}, "", to(config.TCP)}}},
		{"IPv6", pb.Service{}, config.HTTP, six(config.IPv6), []Arrival{{Bind{"::", 80}, "", to(config.HTTP)}}},
		{"IPv6 without an address", pb.Service{}, config.TCP, six(config.IPv6), []Arrival{{Bind{"::", 80}, "", to(config.TCP)}}},
		{"both families", pb.Service{}, config.HTTP, six(config.Both), []Arrival{{Bind{"0.0.0.0", 80}, "::", to(config.HTTP)}}},
		{"both families without an address", pb.Service{}, config.TCP, six(config.Both),
			[]Arrival{{Bind{"0.0.0.0", 80}, "::", to(config.TCP)}}},
		{"both families without an address, in a cluster", pb.Service{Registry: "Kubernetes"}, config.TCP, six(config.Both),
			[]Arrival{{Bind{"0.0.0.0", 80}, "", to(config.TCP)}}},
		{"dual stack", pb.Service{Registry: "Kubernetes", Addresses: []string{"10.0.0.1", "2001:db8::1"}}, config.TCP, six(config.Dual),
			[]Arrival{{Bind{"10.0.0.1", 80}, "2001:db8::1", to(config.TCP)}}},
		{"dual stack without an address", pb.Service{}, config.TCP, six(config.Dual),
			[]Arrival{{Bind{"0.0.0.0", 80}, "::", to(config.TCP)}}},
		{"one family of a service with two", pb.Service{Registry: "Kubernetes", Addresses: []string{"10.0.0.1", "2001:db8::1"}}, config.TCP,
			six(config.IPv6), []Arrival{{Bind{"2001:db8::1", 80}, "", to(config.TCP)}}},
	} {
		c.service.Host = "a"
		s := &config.Service{Service: c.service}
		if got := Arrivals(s, 80, c.protocol, c.dialer); !slices.Equal(got, c.want) {
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
