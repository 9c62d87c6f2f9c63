package pieces

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/coxswain-mesh/coxswain/core/view"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Type URLs of resources that have pieces, and of a cluster, which is one.
const (
	Listener           = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteConfiguration = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	Cluster            = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
)

const (
	// mostBytes is how large a resource is that is taken apart: what is larger is one piece.
	mostBytes = 4 << 20
	// mostPieces is how many pieces a resource has that is taken apart.
	mostPieces = 20_000
)

// Piece is a part of a resource, by its place.
type Piece struct {
	// Chain is the key of a filter chain, Filter that of an HTTP filter in it; empty: the whole
	// chain. Host is the name of a virtual host. All are empty for the whole resource.
	Chain, Filter, Host string
}

// Whole is the resource itself.
var Whole = Piece{}

// String says which piece it is, in words for people.
func (p Piece) String() string {
	switch {
	case p.Host != "":
		return "virtual host " + p.Host
	case p.Filter != "":
		return "filter " + p.Filter + " of " + chainWord(p.Chain)
	case p.Chain != "":
		return chainWord(p.Chain)
	}
	return "the resource"
}

func chainWord(key string) string {
	if key == defaultChain {
		return "the default filter chain"
	}
	return "filter chain " + key
}

// resource is one that was taken apart. It is not changed any more.
type resource struct {
	typeURL  string
	listener *listenerv3.Listener
	routes   *routev3.RouteConfiguration
	chains   map[string]*chain
	hosts    map[string]*routev3.VirtualHost
	// order are the keys of chains or hosts as they stand.
	order []string
	more  more
}

// chain is a filter chain, with its connection manager, if it has one.
type chain struct {
	*listenerv3.FilterChain
	hcm     *hcmv3.HttpConnectionManager
	at      int // of the manager among filters
	filters map[string]*hcmv3.HttpFilter
	more    more
}

// spared reports whether a client may do without the chain's filter at a place.
func (c *chain) spared(at int) bool { return c.more.spared(c.hcm.HttpFilters, at) }

// read takes a resource apart; nil: it has no pieces, or too many, or can't be read.
func read(typeURL string, b *view.Body, spare more) *resource {
	if b == nil || !b.Exists() || b.Size(false) > mostBytes {
		return nil
	}
	r := &resource{typeURL: typeURL, more: spare}
	switch typeURL {
	case Listener:
		r.listener, r.chains = &listenerv3.Listener{}, map[string]*chain{}
		if proto.Unmarshal(b.Value(), r.listener) != nil || len(r.listener.FilterChains) > mostPieces || r.listener.UdpListenerConfig != nil {
			return nil
		}
		for _, c := range r.listener.FilterChains {
			r.enter(c, c.Name)
		}
		if d := r.listener.DefaultFilterChain; d != nil {
			r.enter(d, defaultChain)
		}
	case RouteConfiguration:
		r.routes, r.hosts = &routev3.RouteConfiguration{}, map[string]*routev3.VirtualHost{}
		if proto.Unmarshal(b.Value(), r.routes) != nil || len(r.routes.VirtualHosts) > mostPieces {
			return nil
		}
		for _, h := range r.routes.VirtualHosts {
			if h.Name == "" || r.hosts[h.Name] != nil {
				return nil // their names are to be unique
			}
			r.hosts[h.Name] = h
			r.order = append(r.order, h.Name)
		}
	default:
		return nil
	}
	return r
}

// defaultChain is the key of a listener's default filter chain: no chain can be called so that
// people name.
const defaultChain = "\x00default"

// enter takes up a chain by its name, or by its match where it has none that is its own.
func (r *resource) enter(c *listenerv3.FilterChain, key string) {
	if key == "" {
		match, _ := proto.MarshalOptions{Deterministic: true}.Marshal(c.FilterChainMatch)
		key = "match " + strconv.Quote(string(match))
	}
	for n, base := 2, key; r.chains[key] != nil; n++ {
		key = base + "#" + strconv.Itoa(n)
	}
	r.chains[key] = open(c)
	r.chains[key].more = r.more
	r.order = append(r.order, key)
}

