package envoyrules

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
)

// ErrSameConnections says that two filter chains ask for the same connections.
var ErrSameConnections = errors.New("another filter chain asks for the same connections")

// maxAsked bounds the combinations that are reckoned of one filter chain's match. What has more
// isn't compared.
const maxAsked = 10000

// filterChains checks that no two filter chains of a listener ask for the same connections.
func filterChains(l *listener.Listener) error {
	if all := l.GetFilterChains(); len(all) == 1 && proto.Size(all[0].GetFilterChainMatch()) == 0 {
		return nil
	}
	taken := Connections{}
	for i, c := range l.GetFilterChains() {
		if err := taken.Claim(c.GetFilterChainMatch()); err != nil {
			return fmt.Errorf("filter_chains[%d]: filter_chain_match: %w", i, err)
		}
	}
	return nil
}

// Connections are those that filter chains of a listener ask for.
type Connections map[string]bool

// Claim takes the connections that a filter chain asks for (nil: all), none of them if another has
// some, ErrSameConnections, or if Envoy would refuse what is asked.
func (t Connections) Claim(m *listener.FilterChainMatch) error {
	for _, name := range m.GetServerNames() {
		if strings.Contains(strings.TrimPrefix(name, "*."), "*") {
			return fmt.Errorf("server name %q: a wildcard stands for whole labels in front", tail(name))
		}
	}
	asked := asks(m)
	own := map[string]bool{}
	for _, a := range asked {
		if t[a] || own[a] {
			return ErrSameConnections
		}
		own[a] = true
	}
	for a := range own {
		t[a] = true
	}
	return nil
}

// asks are the combinations of what a match asks for, in the form that equal ones have in common.
func asks(m *listener.FilterChainMatch) []string {
	var ports, names []string
	for _, p := range m.GetSourcePorts() {
		ports = append(ports, fmt.Sprint(p))
	}
	for _, n := range m.GetServerNames() {
		names = append(names, strings.TrimPrefix(strings.ToLower(n), "*"))
	}
	out := []string{fmt.Sprintf("%d|%s|%s", m.GetDestinationPort().GetValue(), m.GetTransportProtocol(), m.GetSourceType())}
	for _, list := range [][]string{
		ranges(m.GetPrefixRanges()), names, m.GetApplicationProtocols(), ranges(m.GetDirectSourcePrefixRanges()), ranges(m.GetSourcePrefixRanges()), ports,
	} {
		if len(list) == 0 {
			list = []string{""}
		}
		if len(out)*len(list) > maxAsked {
			return nil
		}
		var next []string
		for _, o := range out {
			for _, l := range list {
				next = append(next, o+"|"+l)
			}
		}
		out = next
	}
	return out
}

// ranges are those of addresses, without the bits that don't count.
func ranges(list []*core.CidrRange) []string {
	var out []string
	for _, r := range list {
		a, err := netip.ParseAddr(r.GetAddressPrefix())
		if p := netip.PrefixFrom(a, int(r.GetPrefixLen().GetValue())); err == nil && p.IsValid() {
			out = append(out, p.Masked().String())
		} else {
			out = append(out, r.GetAddressPrefix())
		}
	}
	return out
}
