package simulator

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// criterion is one that filter chains are chosen by. fit is how well a chain fits: 0 not at all, 1
// because it asks for nothing, more the more closely it does. found is what the connection has, for
// people.
type criterion struct {
	name, found string
	fit         func(*listenerv3.FilterChainMatch) int
}

// criteria are in their order: those that fit best at one are left for the next, and there is no
// way back.
//
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/listener/v3/listener_components.proto#config-listener-v3-filterchainmatch
func (w *walk) criteria() []criterion {
	source := w.connection.Source.Addr()
	return []criterion{
		{"destination port", w.local.String(), w.fitPort},
		{"destination address", w.local.String(), func(m *listenerv3.FilterChainMatch) int { return longest(m.PrefixRanges, w.local.Addr()) }},
		{"server name", w.sni, func(m *listenerv3.FilterChainMatch) int { return fitName(m.ServerNames, w.sni) }},
		{"transport", w.transport, w.fitTransport},
		{
			"application protocol", strings.Join(w.protocols, ","),
			func(m *listenerv3.FilterChainMatch) int { return fitProtocol(m.ApplicationProtocols, w.protocols) },
		},
		{"direct source", source.String(), func(m *listenerv3.FilterChainMatch) int { return longest(m.DirectSourcePrefixRanges, source) }},
		{"source type", source.String(), w.fitSourceType},
		{"source address", source.String(), func(m *listenerv3.FilterChainMatch) int { return longest(m.SourcePrefixRanges, source) }},
		{"source port", w.connection.Source.String(), w.fitSourcePort},
	}
}

// chain chooses the filter chain.
func (w *walk) chain(l *listenerv3.Listener) *listenerv3.FilterChain {
	if l.FilterChainMatcher != nil {
		w.end(Unknown, "listener %s chooses filter chains by a matching tree", l.Name)
		return nil
	}
	left, last := slices.Clone(l.FilterChains), ""
	for _, c := range w.criteria() {
		best := 0
		for _, chain := range left {
			best = max(best, c.fit(match(chain)))
		}
		before := len(left)
		left = slices.DeleteFunc(left, func(chain *listenerv3.FilterChain) bool { n := c.fit(match(chain)); return n == 0 || n < best })
		if len(left) < before {
			last = "by " + c.name + " " + c.found
		}
	}
	if len(left) > 0 {
		w.out.Way.ChainNumber = slices.Index(l.FilterChains, left[0]) + 1
		return w.chose(left[0], cmp.Or(last, "it is the only one"))
	}
	if l.DefaultFilterChain != nil {
		w.out.Way.ChainNumber = len(l.FilterChains) + 1
		return w.chose(l.DefaultFilterChain, "it is the default: no other fits "+last)
	}
	w.end(Closed, "no filter chain of listener %s fits, %s", l.Name, cmp.Or(last, "for it has none"))
	return nil
}

func (w *walk) chose(c *listenerv3.FilterChain, why string) *listenerv3.FilterChain {
	w.out.Way.FilterChain = c.Name
	w.step("filter chain", cmp.Or(c.Name, "(without a name)"), "%s", why)
	return c
}

// match is what a chain asks for, perhaps nothing.
func match(c *listenerv3.FilterChain) *listenerv3.FilterChainMatch {
	if c.FilterChainMatch == nil {
		return &listenerv3.FilterChainMatch{}
	}
	return c.FilterChainMatch
}

func (w *walk) fitPort(m *listenerv3.FilterChainMatch) int {
	return either(m.DestinationPort == nil, m.DestinationPort.GetValue() == uint32(w.local.Port()))
}

func (w *walk) fitTransport(m *listenerv3.FilterChainMatch) int {
	return either(m.TransportProtocol == "", m.TransportProtocol == w.transport)
}

func (w *walk) fitSourcePort(m *listenerv3.FilterChainMatch) int {
	return either(len(m.SourcePorts) == 0, slices.Contains(m.SourcePorts, uint32(w.connection.Source.Port())))
}

func (w *walk) fitSourceType(m *listenerv3.FilterChainMatch) int {
	source := w.connection.Source.Addr()
	local := source == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || source == netip.IPv6Loopback() || source == w.local.Addr() // no other 127.0.0.0/8
	switch m.SourceType {
	case listenerv3.FilterChainMatch_SAME_IP_OR_LOOPBACK:
		return either(false, local)
	case listenerv3.FilterChainMatch_EXTERNAL:
		return either(false, !local)
	}
	return 1
}

// either is a fit: nothing asked, something asked that is so, or not.
func either(nothing, so bool) int {
	switch {
	case nothing:
		return 1
	case so:
		return 2
	}
	return 0
}

// longest prefix of ranges that has an address.
func longest(ranges []*corev3.CidrRange, a netip.Addr) int {
	if len(ranges) == 0 {
		return 1
	}
	best := 0
	for _, r := range ranges {
		if p, ok := prefix(r); ok && p.Contains(a) {
			best = max(best, p.Bits()+1)
		}
	}
	return best
}

func prefix(r *corev3.CidrRange) (netip.Prefix, bool) {
	a, err := netip.ParseAddr(r.GetAddressPrefix())
	if err != nil {
		return netip.Prefix{}, false
	}
	p, err := a.Prefix(int(r.GetPrefixLen().GetValue()))
	return p, err == nil
}

// fitName: the whole name fits best, then the longest `*.suffix`.
func fitName(names []string, sni string) int {
	if len(names) == 0 {
		return 1
	}
	best := 0
	for _, n := range names {
		n = strings.ToLower(n)
		suffix, wild := strings.CutPrefix(n, "*")
		switch {
		case sni == "":
		case n == sni:
			return 1 << 20
		case wild && strings.HasPrefix(suffix, ".") && strings.HasSuffix(sni, suffix):
			best = max(best, 1+len(suffix))
		}
	}
	return best
}

// fitProtocol: what the client names first fits best.
func fitProtocol(wanted, offered []string) int {
	if len(wanted) == 0 {
		return 1
	}
	for i, p := range offered {
		if slices.Contains(wanted, p) {
			return 1 + len(offered) - i
		}
	}
	return 0
}