// open looks into a chain.
func open(c *listenerv3.FilterChain) *chain {
	out := &chain{FilterChain: c, filters: map[string]*hcmv3.HttpFilter{}}
	for i, f := range c.Filters {
		m := &hcmv3.HttpConnectionManager{}
		if f.GetTypedConfig().MessageIs(m) && f.GetTypedConfig().UnmarshalTo(m) == nil {
			out.hcm, out.at = m, i
			for _, h := range m.HttpFilters {
				out.filters[h.Name] = h
			}
			if len(out.filters) != len(m.HttpFilters) {
				out.hcm, out.filters = nil, nil // names are to be unique
			}
			return out
		}
	}
	return out
}

// with is the chain with other HTTP filters.
func (c *chain) with(filters []*hcmv3.HttpFilter) *listenerv3.FilterChain {
	m := proto.CloneOf(c.hcm)
	m.HttpFilters = filters
	config, err := anypb.New(m)
	if err != nil {
		return c.FilterChain // it came out of one
	}
	out := proto.CloneOf(c.FilterChain)
	out.Filters[c.at].ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: config}
	return out
}

// pair is a resource and the one before, which may be nil.
type pair struct {
	now, before *resource
	// was is what a host or chain was called before, where that is another name: hosts are the same
	// that have a domain in common, chains that have the same match.
	was map[string]string
	// gone are those that are not there any more.
	gone []string
}

func pairOf(before, now *resource) *pair {
	p := &pair{now: now, before: before, was: map[string]string{}}
	if before == nil {
		return p
	}
	free := map[string]string{} // by domain, or match
	for _, key := range before.order {
		if !now.has(key) {
			p.gone = append(p.gone, key)
			for _, mark := range before.marks(key) {
				free[mark] = key
			}
		}
	}
	taken := map[string]bool{}
	for _, key := range now.order {
		if before.has(key) {
			continue
		}
		for _, mark := range now.marks(key) {
			if old, ok := free[mark]; ok && !taken[old] {
				p.was[key], taken[old] = old, true
				break
			}
		}
	}
	p.gone = slices.DeleteFunc(p.gone, func(key string) bool { return taken[key] })
	return p
}

func (r *resource) has(key string) bool { return r.hosts[key] != nil || r.chains[key] != nil }

// marks are what a host or chain is known by, besides its name.
func (r *resource) marks(key string) []string {
	if h := r.hosts[key]; h != nil {
		return h.Domains
	}
	match, _ := proto.MarshalOptions{Deterministic: true}.Marshal(r.chains[key].FilterChainMatch)
	return []string{string(match)}
}

// old is what a host or chain was called before.
func (p *pair) old(key string) string {
	if old, ok := p.was[key]; ok {
		return old
	}
	return key
}

// host and chain are what one was before; nil: nothing.
func (p *pair) host(key string) *routev3.VirtualHost {
	if p.before == nil {
		return nil
	}
	return p.before.hosts[p.old(key)]
}

func (p *pair) chain(key string) *chain {
	if p.before == nil {
		return nil
	}
	return p.before.chains[p.old(key)]
}

// piece is a host or chain.
func (r *resource) piece(key string) Piece {
	if r.hosts != nil {
		return Piece{Host: key}
	}
	return Piece{Chain: key}
}

// differ returns the pieces that are otherwise than before: hosts, or chains, first those that are
// gone, then the others as they stand.
func (p *pair) differ() []Piece {
	var out []Piece
	for _, key := range p.gone {
		out = append(out, p.now.piece(key))
	}
	for _, key := range p.now.order {
		if h := p.now.hosts[key]; h != nil {
			if !proto.Equal(p.host(key), h) {
				out = append(out, Piece{Host: key})
			}
		} else if was := p.chain(key); was == nil || !proto.Equal(was.FilterChain, p.now.chains[key].FilterChain) {
			out = append(out, Piece{Chain: key})
		}
	}
	return out
}

// within are the HTTP filters of a chain that are otherwise than before, and that a client may do
// without (list.go).
func (p *pair) within(key string) []Piece {
	c := p.now.chains[key]
	if c == nil || c.hcm == nil {
		return nil
	}
	was := p.chain(key)
	var out []Piece
	for i, f := range c.hcm.HttpFilters {
		if c.spared(i) && (was == nil || was.hcm == nil || !proto.Equal(was.filters[f.Name], f)) {
			out = append(out, Piece{Chain: key, Filter: f.Name})
		}
	}
	return out
}

// Compare orders pieces by their places.
func Compare(a, b Piece) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Chain, b.Chain), cmp.Compare(a.Filter, b.Filter))
}
