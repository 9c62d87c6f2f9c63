package pieces

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/view"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
)

// without makes the resource with pieces as they were before; nil: it can't be. dropped: chains
// that were not there before are not even closed.
func (p *pair) without(name string, out []Piece, dropped bool) *view.Body {
	left := make(map[Piece]bool, len(out))
	for _, x := range out {
		left[x] = true
	}
	var m proto.Message
	if p.now.routes != nil {
		m = p.withoutHosts(left)
	} else {
		m = p.withoutChains(left, dropped)
	}
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil
	}
	return view.NewBody(p.now.typeURL, name, bytes, 0)
}

func (p *pair) withoutHosts(left map[Piece]bool) *routev3.RouteConfiguration {
	m := shallow(p.now.routes)
	m.VirtualHosts = nil
	for _, key := range p.now.order {
		if !left[Piece{Host: key}] {
			m.VirtualHosts = append(m.VirtualHosts, p.now.hosts[key])
		} else if was := p.host(key); was != nil {
			m.VirtualHosts = append(m.VirtualHosts, was)
		}
	}
	for _, key := range p.gone {
		if left[Piece{Host: key}] {
			m.VirtualHosts = append(m.VirtualHosts, p.before.hosts[key])
		}
	}
	return m
}

// shallow is a copy of a message that shares the messages in it with it.
func shallow(m *routev3.RouteConfiguration) *routev3.RouteConfiguration {
	out := &routev3.RouteConfiguration{}
	from, to := m.ProtoReflect(), out.ProtoReflect()
	for d, v := range from.Range {
		to.Set(d, v)
	}
	return out
}

func (p *pair) withoutChains(left map[Piece]bool, dropped bool) *listenerv3.Listener {
	m := proto.CloneOf(p.now.listener)
	m.FilterChains, m.DefaultFilterChain = nil, nil
	put := func(key string, c *listenerv3.FilterChain) {
		switch {
		case c == nil:
		case key == defaultChain:
			m.DefaultFilterChain = c
		default:
			m.FilterChains = append(m.FilterChains, c)
		}
	}
	for _, key := range p.now.order {
		put(key, p.chainWithout(key, left, dropped))
	}
	for _, key := range p.gone {
		if left[Piece{Chain: key}] {
			put(key, p.before.chains[key].FilterChain)
		}
	}
	return m
}

// chainWithout is what stands in the place of a chain; nil: nothing.
func (p *pair) chainWithout(key string, left map[Piece]bool, dropped bool) *listenerv3.FilterChain {
	now, was := p.now.chains[key], p.chain(key)
	switch {
	case left[Piece{Chain: key}] && was != nil:
		return was.FilterChain
	case left[Piece{Chain: key}] && dropped:
		return nil
	case left[Piece{Chain: key}]:
		return &listenerv3.FilterChain{Name: now.Name, FilterChainMatch: now.FilterChainMatch}
	case now.hcm == nil || !slices.ContainsFunc(now.hcm.HttpFilters, func(f *hcmv3.HttpFilter) bool { return left[Piece{Chain: key, Filter: f.Name}] }):
		return now.FilterChain
	}
	var filters []*hcmv3.HttpFilter
	for _, f := range now.hcm.HttpFilters {
		switch {
		case !left[Piece{Chain: key, Filter: f.Name}]:
			filters = append(filters, f)
		case was != nil && was.hcm != nil && was.filters[f.Name] != nil:
			filters = append(filters, was.filters[f.Name])
		}
	}
	return now.with(filters)
}
