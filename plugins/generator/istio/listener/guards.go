package listener

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authz"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extension"
)

// Policies are the security policies that count for a workload, as results: which ones, not why.
type Policies struct {
	// Peers is what its ports take (authn.Modes, as text).
	Peers string
	// Authorization and Tokens are AuthorizationPolicies and RequestAuthentications.
	Authorization, Tokens config.Keys
}

// Guards are the filters that policies put before a workload's own traffic. The nil value has none.
type Guards struct {
	http authz.HTTP
	tcp  authz.TCP
	// tokens checks them; none where nothing does.
	tokens []*hcm.HttpFilter
}

// NewGuards makes them; tokens may be nil.
func NewGuards(http authz.HTTP, tcp authz.TCP, tokens *jwt.JwtAuthentication) *Guards {
	out := &Guards{http: http, tcp: tcp}
	if tokens != nil {
		out.tokens = []*hcm.HttpFilter{httpFilter(authn.TokenFilter, tokens)}
	}
	return out
}

// requests puts guards, and extensions between them in Istio's order, into the filters for requests
// to a port: after who talks is known, before everything else.
func (g *Guards) requests(p Reporting, port uint32, filters []*hcm.HttpFilter) []*hcm.HttpFilter {
	if g == nil {
		g = &Guards{}
	}
	place := 0
	if p.MetadataExchange {
		place = 1
	}
	x := p.Extensions
	return slices.Insert(filters, place, slices.Concat(
		g.http.Custom, x.Requests(port, extension.AuthN), g.tokens, x.Requests(port, extension.AuthZ),
		g.http.Rest, x.Requests(port, extension.Stats, extension.Last),
	)...)
}

// connections are the filters for connections to a port, extensions among them.
func (g *Guards) connections(p Reporting, port uint32) []*listenerv3.Filter {
	if g == nil {
		g = &Guards{}
	}
	x := p.Extensions
	return slices.Concat(
		g.tcp.Custom, x.Connections(port, extension.AuthN, extension.AuthZ), g.tcp.Rest, x.Connections(port, extension.Stats, extension.Last),
	)
}

// before are extensions for connections of which requests are read.
func (p *Reporting) before(port uint32) []*listenerv3.Filter {
	return p.Extensions.Connections(port, extension.AuthN, extension.AuthZ, extension.Stats, extension.Last)
}
