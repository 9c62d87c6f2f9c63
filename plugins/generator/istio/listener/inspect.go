package listener

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// anyPort stands for the ports that no chain names.
const anyPort = 0

// asked are the ports at which chains ask something of a connection's first bytes, and those where
// they don't.
type asked map[uint32]bool

// inspect makes the inspectors that chains need, off at ports where none of their chains asks:
// there a server might speak first. As in istiod, ports that no chain names stay inspected for HTTP
// once some port asks.
func inspect(chains []*listenerv3.FilterChain) []*listenerv3.ListenerFilter {
	tls, http := asked{}, asked{}
	for _, c := range chains {
		m := c.GetFilterChainMatch()
		port := m.GetDestinationPort().GetValue()
		tls[port] = tls[port] || m.GetTransportProtocol() == tlsBytes
		http[port] = http[port] || slices.ContainsFunc(m.GetApplicationProtocols(), isPlainProtocol)
	}
	var out []*listenerv3.ListenerFilter
	if tls.any() {
		out = append(out, where(tlsInspector(), tls))
	}
	if http.any() {
		out = append(out, httpInspector(http.not()...))
	}
	return out
}

// not are the ports at which nothing is asked; anyPort stands among them.
func (a asked) not() []uint32 {
	var out []uint32
	for port, yes := range a {
		if !yes {
			out = append(out, port)
		}
	}
	return out
}

func (a asked) any() bool {
	for _, yes := range a {
		if yes {
			return true
		}
	}
	return false
}

// where says where the filter is off: at the other ports that don't ask, if ports in general do,
// otherwise everywhere but at those that do.
func where(f *listenerv3.ListenerFilter, a asked) *listenerv3.ListenerFilter {
	general := a[anyPort]
	var other []uint32
	for port, yes := range a {
		if port != anyPort && yes != general {
			other = append(other, port)
		}
	}
	f.FilterDisabled = atPorts(other)
	if !general && f.FilterDisabled != nil {
		f.FilterDisabled = &listenerv3.ListenerFilterChainMatchPredicate{
			Rule: &listenerv3.ListenerFilterChainMatchPredicate_NotMatch{NotMatch: f.FilterDisabled},
		}
	}
	return f
}
