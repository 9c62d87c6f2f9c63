package analysis

import (
	"slices"
	"strings"
	"testing"
)

// TestFilterChains: who asks for the same name at the same port of the same workloads is told of
// each other; rules of one VirtualService are in its own order.
func TestFilterChains(t *testing.T) {
	gateway := func(name, selector, servers string) string {
		return "---\napiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: " + name + ", namespace: edge}\n" +
			"spec:\n  selector: {istio: " + selector + "}\n  servers: [" + servers + "]\n"
	}
	passed := func(name, gateway, rest string) string {
		return "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: " + name + ", namespace: edge}\n" +
			"spec:\n  hosts: ['*.test']\n  gateways: [" + gateway + "]\n  " + rest + "\n"
	}
	const (
		pass   = `{hosts: ["*.test"], port: {number: 443, name: tls, protocol: TLS}, tls: {mode: PASSTHROUGH}}`
		open   = `{hosts: [a.test], port: {number: 443, name: https, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: c}}`
		beside = `{hosts: [a.test], port: {number: 8443, name: https, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: c}}`
		rules  = `tls: [{match: [{sniHosts: [A.test, b.test]}], route: [{destination: {host: x.test}}]}]`
		other  = `tls: [{match: [{sniHosts: [c.test, b.test]}], route: [{destination: {host: x.test}}]}]`
		own    = `tls: [{match: [{sniHosts: [a.test, b.test]}], route: [{destination: {host: x.test}}]},` +
			` {match: [{sniHosts: [b.test, c.test]}], route: [{destination: {host: x.test}}]}]`
		hidden  = "exportTo: [bank]\n  " + rules
		both    = "Gateway g spec.servers|VirtualService v spec.tls"
		servers = pass + ", " + open
	)
	for _, c := range []struct{ name, text, want, says string }{
		{"one Gateway", gateway("g", "x", servers) + passed("v", "g", rules), both,
			"VirtualService edge/v at Gateway edge/g and server https (HTTPS) of Gateway edge/g ask for the same at 0.0.0.0:443: a.test; the former has it"},
		{"the other order", gateway("g", "x", open+", "+pass) + passed("v", "g", rules), both,
			"server https (HTTPS) of Gateway edge/g and VirtualService edge/v at Gateway edge/g ask for the same at 0.0.0.0:443: A.test; the former has it"},
		{"two Gateways", gateway("g", "x", open) + gateway("h", "x", pass) + passed("v", "h", rules), both,
			"server https (HTTPS) of Gateway edge/g and VirtualService edge/v at Gateway edge/h ask for the same at 0.0.0.0:443: A.test; the older one has it"},
		{"two VirtualServices", gateway("g", "x", pass) + passed("v", "g", rules) + passed("w", "g", other),
			"VirtualService v spec.tls|VirtualService w spec.tls", ": b.test; the older one has it"},
		{"other workloads", gateway("g", "x", open) + gateway("h", "y", pass) + passed("v", "h", rules), "", ""},
		{"another port", gateway("g", "x", pass+", "+beside) + passed("v", "g", rules), "", ""},
		{"rules of one VirtualService", gateway("g", "x", pass) + passed("v", "g", own), "", ""},
		{"one that isn't seen there", gateway("g", "x", servers) + passed("v", "g", hidden), "", ""},
	} {
		var r Reader
		r.Add("a.yaml", []byte(c.text))
		var got []string
		for _, f := range r.All() {
			if f.Code == sameConnections {
				got = append(got, f.Kind+" "+f.Name+" "+f.Field)
				if !strings.Contains(f.Message, c.says) {
					t.Errorf("%s: %q is said, want %q", c.name, f.Message, c.says)
				}
			}
		}
		if slices.Sort(got); strings.Join(got, "|") != c.want {
			t.Errorf("%s: %q, want %q\n%v", c.name, got, c.want, r.Faults)
		}
	}
}
