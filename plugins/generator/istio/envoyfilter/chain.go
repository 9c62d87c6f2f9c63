package envoyfilter

import (
	"slices"
	"strings"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// chain patches a filter chain and what is in it; false if it is removed.
func (l *listenerPatcher) chain(f *listener.FilterChain) bool {
	for _, p := range l.chainPatches(networking.EnvoyFilter_FILTER_CHAIN, f) {
		if p.op == networking.EnvoyFilter_Patch_REMOVE {
			return false
		}
		if p.merges() {
			mergeChain(f, p)
		}
	}
	l.networkFilters(f)
	return true
}

// mergeChain merges into a chain. A value with a socket of the name that the chain's has changes
// that alone.
func mergeChain(f *listener.FilterChain, p *Patch) {
	own := p.value.(*listener.FilterChain).GetTransportSocket()
	if own == nil || f.TransportSocket == nil || own.Name != f.TransportSocket.Name {
		p.mergeInto(f)
		return
	}
	mergeSocket(f.TransportSocket, own)
}

// chainPatches are the patches to something in a chain.
func (l *listenerPatcher) chainPatches(to networking.EnvoyFilter_ApplyTo, f *listener.FilterChain) []*Patch {
	return l.of(to, l.context, func(p *Patch) bool { return l.matches(p) && l.matchesChain(p.match.GetListener(), f) })
}

func (l *listenerPatcher) matchesChain(m *networking.EnvoyFilter_ListenerMatch, f *listener.FilterChain) bool {
	own := f.GetFilterChainMatch()
	if l.virtual() && m.GetPortNumber() > 0 && own.GetDestinationPort().GetValue() != m.GetPortNumber() {
		return false
	}
	c := m.GetFilterChain()
	return c == nil ||
		(c.Name == "" || c.Name == f.Name) &&
			(c.Sni == "" || slices.Contains(own.GetServerNames(), c.Sni)) &&
			(c.TransportProtocol == "" || c.TransportProtocol == own.GetTransportProtocol()) &&
			(c.ApplicationProtocols == "" || containsAll(own.GetApplicationProtocols(), c.ApplicationProtocols)) &&
			(c.DestinationPort == 0 || c.DestinationPort == own.GetDestinationPort().GetValue())
}

// containsAll reports whether a list has all words that are given with commas, and nothing else,
// between them.
func containsAll(list []string, words string) bool {
	return !slices.ContainsFunc(strings.Split(words, ","), func(w string) bool { return !slices.Contains(list, w) })
}
