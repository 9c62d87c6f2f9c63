// Package held closes pieces of resources that patches spoil, and puts in their places what proxies
// had of them: a virtual host, a filter chain, or what a listener or route configuration says
// beside these. So one piece alone stays as it was, and all others go on.
package held

import (
	"bytes"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// mark is the namespace of metadata by which such a piece is known, here and in what proxies show.
const mark = "coxswain.held"

func marked() *core.Metadata {
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{mark: {}}}
}

func has(m *core.Metadata) bool { return m.GetFilterMetadata()[mark] != nil }

// Host is a virtual host of some domains in which nobody is let in: it has no routes (404).
func Host(name string, domains []string) *routev3.VirtualHost {
	return &routev3.VirtualHost{Name: name, Domains: domains, Metadata: marked()}
}

// Chain is a filter chain for the connections of another one, which closes them: it has no filters.
func Chain(of *listenerv3.FilterChain) *listenerv3.FilterChain {
	return &listenerv3.FilterChain{Name: of.Name, FilterChainMatch: of.FilterChainMatch, Metadata: marked()}
}

// Routes marks all of a route configuration but its virtual hosts: without one before, it isn't
// served.
func Routes(m *routev3.RouteConfiguration) { m.Metadata = marked() }

// Listener marks all of a listener but its filter chains: without one before, it isn't served.
func Listener(m *listenerv3.Listener) { m.Metadata = marked() }

// lacks reports whether there may be a piece that is marked in what is encoded.
func lacks(body []byte) bool { return bytes.Contains(body, []byte(mark)) }

// FillRoutes puts into a route configuration, each of whose virtual hosts is a field of its own and
// whose first field is the rest, what one before has of the pieces that are closed. A virtual host
// that was not there, or that has a domain which is another's now, stays closed. nil: it can't be
// served, or all of it would be closed and nothing was there before. field is the number of virtual
// hosts.
func FillRoutes(fields, before [][]byte, field protowire.Number) [][]byte {
	if !slices.ContainsFunc(fields, lacks) {
		return fields
	}
	all := routesOf(fields)
	if all == nil {
		return fields
	}
	was := routesOf(before)
	if was == nil && !slices.ContainsFunc(all.VirtualHosts, func(h *routev3.VirtualHost) bool { return !has(h.Metadata) }) {
		return nil // proxies that run may have more than that
	}
	out := slices.Clone(fields)
	if has(all.Metadata) {
		if was == nil {
			return nil
		}
		was := proto.CloneOf(was)
		was.VirtualHosts = nil
		out[0] = encoded(was)
	}
	owner := map[string]string{}
	for _, h := range all.VirtualHosts {
		for _, d := range h.Domains {
			owner[strings.ToLower(d)] = h.Name
		}
	}
	for i, f := range fields {
		one := routesOf([][]byte{f})
		if !lacks(f) || one == nil || len(one.VirtualHosts) != 1 || !has(one.VirtualHosts[0].Metadata) {
			continue
		}
		if h := hostOf(was, one.VirtualHosts[0].Name, owner); h != nil {
			out[i] = protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), encoded(h))
		}
	}
	return out
}

// hostOf is a virtual host of a name, if all of its domains are its own or nobody's; nil: none.
func hostOf(m *routev3.RouteConfiguration, name string, owner map[string]string) *routev3.VirtualHost {
	for _, h := range m.GetVirtualHosts() {
		if h.Name != name {
			continue
		}
		if slices.ContainsFunc(h.Domains, func(d string) bool {
			by, taken := owner[strings.ToLower(d)]
			return taken && by != name
		}) {
			return nil
		}
		return h
	}
	return nil
}

// routesOf reads fields; nil: there are none, or they are no route configuration.
func routesOf(fields [][]byte) *routev3.RouteConfiguration {
	m := &routev3.RouteConfiguration{}
	if fields == nil || proto.Unmarshal(slices.Concat(fields...), m) != nil {
		return nil
	}
	return m
}

// FillListener puts into a listener what one before (nil: none) has of the pieces that are closed:
// a filter chain for the same connections. One that was not there stays closed. nil: it can't be
// served.
func FillListener(body, before []byte) []byte {
	if !lacks(body) {
		return body
	}
	m, was := &listenerv3.Listener{}, &listenerv3.Listener{}
	if proto.Unmarshal(body, m) != nil || proto.Unmarshal(before, was) != nil {
		return body
	}
	for i, c := range m.FilterChains {
		if old := chainOf(was.FilterChains, c); has(c.Metadata) && old != nil {
			m.FilterChains[i] = old
		}
	}
	if has(m.DefaultFilterChain.GetMetadata()) && was.DefaultFilterChain != nil {
		m.DefaultFilterChain = was.DefaultFilterChain
	}
	if !has(m.Metadata) {
		return encoded(m)
	}
	if before == nil {
		return nil
	}
	was.FilterChains, was.DefaultFilterChain = m.FilterChains, m.DefaultFilterChain
	return encoded(was)
}

// chainOf is the chain of a list for the same connections as another; nil: none.
func chainOf(list []*listenerv3.FilterChain, of *listenerv3.FilterChain) *listenerv3.FilterChain {
	for _, c := range list {
		if proto.Equal(c.FilterChainMatch, of.FilterChainMatch) {
			return c
		}
	}
	return nil
}

// encoded is a message whose parts were checked when they were made.
func encoded(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err) // its parts were encoded before
	}
	return b
}
