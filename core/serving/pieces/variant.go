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
func (r *resource) without(name string, before *resource, out []Piece, dropped bool) *view.Body {
	left := make(map[Piece]bool, len(out))
	for _, p := range out {
		left[p] = true
	}
	var m proto.Message
	if r.routes != nil {
		m = r.withoutHosts(before, left)
	} else {
		m = r.withoutChains(before, left, dropped)
	}
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil
	}
	return view.NewBody(r.typeURL, name, bytes, 0)
}

func (r *resource) withoutHosts(before *resource, left map[Piece]bool) *routev3.RouteConfiguration {
	m := shallow(r.routes)
	m.VirtualHosts = nil
	for _, key := range r.order {
		switch {
		case !left[Piece{Host: key}]:
			m.VirtualHosts = append(m.VirtualHosts, r.hosts[key])
		case before != nil && before.hosts[key] != nil:
			m.VirtualHosts = append(m.VirtualHosts, before.hosts[key])
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

func (r *resource) withoutChains(before *resource, left map[Piece]bool, dropped bool) *listenerv3.Listener {
	m := proto.CloneOf(r.listener)
	m.FilterChains, m.DefaultFilterChain = nil, nil
	for _, key := range r.order {
		c := r.chain(key, before, left, dropped)
		switch {
		case c == nil:
		case key == defaultChain:
			m.DefaultFilterChain = c
		default:
			m.FilterChains = append(m.FilterChains, c)
		}
	}
	return m
}

// chain is what stands in the place of a chain; nil: nothing.
func (r *resource) chain(key string, before *resource, left map[Piece]bool, dropped bool) *listenerv3.FilterChain {
	now := r.chains[key]
	var was *chain
	if before != nil {
		was = before.chains[key]
	}
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
