package endpoint

import (
	"fmt"
	"slices"
	"testing"

	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

func cidr(s string) *meshv1.Network_NetworkEndpoints {
	return &meshv1.Network_NetworkEndpoints{Ne: &meshv1.Network_NetworkEndpoints_FromCidr{FromCidr: s}}
}

func registry(s string) *meshv1.Network_NetworkEndpoints {
	return &meshv1.Network_NetworkEndpoints{Ne: &meshv1.Network_NetworkEndpoints_FromRegistry{FromRegistry: s}}
}

func enteredAt(address string, port uint32) *meshv1.Network_IstioNetworkGateway {
	return &meshv1.Network_IstioNetworkGateway{Gw: &meshv1.Network_IstioNetworkGateway_Address{Address: address}, Port: port}
}

func settings(networks map[string]*meshv1.Network) *meshv1.MeshNetworks {
	return &meshv1.MeshNetworks{Networks: networks}
}

// mutual endpoints in a network.
func in(network string, change ...func(*Endpoint)) func(*Endpoint) {
	return func(e *Endpoint) {
		e.Network, e.TlsMode = network, Mutual
		for _, f := range change {
			f(e)
		}
	}
}

func TestHorizon(t *testing.T) {
	two := settings(map[string]*meshv1.Network{
		"a": {Gateways: []*meshv1.Network_IstioNetworkGateway{enteredAt("9.0.0.1", 1)}},
		"b": {Endpoints: []*meshv1.Network_NetworkEndpoints{cidr("10.2.0.0/16"), registry("far")},
			Gateways: []*meshv1.Network_IstioNetworkGateway{enteredAt("9.0.0.3", 3), enteredAt("9.0.0.2", 2), enteredAt("gw.example", 4)}},
		"open": {Endpoints: []*meshv1.Network_NetworkEndpoints{cidr("10.2.3.0/24"), cidr("10.3.0.0/16")}},
	})
	plain := func(e *Endpoint) { e.TlsMode = "" }
	of := func(cluster string) func(*Endpoint) { return func(e *Endpoint) { e.Cluster = cluster } }
	weight := func(w uint32) func(*Endpoint) { return func(e *Endpoint) { e.Weight = w } }
	for _, c := range []struct {
		name    string
		horizon Horizon
		m       *meshv1.MeshNetworks
		found   []Gateway
		all     []*Endpoint
		want    []string
	}{
		{name: "no networks", all: []*Endpoint{at("10.0.0.1", in("b"))}, want: []string{"10.0.0.1:8080*1"}},
		{name: "of the own cluster alone", horizon: Horizon{Local: true, Cluster: "east"},
			all:  []*Endpoint{at("10.0.0.1", of("east")), at("10.0.0.2", of("west")), at("10.0.0.3", of(""))},
			want: []string{"10.0.0.1:8080*1", "10.0.0.3:8080*1"}},
		{name: "near and far: weights are divided among the gateways", m: two, horizon: Horizon{Network: "a"},
			all:  []*Endpoint{at("10.0.0.1", in("a")), at("10.0.0.2", in("b")), at("10.0.0.3", in("b", weight(3)))},
			want: []string{"10.0.0.1:8080*2", "9.0.0.2:2*4", "9.0.0.3:3*4"}},
		{name: "plain text can't go through gateways", m: two, horizon: Horizon{Network: "a"},
			all: []*Endpoint{at("10.0.0.2", in("b", plain)), at("10.0.0.1", in("a", plain))}, want: []string{"10.0.0.1:8080*2"}},
		{name: "no gateway: reached directly", m: two, horizon: Horizon{Network: "a"},
			all: []*Endpoint{at("10.0.0.2", in("open"))}, want: []string{"10.0.0.2:8080*2"}},
		{name: "who doesn't say where it is takes gateways where there are any", m: two,
			all:  []*Endpoint{at("10.0.0.1", in("")), at("10.0.0.2", in("b")), at("10.0.0.3", in("open")), at("", in("b"))},
			want: []string{"10.0.0.1:8080*2", "10.0.0.3:8080*2", "9.0.0.2:2*2", "9.0.0.3:3*2"}},
		{name: "gateways of the client's families", horizon: Horizon{Network: "a"},
			found: []Gateway{{"b", "", "9.0.0.1", 1}, {"b", "", "2001:db8::1", 1}, {"c", "", "2001:db8::2", 1}},
			all:   []*Endpoint{at("10.0.0.1", in("b")), at("10.0.0.2", in("c"))}, want: []string{"9.0.0.1:1*2"}},
		{name: "gateways of both families", horizon: Horizon{Network: "a", Families: config.Both},
			found: []Gateway{{"b", "", "9.0.0.1", 1}, {"b", "", "2001:db8::1", 1}},
			all:   []*Endpoint{at("10.0.0.1", in("b"))}, want: []string{"2001:db8::1:1*1", "9.0.0.1:1*1"}},
		{name: "an endpoint that doesn't say is near", m: two, horizon: Horizon{Network: "a"},
			all: []*Endpoint{at("10.2.0.2", in(""))}, want: []string{"10.2.0.2:8080*2"}},
		{name: "unless it is looked for: the widest range", m: two, horizon: Horizon{Network: "a", Found: true},
			all: []*Endpoint{at("10.2.3.2", in(""))}, want: []string{"9.0.0.2:2*1", "9.0.0.3:3*1"}},
		{name: "by its cluster", m: two, horizon: Horizon{Network: "a", Found: true},
			all: []*Endpoint{at("10.3.0.2", in("", func(e *Endpoint) { e.Cluster = "far" }))}, want: []string{"9.0.0.2:2*1", "9.0.0.3:3*1"}},
		{name: "without address: through its gateways alone", m: two, horizon: Horizon{Network: "a"},
			all:  []*Endpoint{at("", in("a")), at("", in("b", func(e *Endpoint) { e.Key = "2" })), at("", in("open", func(e *Endpoint) { e.Key = "3" }))},
			want: []string{"9.0.0.2:2*1", "9.0.0.3:3*1"}},
		{name: "gateways of the endpoint's cluster come first", horizon: Horizon{Network: "a"},
			found: []Gateway{{"b", "x", "9.0.0.1", 1}, {"b", "y", "9.0.0.2", 1}, {"b", "y", "9.0.0.3", 1}},
			all: []*Endpoint{at("10.0.0.1", in("b", func(e *Endpoint) { e.Cluster = "y" })),
				at("10.0.0.2", in("b", func(e *Endpoint) { e.Cluster = "z" }))},
			want: []string{"9.0.0.1:1*2", "9.0.0.2:1*5", "9.0.0.3:1*5"}},
		{name: "the view that the client asks for", horizon: Horizon{View: "a,c"},
			all:  []*Endpoint{at("10.0.0.1", in("a")), at("10.0.0.2", in("b")), at("10.0.0.3", in(""))},
			want: []string{"10.0.0.1:8080*1", "10.0.0.3:8080*1"}},
		{name: "weights that would not fit", m: two, horizon: Horizon{Network: "a"},
			all: []*Endpoint{at("10.0.0.1", in("a", weight(1<<31)))}, want: []string{"10.0.0.1:8080*4294967295"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spec()
			s.Horizon = c.horizon
			if c.m != nil || c.found != nil {
				s.Horizon.Networks = NewNetworks(c.m, c.found)
			}
			var got []string
			for _, l := range Build(s, c.all).Endpoints {
				sum := uint32(0)
				for _, e := range l.LbEndpoints {
					at := e.GetEndpoint().Address.GetSocketAddress()
					got = append(got, fmt.Sprintf("%s:%d*%d", at.Address, at.GetPortValue(), e.LoadBalancingWeight.Value))
					sum += e.LoadBalancingWeight.Value
				}
				if l.GetLoadBalancingWeight().GetValue() != sum {
					t.Errorf("the locality's weight is %v, its endpoints' %d", l.LoadBalancingWeight, sum)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestNetworksEqual(t *testing.T) {
	of := func(port uint32, ne *meshv1.Network_NetworkEndpoints) *Networks {
		return NewNetworks(settings(map[string]*meshv1.Network{"a": {
			Endpoints: []*meshv1.Network_NetworkEndpoints{ne}, Gateways: []*meshv1.Network_IstioNetworkGateway{enteredAt("1.1.1.1", port)},
		}}), nil)
	}
	if !of(1, cidr("10.0.0.0/8")).Equal(of(1, cidr("10.1.0.0/8"))) {
		t.Error("the same networks are equal")
	}
	for _, o := range []*Networks{nil, of(2, cidr("10.0.0.0/8")), of(1, cidr("11.0.0.0/8")), of(1, registry("r"))} {
		if of(1, cidr("10.0.0.0/8")).Equal(o) {
			t.Errorf("%v is not the same", o)
		}
	}
}
