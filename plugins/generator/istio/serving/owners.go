package serving

import (
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/routes"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

var _ sdk.PieceExplainer = (*Engine)(nil)

// ExplainPiece implements sdk.PieceExplainer. Of a virtual host the graph has recorded what it was
// made from; of a filter chain it is what its listener was made from, but for objects of other
// chains.
func (e *Engine) ExplainPiece(typeURL string, view uint64, name string, of sdk.Piece) ([]state.Name, bool) {
	v := e.views.byID[view]
	if v == nil {
		return nil, false
	}
	switch c := v.content.(type) {
	case *namedContent[routes.Key]:
		if w := c.wants[name]; w != nil && of.FilterChain == 0 {
			rows, ok := e.from.Routes.OwnersOf(c.key(name), slices.Concat(w.told...), of.Name, explainLimit)
			return unique(e.names(rows)), ok
		}
	case *partView:
		if typeURL != encode.ListenerType {
			break
		}
		for _, part := range c.parts {
			if body, ok := part.bodies[name]; ok {
				why, _ := part.root.explain(name)
				return e.chainOwners(body, of, e.names(why.Rows))
			}
		}
	}
	return nil, false
}

func unique(rows []state.Name) []state.Name {
	var out []state.Name
	for _, r := range rows {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// chainOwners are those rows, of all that a listener was made from, that a filter chain of it was
// made from, or a filter in that.
func (e *Engine) chainOwners(body []byte, of sdk.Piece, rows []state.Name) ([]state.Name, bool) {
	l := &listenerv3.Listener{}
	if proto.Unmarshal(body, l) != nil {
		return nil, false
	}
	var c *listenerv3.FilterChain
	switch {
	case of.FilterChain == len(l.FilterChains)+1:
		c = l.DefaultFilterChain
	case of.FilterChain > 0 && of.FilterChain <= len(l.FilterChains):
		c = l.FilterChains[of.FilterChain-1]
	}
	if c == nil {
		return nil, false
	}
	is := func(r state.Name) bool { return e.ofChain(r, chainOf(l, c)) }
	if of.Name != "" {
		is = func(r state.Name) bool { return e.ofFilter(r, of.Name) }
	}
	out := slices.DeleteFunc(unique(rows), func(r state.Name) bool { return !is(r) })
	return out, len(out) > 0
}

// ofFilter reports whether a row is an object that brings a filter along, or changes it.
func (e *Engine) ofFilter(r state.Name, name string) bool {
	switch r.Table {
	case config.TrafficExtensions:
		return config.NamesExtension(name, r.Key)
	case config.WasmPlugins:
		return config.NamesExtension(name, r.Key+config.PluginMark)
	case config.EnvoyFilters:
		f, ok := peek(e.from.Tables.EnvoyFilters, r.Key)
		return ok && slices.ContainsFunc(f.Value.Spec.ConfigPatches, func(p *networking.EnvoyFilter_EnvoyConfigObjectPatch) bool {
			sub := p.GetMatch().GetListener().GetFilterChain().GetFilter().GetSubFilter().GetName()
			added := p.GetPatch().GetValue().GetFields()["name"].GetStringValue()
			merged := p.GetPatch().GetOperation() == networking.EnvoyFilter_Patch_MERGE && sub == name
			return p.ApplyTo == networking.EnvoyFilter_HTTP_FILTER && (added == name || merged)
		})
	}
	return false
}

// chain is what a filter chain says of the objects that it was made from.
type chain struct {
	name  string
	port  uint32
	names []string // of TLS hellos
	// hosts are those of clusters to which its connections go; configs the paths of objects that it
	// says itself; route is the name of its route configuration.
	hosts, configs []string
	route          string
	// own are routes that stand in the chain itself: those of others may be among them.
	own bool
}

func chainOf(l *listenerv3.Listener, c *listenerv3.FilterChain) chain {
	out := chain{name: c.Name, port: l.GetAddress().GetSocketAddress().GetPortValue(), names: c.GetFilterChainMatch().GetServerNames()}
	if path := c.GetMetadata().GetFilterMetadata()["istio"].GetFields()["config"].GetStringValue(); path != "" {
		out.configs = append(out.configs, path)
	}
	to := func(name string) {
		if n, ok := cluster.ParseName(name); ok {
			out.hosts = append(out.hosts, n.Host)
		}
	}
	for _, f := range c.Filters {
		var m hcm.HttpConnectionManager
		var t tcpproxy.TcpProxy
		switch {
		case f.GetTypedConfig().MessageIs(&m) && f.GetTypedConfig().UnmarshalTo(&m) == nil:
			out.route, out.own = m.GetRds().GetRouteConfigName(), m.GetRouteConfig() != nil
		case f.GetTypedConfig().MessageIs(&t) && f.GetTypedConfig().UnmarshalTo(&t) == nil:
			to(t.GetCluster())
			for _, w := range t.GetWeightedClusters().GetClusters() {
				to(w.Name)
			}
		}
	}
	return out
}

// ofChain reports whether a row may be one that a chain was made from: objects that are about
// connections of others are not. All other objects count for each chain of a listener.
func (e *Engine) ofChain(r state.Name, c chain) bool {
	if c.own {
		return true
	}
	leads := func(host string) bool {
		return slices.ContainsFunc(c.hosts, func(h string) bool { return istio.Covers(host, h) })
	}
	asks := func(hosts []string) bool {
		return slices.ContainsFunc(hosts, func(h string) bool {
			h = h[strings.LastIndexByte(h, '/')+1:]
			return len(c.names) == 0 || slices.ContainsFunc(c.names, func(n string) bool { return istio.OverlapsFold(n, h) })
		})
	}
	switch r.Table {
	case state.Services:
		s, ok := peek(e.from.Tables.Services, r.Key)
		return ok && leads(s.Value.Host)
	case config.DestinationRules:
		d, ok := peek(e.from.Tables.DestinationRules, r.Key)
		return ok && leads(d.Value.Host)
	case config.VirtualServices:
		v, ok := peek(e.from.Tables.VirtualServices, r.Key)
		return ok && c.isOf(v.Value, leads, asks)
	case config.Gateways:
		g, ok := peek(e.from.Tables.Gateways, r.Key)
		if !ok {
			return false
		}
		if strings.HasPrefix(c.route, "https.") {
			return strings.HasSuffix(c.route, "."+g.Value.Name+"."+g.Value.Namespace)
		}
		return slices.ContainsFunc(g.Value.Spec.Servers, func(s *networking.Server) bool { return asks(s.Hosts) })
	case config.EnvoyFilters:
		f, ok := peek(e.from.Tables.EnvoyFilters, r.Key)
		return ok && slices.ContainsFunc(f.Value.Spec.ConfigPatches, c.mayBePatched)
	}
	return true
}

// isOf reports whether a chain may be one of a virtual service's routes.
func (c *chain) isOf(v *config.VirtualService, leads func(host string) bool, asks func(hosts []string) bool) bool {
	if len(c.configs) > 0 {
		return slices.Contains(c.configs, v.Path("virtual-service"))
	}
	to := func(route []*networking.RouteDestination) bool {
		return slices.ContainsFunc(route, func(d *networking.RouteDestination) bool { return leads(d.GetDestination().GetHost()) })
	}
	return slices.ContainsFunc(v.Spec.Tcp, func(t *networking.TCPRoute) bool { return to(t.Route) }) ||
		slices.ContainsFunc(v.Spec.Tls, func(t *networking.TLSRoute) bool {
			return to(t.Route) && slices.ContainsFunc(t.Match, func(m *networking.TLSMatchAttributes) bool { return asks(m.SniHosts) })
		})
}

// mayBePatched reports whether a patch may have changed the chain.
func (c *chain) mayBePatched(p *networking.EnvoyFilter_EnvoyConfigObjectPatch) bool {
	m := p.GetMatch().GetListener()
	asked := m.GetFilterChain()
	return (m.GetPortNumber() == 0 || c.port == 0 || m.GetPortNumber() == c.port) && (asked.GetName() == "" || asked.GetName() == c.name) &&
		(asked.GetSni() == "" || slices.Contains(c.names, asked.GetSni()))
}

// peek is the row of a key as it is now.
func peek[V any](rows *incr.Input[string, V], key string) (V, bool) {
	root := incr.Observe(rows, key)
	defer root.Close()
	return root.Value()
}
