package endpoint

import (
	"maps"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func TestSelector(t *testing.T) {
	for _, labels := range []map[string]string{nil, {"a": "b"}, {"a": "", "b": `x"y=,;z`, "c": "é"}} {
		got := ParseSelector(Selector(labels))
		if !maps.Equal(got, labels) {
			t.Errorf("%v became %v", labels, got)
		}
	}
	for _, bad := range []string{"a=b,", `"a"`, `"a"="b"`, `"a"="b`} {
		if ParseSelector(bad) != nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func at(address string, change ...func(*Endpoint)) *Endpoint {
	e := &Endpoint{Key: address, Endpoint: pb.Endpoint{
		Host: "a", Namespace: "ns", PortName: "http", ServicePort: 80, Address: address, Port: 8080, Workload: "w", Cluster: "c",
	}}
	for _, f := range change {
		f(e)
	}
	return e
}

func spec() Spec {
	return Spec{Cluster: "c", Service: "ns/a", Port: 80, PortName: "http"}
}

func found(a *endpointv3.ClusterLoadAssignment) []string {
	var out []string
	for _, l := range a.Endpoints {
		for _, e := range l.LbEndpoints {
			address := e.GetEndpoint().GetAddress()
			out = append(out, address.GetSocketAddress().GetAddress()+address.GetPipe().GetPath())
		}
	}
	return out
}

func TestBuildChooses(t *testing.T) {
	all := []*Endpoint{
		at("10.0.0.3", func(e *Endpoint) { e.Index = 2 }),
		at("10.0.0.1"),
		at("10.0.0.2", func(e *Endpoint) { e.Index, e.Labels = 1, map[string]string{"version": "v2"} }),
		at("10.0.0.4", func(e *Endpoint) { e.PortName = "grpc" }),
		at("10.0.0.5", func(e *Endpoint) { e.PortName = "admin" }),
		at("10.0.0.6", func(e *Endpoint) { e.Health = pb.EndpointHealthUnhealthy }),
		at("10.0.0.7", func(e *Endpoint) { e.Health, e.Index = pb.EndpointHealthDraining, 9 }),
		at("host.example"),
		at(""),
		at("unix:/run/a.sock", func(e *Endpoint) { e.Index = 10 }),
	}
	for _, c := range []struct {
		name   string
		change func(*Spec)
		want   []string
	}{
		{"all", func(*Spec) {}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "/run/a.sock"}},
		{"sessions stay", func(s *Spec) { s.Sessions = true }, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.7", "/run/a.sock"}},
		{"subset", func(s *Spec) { s.Subset = Selector(map[string]string{"version": "v2"}) }, []string{"10.0.0.2"}},
		{"not ready", func(s *Spec) { s.Unready = true }, []string{"10.0.0.1", "10.0.0.6", "10.0.0.2", "10.0.0.3", "/run/a.sock"}},
		{"not healthy", func(s *Spec) { s.Unhealthy = true }, []string{"10.0.0.1", "10.0.0.6", "10.0.0.2", "10.0.0.3", "/run/a.sock"}},
		{"other port", func(s *Spec) { s.PortName = "other" }, nil},
		{"another number, as in another cluster", func(s *Spec) { s.Port = 82 }, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "/run/a.sock"}},
	} {
		s := spec()
		c.change(&s)
		if got := found(Build(s, all)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := found(BuildNames(spec(), all)); !slices.Contains(got, "host.example") || slices.Contains(got, "") {
		t.Errorf("by name: %v", got)
	}
}

// The network is preferred where it comes first; endpoints of other networks come in the order of
// what follows.
func TestNetworkIsPreferred(t *testing.T) {
	list := []labelValue{{networkLabel, "n"}, {regionLabel, "r"}, {zoneLabel, "z"}}
	place := func(network, locality string) *Endpoint {
		return at("10.0.0.1", func(e *Endpoint) { e.Network, e.Locality = network, locality })
	}
	for i, e := range []*Endpoint{place("n", "r/z"), place("n", "r/y"), place("n", "q/z"), place("m", "r/z"), place("m", "r/y"), place("m", "q/z")} {
		if got := rank(e, list); got != i {
			t.Errorf("%d: rank %d", i, got)
		}
	}
	list = []labelValue{{regionLabel, "r"}, {networkLabel, "n"}}
	for i, e := range []*Endpoint{place("n", "r/z"), place("m", "r/z"), place("n", "q/z")} {
		if got := rank(e, list); got != i {
			t.Errorf("not first, %d: rank %d", i, got)
		}
	}
}

// Subsets see what the place of an endpoint implies; nobody knows it of the service's own host.
func TestSubsetOfPlaces(t *testing.T) {
	all := []*Endpoint{
		at("10.0.0.1", func(e *Endpoint) { e.Locality, e.Node = "r/z/s/more", "n1" }),
		at("10.0.0.2", func(e *Endpoint) {
			e.Locality, e.Network, e.Labels = "r/y", "net", map[string]string{zoneLabel: "z", "v": ""}
		}),
		at("a"),
	}
	for _, c := range []struct{ label, value, want string }{
		{regionLabel, "r", "10.0.0.1 10.0.0.2"}, {zoneLabel, "z", "10.0.0.1"}, {subzoneLabel, "s", "10.0.0.1"}, {nodeLabel, "n1", "10.0.0.1"},
		{networkLabel, "net", "10.0.0.2"}, {clusterLabel, "c", "10.0.0.1 10.0.0.2"}, {"v", "", "10.0.0.2"}, {subzoneLabel, "", ""},
	} {
		s := spec()
		s.Subset = Selector(map[string]string{c.label: c.value})
		got := found(BuildNames(s, all))
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s=%s: %v, want %s", c.label, c.value, got, c.want)
		}
	}
}

// Clients know which endpoints are to be avoided.
func TestHealth(t *testing.T) {
	for _, c := range []struct {
		change func(*Spec)
		want   core.HealthStatus
	}{
		{func(s *Spec) { s.Unhealthy = true }, core.HealthStatus_UNHEALTHY}, {func(s *Spec) { s.Unready, s.Unhealthy = true, true }, core.HealthStatus_UNKNOWN},
	} {
		s := spec()
		c.change(&s)
		a := Build(s, []*Endpoint{at("10.0.0.1", func(e *Endpoint) { e.Health = pb.EndpointHealthUnhealthy })})
		if got := a.Endpoints[0].LbEndpoints[0].HealthStatus; got != c.want {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

func TestBuildDoesNotDependOnOrder(t *testing.T) {
	a := []*Endpoint{at("10.0.0.1"), at("10.0.0.2"), at("10.0.0.3", func(e *Endpoint) { e.Locality = "r/z" })}
	want := found(Build(spec(), a))
	slices.Reverse(a)
	if got := found(Build(spec(), a)); !slices.Equal(got, want) {
		t.Errorf("%v, in the other order %v", got, want)
	}
}

func TestMetadata(t *testing.T) {
	e := at("10.0.0.1", func(e *Endpoint) {
		e.TlsMode, e.ServiceAccount = "istio", "sa"
		e.Labels = map[string]string{"app": "x", "service.istio.io/canonical-revision": "r"}
	})
	m := metadata(spec(), e).FilterMetadata
	if w := m["istio"].Fields["workload"].GetStringValue(); w != "w;ns;x;r;c" {
		t.Error(w)
	}
	if m["envoy.transport_socket_match"].Fields["tlsMode"].GetStringValue() != "istio" {
		t.Error("an endpoint that speaks mutual TLS is marked")
	}
	s := spec()
	s.Plaintext = true
	if metadata(s, e).FilterMetadata["envoy.transport_socket_match"] != nil {
		t.Error("but not where the client was told otherwise")
	}
	if id := e.Identity("td"); id != "spiffe://td/ns/ns/sa/sa" {
		t.Error(id)
	}
	e.ServiceAccount = "spiffe://other/x"
	if id := e.Identity("td"); id != "spiffe://other/x" {
		t.Error(id)
	}
}

func TestFurtherAddresses(t *testing.T) {
	both := at("10.0.0.1", func(e *Endpoint) { e.MoreAddresses = []string{"2001:db8::1"} })
	for dual, want := range map[bool]int{false: 0, true: 1} {
		s := spec()
		s.Dual = dual
		more := Build(s, []*Endpoint{both}).Endpoints[0].LbEndpoints[0].GetEndpoint().AdditionalAddresses
		if len(more) != want {
			t.Errorf("dual stack %v: %v", dual, more)
		}
		for _, m := range more {
			if a := m.Address.GetSocketAddress(); a.Address != "2001:db8::1" || a.GetPortValue() != 8080 {
				t.Errorf("further address %v", a)
			}
		}
	}
}

func TestWithin(t *testing.T) {
	for area, want := range map[string]bool{
		"r": true, "r/z": true, "r/z/s": true, "*": true, "r/*": true, "r/z/*": true, "*/z/s": true, "q": false, "r/y": false, "r/z/t": false, "r/*/t": false,
	} {
		if within("r/z/s", area) != want {
			t.Errorf("r/z/s within %s: %t", area, !want)
		}
	}
}
