package simulator

import (
	"net/netip"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// TestChains: criteria in their order, the best fit of each, and no way back.
func TestChains(t *testing.T) {
	plain := func(at string) Connection {
		return Connection{Source: addr("10.1.2.3:40000"), Destination: addr(at)}
	}
	tls := func(sni string, alpn ...string) Connection {
		c := plain("10.0.0.1:443")
		c.TLS = &TLS{SNI: sni, ALPN: alpn}
		return c
	}
	for name, c := range map[string]struct {
		chains string // name: match
		conn   Connection
		want   string
	}{
		"a port before everything else": {`{"port": {"destinationPort": 443}, "name": {"serverNames": ["a.example"]}}`, tls("a.example"), "port"},
		"no way back from a port":       {`{"port": {"destinationPort": 443, "serverNames": ["b.example"]}, "any": {}}`, tls("a.example"), ""},
		"the longest range": {
			`{"wide": {"prefixRanges": [{"addressPrefix": "10.0.0.0", "prefixLen": 8}]}, "narrow": {"prefixRanges": ` +
				`[{"addressPrefix": "10.0.0.0", "prefixLen": 24}]}}`,
			plain("10.0.0.1:443"), "narrow",
		},
		"a range before a name": {
			`{"range": {"prefixRanges": [{"addressPrefix": "10.0.0.1", "prefixLen": 32}]}, "name": {"serverNames": ["a.example"]}}`, tls("a.example"), "range",
		},
		"the whole name":           {`{"all": {"serverNames": ["*.example"]}, "whole": {"serverNames": ["a.example"]}}`, tls("a.example"), "whole"},
		"the longest suffix":       {`{"short": {"serverNames": ["*.example"]}, "long": {"serverNames": ["*.b.example"]}}`, tls("a.b.example"), "long"},
		"names without their case": {`{"name": {"serverNames": ["a.example"]}}`, tls("A.Example"), "name"},
		"no suffix of itself":      {`{"name": {"serverNames": ["*.example"]}}`, tls("example"), ""},
		"any name":                 {`{"name": {"serverNames": ["b.example"]}, "any": {}}`, tls("a.example"), "any"},
		"a name before transport":  {`{"tls": {"transportProtocol": "tls"}, "name": {"serverNames": ["a.example"]}}`, tls("a.example"), "name"},
		"plain text":               {`{"tls": {"transportProtocol": "tls"}, "raw": {"transportProtocol": "raw_buffer"}}`, plain("10.0.0.1:443"), "raw"},
		"TLS":                      {`{"tls": {"transportProtocol": "tls"}, "raw": {"transportProtocol": "raw_buffer"}}`, tls(""), "tls"},
		"what the client says first": {
			`{"h2": {"applicationProtocols": ["h2"]}, "http": {"applicationProtocols": ["http/1.1"]}}`,
			tls("", "http/1.1", "h2"), "http",
		},
		"protocols that aren't offered": {`{"h2": {"applicationProtocols": ["h2"]}, "any": {}}`, tls("", "istio"), "any"},
		"a source": {
			`{"source": {"sourcePrefixRanges": [{"addressPrefix": "10.1.0.0", "prefixLen": 16}]}, "any": {}}`, plain("10.0.0.1:443"), "source",
		},
		"a direct source before its type": {
			`{"direct": {"directSourcePrefixRanges": [{"addressPrefix": "10.1.0.0", "prefixLen": 16}]}, "type": {"sourceType": "EXTERNAL"}}`,
			plain("10.0.0.1:443"), "direct",
		},
		"from elsewhere": {`{"local": {"sourceType": "SAME_IP_OR_LOOPBACK"}, "external": {"sourceType": "EXTERNAL"}}`, plain("10.0.0.1:443"), "external"},
		"from itself": {
			`{"local": {"sourceType": "SAME_IP_OR_LOOPBACK"}, "external": {"sourceType": "EXTERNAL"}}`, plain("10.1.2.3:443"), "local",
		},
		"a source's port": {`{"port": {"sourcePorts": [40000]}, "any": {}}`, plain("10.0.0.1:443"), "port"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &listenerv3.Listener{ListenerFilters: []*listenerv3.ListenerFilter{{Name: "envoy.filters.listener.tls_inspector"}}}
			for name, match := range fields(t, c.chains) {
				m := &listenerv3.FilterChainMatch{}
				if err := protojson.Unmarshal(match, m); err != nil {
					t.Fatal(err)
				}
				l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{Name: name, FilterChainMatch: m})
			}
			w := &walk{Config: &Config{}, connection: c.conn, out: &Outcome{}, local: c.conn.Destination}
			w.inspect(l, false)
			w.chain(l)
			if got := w.out.Way.FilterChain; got != c.want {
				t.Errorf("filter chain %q, want %q: %s", got, c.want, w.out)
			}
			if c.want == "" && w.out.Verdict != Closed {
				t.Errorf("%s, want %s", w.out.Verdict, Closed)
			}
		})
	}
}

func TestDefaultChain(t *testing.T) {
	l := &listenerv3.Listener{
		FilterChains:       []*listenerv3.FilterChain{{Name: "tls", FilterChainMatch: &listenerv3.FilterChainMatch{TransportProtocol: "tls"}}},
		DefaultFilterChain: &listenerv3.FilterChain{Name: "default"},
	}
	w := &walk{Config: &Config{}, connection: Connection{Destination: addr("10.0.0.1:80")}, out: &Outcome{}}
	w.inspect(l, false)
	w.chain(l)
	if got := w.out.Way.FilterChain; got != "default" {
		t.Errorf("filter chain %q: %s", got, w.out)
	}
}

func addr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
