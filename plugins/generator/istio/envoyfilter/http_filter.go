package envoyfilter

import (
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

const connectionManager = "envoy.filters.network.http_connection_manager"

// httpFilters patches the filters for requests of a connection manager.
func (l *listenerPatcher) httpFilters(f *listener.FilterChain, x *listener.Filter) {
	var list []*Patch
	for _, p := range l.chainPatches(networking.EnvoyFilter_HTTP_FILTER, f) {
		if choosesFilter(p, x) {
			list = append(list, p)
		}
	}
	m := &hcm.HttpConnectionManager{}
	if len(list) == 0 || x.GetTypedConfig().UnmarshalTo(m) != nil {
		return
	}
	for _, p := range list {
		sub := filterOf(p).GetSubFilter()
		e := elements[*hcm.HttpFilter]{m.HttpFilters, sub != nil, func(h *hcm.HttpFilter) bool { return h.Name == sub.GetName() }}
		m.HttpFilters = e.edit(p.op, func() *hcm.HttpFilter { return copyOf[*hcm.HttpFilter](p) })
	}
	for _, h := range m.HttpFilters {
		for _, p := range list {
			sub := filterOf(p).GetSubFilter()
			if p.mergesFilters() && (sub == nil && sameType(h, p.value.(*hcm.HttpFilter)) || sub.GetName() == h.Name) {
				mergeHTTPFilter(h, p)
			}
		}
	}
	for _, h := range m.HttpFilters {
		l.bound(h.Name, h.GetConfigDiscovery())
	}
	x.ConfigType = &listener.Filter_TypedConfig{TypedConfig: encode.Wrap(m)}
}

func mergeHTTPFilter(h *hcm.HttpFilter, p *Patch) {
	if h.GetTypedConfig() == nil {
		return
	}
	value := p.value.(*hcm.HttpFilter)
	if value.Name != "" {
		h.Name = value.Name
	}
	if c := value.GetTypedConfig(); c != nil {
		h.ConfigType = &hcm.HttpFilter_TypedConfig{TypedConfig: mergeAny(h.GetTypedConfig(), c)}
	}
}

// inlineRoutes patches the routes that stand in a listener itself.
func (l *listenerPatcher) inlineRoutes() {
	if !l.hasRoutes() {
		return
	}
	for _, f := range l.listener.FilterChains {
		for _, x := range f.Filters {
			m := &hcm.HttpConnectionManager{}
			if x.Name != connectionManager || x.GetTypedConfig().UnmarshalTo(m) != nil || m.GetRouteConfig() == nil {
				continue
			}
			r := routePatcher{Set: l.Set, context: l.context, routes: m.GetRouteConfig()}
			r.whole()
			x.ConfigType = &listener.Filter_TypedConfig{TypedConfig: encode.Wrap(m)}
		}
	}
}
