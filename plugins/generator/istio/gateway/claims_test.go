package gateway

import (
	"fmt"
	"strings"
	"testing"
)

// TestClaims: names go to who asks first, each by itself, and what is lost is told once for each
// that has it.
func TestClaims(t *testing.T) {
	a, b := Owner{Gateway: "edge/a", Server: "https (HTTPS)"}, Owner{Gateway: "edge/b", Server: "tls (TLS)"}
	v, again := b, b
	v.Service, again.Service = "edge/v", "edge/v"
	again.Server = "tls-2 (TLS)"
	mesh := []string{"istio"}
	many := []string{"1.test", "2.test", "3.test", "4.test", "5.test", "6.test", "7.test"}
	type ask struct {
		of        Owner
		names     []string
		protocols []string
		left      string
		kept      bool
		lost      string
	}
	for _, c := range []struct {
		name string
		asks []ask
	}{
		{"some names", []ask{
			{of: a, names: []string{"a.test", "b.test"}, left: "a.test b.test", kept: true},
			{of: b, names: []string{"B.test", "c.test"}, left: "c.test", kept: true, lost: "B.test: edge/a"},
		}},
		{"all names, of two others", []ask{
			{of: a, names: []string{"a.test"}, left: "a.test", kept: true},
			{of: v, names: []string{"b.test", "*.c.test"}, left: "*.c.test b.test", kept: true},
			{of: b, names: []string{"a.test", "b.test", "*.C.test"}, lost: "*.C.test, b.test: edge/b edge/v; a.test: edge/a"},
		}},
		{"a name twice", []ask{{of: a, names: []string{"a.test", "A.test"}, left: "A.test", kept: true}}},
		{"rules of one virtual service", []ask{
			{of: v, names: []string{"a.test", "b.test"}, left: "a.test b.test", kept: true},
			{of: v, names: []string{"b.test", "c.test"}, left: "c.test", kept: true},
			{of: again, names: []string{"a.test"}},
		}},
		{"any name", []ask{
			{of: a, kept: true},
			{of: b, names: []string{"*"}, lost: "all other connections: edge/a"},
			{of: v, names: []string{"a.test"}, left: "a.test", kept: true},
		}},
		{"other protocols", []ask{
			{of: a, names: []string{"a.test"}, left: "a.test", kept: true},
			{of: b, names: []string{"a.test"}, protocols: mesh, left: "a.test", kept: true},
			{of: v, names: []string{"a.test"}, protocols: mesh, lost: "a.test: edge/b"},
		}},
		{"a name that Envoy refuses", []ask{
			{of: a, names: []string{"a.test", "*b.test"}, left: "a.test", kept: true, lost: "*b.test: refused"},
		}},
		{"many", []ask{
			{of: a, names: many, left: strings.Join(many, " "), kept: true},
			{of: b, names: many, lost: "1.test, 2.test, 3.test, 4.test, 5.test and 2 more: edge/a"},
		}},
	} {
		claims := NewClaims()
		for i, x := range c.asks {
			left, lost, kept := claims.Take(Match(x.names, x.protocols), x.of)
			var said []string
			for _, l := range lost {
				to := strings.TrimSpace(l.To.Gateway + " " + l.To.Service)
				if l.Err != nil {
					to = "refused"
				}
				said = append(said, fmt.Sprintf("%s: %s", l.What(), to))
			}
			if strings.Join(left, " ") != x.left || kept != x.kept || strings.Join(said, "; ") != x.lost {
				t.Errorf("%s: chain %d has %q, %v, and loses %q; want %q, %v, and %q", c.name, i, left, kept, said, x.left, x.kept, x.lost)
			}
		}
	}
}

// TestConcerns: hosts of routes are compared with names in any case and by their wildcards.
func TestConcerns(t *testing.T) {
	l := Loss{Names: []string{"A.test", "*.b.test"}}
	for host, want := range map[string]bool{"a.test": true, "x.b.test": true, "*.test": true, "c.test": false} {
		if l.Concerns([]string{"other.example", host}) != want {
			t.Errorf("%s: %v", host, !want)
		}
	}
	if all := (&Loss{}); !all.Concerns([]string{"a.test"}) {
		t.Error("all connections concern no host")
	}
}
