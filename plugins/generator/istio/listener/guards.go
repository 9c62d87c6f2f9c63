package listener

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authz"
)

// Policies are the security policies that count for a workload, as results: which ones, not why.
type Policies struct {
	// Peers is what its ports take (authn.Modes, as text).
	Peers string
	// Authorization and Tokens are keys of AuthorizationPolicies and RequestAuthentications, joined by commas, the oldest first.
	Authorization, Tokens string
}

// Guards are the filters that policies put before a workload's own traffic, in Istio's order. The nil value has none.
type Guards struct {
	http []*hcm.HttpFilter
	tcp  []*listenerv3.Filter
}

// NewGuards makes them; tokens may be nil.
func NewGuards(http authz.HTTP, tcp authz.TCP, tokens *jwt.JwtAuthentication) *Guards {
	out := &Guards{http: slices.Clone(http.Custom), tcp: slices.Concat(tcp.Custom, tcp.Rest)}
	if tokens != nil {
		out.http = append(out.http, httpFilter(authn.TokenFilter, tokens))
	}
	out.http = append(out.http, http.Rest...)
	return out
}

// requests puts guards into the filters for requests: after who talks is known, before everything else.
func (g *Guards) requests(p Proxy, filters []*hcm.HttpFilter) []*hcm.HttpFilter {
	if g == nil {
		return filters
	}
	place := 0
	if p.MetadataExchange {
		place = 1
	}
	return slices.Insert(filters, place, g.http...)
}

// connections are the filters for connections.
func (g *Guards) connections() []*listenerv3.Filter {
	if g == nil {
		return nil
	}
	return g.tcp
}
