package instances

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func named() Naming {
	return Naming{
		Source: "test", Registry: "Test", Namespace: "default", Host: func(service string) string { return service + ".test" },
		Reasons: map[Reason]Meaning{"odd": {Partly, "are odd"}, "old": {Kept, "are old"}},
	}
}

func at(address string, port uint32, with ...func(*Member)) Member {
	m := Member{Of: address, Port: Port{Number: port, Protocol: "HTTP"}, Endpoint: sdk.Endpoint{Address: address, Port: port, Weight: 1}}
	for _, w := range with {
		w(&m)
	}
	return m
}

// keys are those of changes, each after + or -.
func keys(c Changes) (all []string) {
	for _, table := range Tables() {
		for _, r := range c.Upserts[table] {
			all = append(all, "+"+r.Key)
		}
		for _, key := range c.Deletes[table] {
			all = append(all, "-"+key)
		}
	}
	slices.Sort(all)
	return all
}

func expect(t *testing.T, b *Book, want ...string) {
	t.Helper()
	if got := keys(b.Changes()); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestBook: what differs is published, and nothing else.
func TestBook(t *testing.T) {
	b := New(named())
	b.Set("Web", "a", []Member{at("10.0.0.1", 80)}, nil)
	b.Set("web", "b", []Member{at("10.0.0.2", 80)}, Tally{"odd": {1, "x"}})
	expect(t, b, "+default/web.test", "+default/web.test/http-80/10.0.0.1:80", "+default/web.test/http-80/10.0.0.2:80", "+test:web:odd")
	b.Set("web", "a", []Member{at("10.0.0.1", 80)}, nil)
	expect(t, b)
	b.Set("web", "a", []Member{at("10.0.0.1", 81)}, nil)
	expect(t, b, "+default/web.test", "+default/web.test/http-81/10.0.0.1:81", "-default/web.test/http-80/10.0.0.1:80")
	if got := b.Members("WEB", "a"); len(got) != 1 || got[0].Port.Number != 81 {
		t.Errorf("%v", got)
	}
	b.Set("web", "b", nil, Tally{"old": {2, "y"}})
	expect(t, b, "+default/web.test", "+test:web:old", "-default/web.test/http-80/10.0.0.2:80", "-test:web:odd")
	b.Set("web", "a", nil, nil)
	expect(t, b, "-default/web.test", "-default/web.test/http-81/10.0.0.1:81")
	b.Set("web", "b", nil, nil)
	expect(t, b, "-test:web:old")
	if b.Services() != 0 || len(b.shown) != 0 || len(b.lost) != 0 {
		t.Errorf("something is left: %+v", b)
	}
}

// TestAssemble: what several instances make together, and what of it is lost.
func TestAssemble(t *testing.T) {
	ill := func(m *Member) { m.Endpoint.Health, m.Of = pb.EndpointHealthUnhealthy, "ill" }
	for name, c := range map[string]struct {
		all        []Member
		ports      string
		endpoints  int
		lost       Tally
		resolution pb.ServiceResolution
	}{
		"the healthiest at an address": {[]Member{at("10.0.0.1", 80, ill), at("10.0.0.1", 80)}, "http-80", 1, Tally{Same: {1, "ill"}}, pb.ServiceResolutionStatic},
		"names among addresses":        {[]Member{at("10.0.0.1", 80), at("a.example", 80)}, "http-80", 1, Tally{Name: {1, "a.example"}}, pb.ServiceResolutionStatic},
		"names alone":                  {[]Member{at("b.example", 80), at("a.example", 80)}, "http-80", 2, Tally{}, pb.ServiceResolutionDns},
		"protocols that differ": {[]Member{at("10.0.0.1", 80), at("10.0.0.2", 80), at("10.0.0.3", 80, func(m *Member) { m.Port.Protocol = "GRPC" })}, "http-80", 3,
			Tally{Protocol: {1, "80"}}, pb.ServiceResolutionStatic},
		"names of ports": {[]Member{at("10.0.0.1", 80, func(m *Member) { m.Port.Name = "x" }), at("10.0.0.1", 81, func(m *Member) { m.Port = Port{81, "x", ""} }), at("10.0.0.1", 82, func(m *Member) { m.Port.Protocol = "" })},
			"x x-81 auto-82", 3, Tally{}, pb.ServiceResolutionStatic},
	} {
		t.Run(name, func(t *testing.T) {
			n, lost := named(), Tally{}
			s, endpoints := n.assemble("s", c.all, lost)
			var ports []string
			for _, p := range s.Ports {
				ports = append(ports, p.Name)
			}
			if got := strings.Join(ports, " "); got != c.ports || len(endpoints) != c.endpoints || fmt.Sprint(lost) != fmt.Sprint(c.lost) || s.Resolution != c.resolution {
				t.Errorf("ports %s, %d endpoints, lost %v, resolution %v", got, len(endpoints), lost, s.Resolution)
			}
		})
	}
}

// TestFaults: of a thousand services something is shown, of all it is counted.
func TestFaults(t *testing.T) {
	b := New(named())
	for i := range mostShown + 5 {
		b.Set(fmt.Sprintf("s%d", i), "a", nil, Tally{"odd": {1, "x"}})
	}
	if got := b.Changes().Upserts; len(got[Faults]) != mostShown || len(got[state.Services]) != 0 {
		t.Errorf("%d rows", len(got[Faults]))
	}
	if got := sums(b.lost); got != fmt.Sprintf("odd=%d", mostShown+5) {
		t.Error(got)
	}
}

func TestIsLabel(t *testing.T) {
	for key, want := range map[string]bool{"a": true, "a.b_c-D": true, "example.com/a": true, "": false, "-a": false, "a b": false, "/a": false, "a/": false, strings.Repeat("a", 64): false} {
		if IsLabel(key) != want {
			t.Errorf("%q: %v", key, !want)
		}
	}
}
