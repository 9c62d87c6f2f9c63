package listener

import (
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// TestInspectorsLookWhereChainsAsk: off where no chain of a port asks. That for TLS is only on
// where one does if ports in general don't.
func TestInspectorsLookWhereChainsAsk(t *testing.T) {
	modes := func(mode authn.Mode, ports map[uint32]authn.Mode) string {
		return authn.Modes{Mode: mode, Ports: ports}.Text()
	}
	for _, c := range []struct {
		name, peers string
		protocol    config.Protocol
		// whether each looks at port 80 and at one that nobody names; none: there is no such
		// inspector.
		tls, http map[uint32]bool
	}{
		{"permissive", "", config.HTTP, map[uint32]bool{80: true, 9999: true}, map[uint32]bool{80: false, 9999: true}},
		{"strict", modes(authn.Strict, nil), config.HTTP, map[uint32]bool{80: true, 9999: true}, nil},
		{"disabled", modes(authn.Disable, nil), config.Sniffed, nil, map[uint32]bool{80: true, 9999: true}},
		{"strict but for a port", modes(authn.Strict, map[uint32]authn.Mode{80: authn.Disable}), config.Sniffed,
			map[uint32]bool{80: false, 9999: true}, map[uint32]bool{80: true, 9999: true}},
		{"disabled but for a port", modes(authn.Disable, map[uint32]authn.Mode{80: authn.Strict}), config.TCP,
			map[uint32]bool{80: true, 9999: false}, map[uint32]bool{80: false, 9999: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := BuildInbound(Inbound{
				Ports: []Port{{Target: 80, Number: 80, Host: "a", Protocol: c.protocol}},
				Proxy: Reporting{Proxy: Proxy{Policies: Policies{Peers: c.peers}}},
			})
			found := map[string]bool{}
			for _, f := range l.ListenerFilters {
				want := map[string]map[uint32]bool{"envoy.filters.listener.tls_inspector": c.tls, "envoy.filters.listener.http_inspector": c.http}[f.Name]
				for port, on := range want {
					if got := !disabled(f.FilterDisabled, port); got != on {
						t.Errorf("%s at %d: %v, want %v: %s", f.Name, port, got, on, prototext.Format(f.FilterDisabled))
					}
				}
				found[f.Name] = true
			}
			if found["envoy.filters.listener.tls_inspector"] != (c.tls != nil) || found["envoy.filters.listener.http_inspector"] != (c.http != nil) {
				t.Errorf("inspectors %v", found)
			}
		})
	}
}

func disabled(p *listenerv3.ListenerFilterChainMatchPredicate, port uint32) bool {
	switch r := p.GetRule().(type) {
	case *listenerv3.ListenerFilterChainMatchPredicate_DestinationPortRange:
		return int32(port) >= r.DestinationPortRange.Start && int32(port) < r.DestinationPortRange.End
	case *listenerv3.ListenerFilterChainMatchPredicate_NotMatch:
		return !disabled(r.NotMatch, port)
	case *listenerv3.ListenerFilterChainMatchPredicate_OrMatch:
		for _, x := range r.OrMatch.Rules {
			if disabled(x, port) {
				return true
			}
		}
	}
	return false
}
