package nametable

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/dialing"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func TestOf(t *testing.T) {
	pods := func() []Endpoint {
		return []Endpoint{
			{Endpoint: &pb.Endpoint{Address: "10.1.0.1", ServicePort: 80, Hostname: "db-0", Subdomain: "db", Cluster: "a"}},
			{Endpoint: &pb.Endpoint{Address: "10.1.0.2", ServicePort: 80, Cluster: "b"}},
			{Endpoint: &pb.Endpoint{Address: "10.1.0.3", ServicePort: 80, Cluster: "a", Network: "far"}},
			{Endpoint: &pb.Endpoint{Address: "db.example", ServicePort: 80, Cluster: "a"}},
			{Endpoint: &pb.Endpoint{Address: "10.1.0.4", Hostname: "db-4", Subdomain: "db", ServicePort: 80, Health: pb.EndpointHealthTerminating}},
			{Endpoint: &pb.Endpoint{Address: "10.1.0.5", Hostname: "db-5", Subdomain: "db", ServicePort: 80, Health: pb.EndpointHealthDraining}},
			{Endpoint: &pb.Endpoint{Address: "10.1.0.6", Hostname: "db-6", Subdomain: "db", ServicePort: 80, Health: pb.EndpointHealthUnhealthy}},
			{Endpoint: &pb.Endpoint{
				Address: "10.1.0.7", Hostname: "db-7", Subdomain: "db", ServicePort: 80,
				Labels: map[string]string{"istio.io/draining": "true"},
			}},
		}
	}
	ports := []*pb.Port{{Number: 80}}
	chosen := dialing.Dialing{Resolver: "127.0.0.1:15053", Cluster: "a"}
	for _, c := range []struct {
		name    string
		service pb.Service
		dialing dialing.Dialing
		want    []Entry
	}{
		{"addresses, no ranges", pb.Service{Addresses: []string{"10.0.0.1", "10.0.0.0/8", "2001:db8::1"}, Registry: "External"}, dialing.Dialing{},
			[]Entry{{Host: "db.ns.svc", IPs: []string{"10.0.0.1", "2001:db8::1"}, Registry: "External"}}},
		{"chosen, of the family", pb.Service{AutoAddresses: []string{"240.240.0.1", "2001:2::1"}}, chosen,
			[]Entry{{Host: "db.ns.svc", IPs: []string{"240.240.0.1"}}}},
		{"chosen, but nobody answers", pb.Service{AutoAddresses: []string{"240.240.0.1"}}, dialing.Dialing{}, nil},
		{"short names, no aliases in a cluster", pb.Service{Addresses: []string{"10.0.0.1"}, Registry: Kubernetes, Aliases: []string{"x"}}, dialing.Dialing{},
			[]Entry{{Host: "db.ns.svc", IPs: []string{"10.0.0.1"}, Registry: Kubernetes, Short: "db", Namespace: "ns"}}},
		{"aliases elsewhere", pb.Service{Addresses: []string{"10.0.0.1"}, Registry: "Consul", Aliases: []string{"x"}}, dialing.Dialing{},
			[]Entry{{Host: "db.ns.svc", IPs: []string{"10.0.0.1"}, Registry: "Consul"}, {Host: "x", IPs: []string{"10.0.0.1"}, Registry: "Consul"}}},
		{"headless", pb.Service{Headless: true, Ports: ports, Registry: Kubernetes}, chosen,
			[]Entry{
				{Host: "db-0.db.ns.svc", IPs: []string{"10.1.0.1"}, Registry: Kubernetes, Short: "db-0.db", Namespace: "ns"},
				{Host: "db.ns.svc", IPs: []string{"10.1.0.1", "10.1.0.2"}, Registry: Kubernetes, Short: "db", Namespace: "ns"},
			}},
		{"no address of the client's family", pb.Service{Addresses: []string{"10.0.0.1"}, Registry: Kubernetes}, dialing.Dialing{Families: dialing.IPv6}, nil},
		{"headless, for IPv6 alone", pb.Service{Headless: true, Ports: ports, Registry: Kubernetes}, dialing.Dialing{Families: dialing.IPv6}, nil},
		{"no address, known endpoints", pb.Service{Ports: ports}, chosen, nil},
	} {
		c.service.Host, c.service.Name, c.service.Namespace = "db.ns.svc", "db", "ns"
		got := Of(&c.service, Client{Dialing: c.dialing, Network: "near"}, pods)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", c.name, got, c.want)
		}
	}
}

// TestFamilies: a pod that has an address in a slice of either family has one name with both.
func TestFamilies(t *testing.T) {
	at := func(address string, more ...string) Endpoint {
		return Endpoint{Key: address, Endpoint: &pb.Endpoint{Address: address, MoreAddresses: more, ServicePort: 80, Hostname: "db-0", Subdomain: "db"}}
	}
	s := &pb.Service{Host: "db.ns.svc", Headless: true, Ports: []*pb.Port{{Number: 80}}, Registry: Kubernetes}
	for _, endpoints := range [][]Endpoint{{at("10.1.0.1"), at("fd00::1")}, {at("10.1.0.1", "fd00::1")}} {
		got := Of(s, Client{}, func() []Endpoint { return endpoints })
		for _, e := range got {
			if !reflect.DeepEqual(e.IPs, []string{"10.1.0.1", "fd00::1"}) {
				t.Errorf("%s: %v", e.Host, e.IPs)
			}
		}
		if len(got) != 2 {
			t.Errorf("%d names", len(got))
		}
	}
}

func TestMerge(t *testing.T) {
	external := Entry{Host: "a", IPs: []string{"1"}, Registry: "External"}
	more := Entry{Host: "a", IPs: []string{"2"}, Registry: "External"}
	cluster := Entry{Host: "a", IPs: []string{"3"}, Registry: Kubernetes}
	far := Entry{Host: "a", IPs: []string{"4"}, Registry: Kubernetes, Far: true}
	for _, c := range []struct {
		name string
		in   []Entry
		want []string
	}{
		{"joined", []Entry{external, more}, []string{"1", "2"}},
		{"hidden", []Entry{external, cluster, more}, []string{"3"}},
		{"the nearer", []Entry{far, cluster}, []string{"3"}},
		{"the nearer, first", []Entry{cluster, far}, []string{"3"}},
	} {
		if got := Merge(c.in).IPs; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestEncodeMerges: entries of one name become one, and those of others stay apart.
func TestEncodeMerges(t *testing.T) {
	a, more := Entry{Host: "a", IPs: []string{"1"}}, Entry{Host: "a", IPs: []string{"2"}}
	b := Entry{Host: "b", IPs: []string{"3"}}
	want := append(Encode([]Entry{{Host: "a", IPs: []string{"1", "2"}}}), Encode([]Entry{b})...)
	if Encode(nil) == nil {
		t.Error("no table, where there are no names")
	}
	if got := Encode([]Entry{a, b, more}); !bytes.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
