package routes

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// OwnersOf are the rows that a virtual host of a route configuration was made from, which body is;
// false: it is none that is made of rows of its own. No more than limit rows are named of each part
// of it.
func (x *Routes) OwnersOf(k Key, body []byte, name string, limit int) ([]incr.Row, bool) {
	now := hostIn(body, name)
	if now == nil {
		return nil, false
	}
	plain := k
	plain.View.Patches = ""
	rows, found := x.plainOwners(plain, now, limit)
	if k.View.Patches == "" {
		return rows, found
	}
	root := incr.Observe(x.Configurations, plain)
	fields, _ := root.Value()
	root.Close()
	if proto.Equal(hostIn(slices.Concat(fields...), name), now) {
		return rows, found
	}
	by := x.PatchedBy(PatchedHost{Key: k, Name: name})
	return append(rows, by...), found || len(by) > 0
}

// PatchedBy are the EnvoyFilters that may have patched a virtual host.
func (x *Routes) PatchedBy(k PatchedHost) []incr.Row {
	var rows []incr.Row
	for _, filter := range x.from.Patches.Naming(k.Key.View.Patches, func(p *networking.EnvoyFilter_EnvoyConfigObjectPatch) bool { return mayPatch(p, k) }) {
		rows = append(rows, incr.Row{Table: config.EnvoyFilters, Key: filter})
	}
	return rows
}

// Patches are the EnvoyFilters that may have patched a route configuration.
func (x *Routes) Patches(k Key) []incr.Row {
	var rows []incr.Row
	for _, filter := range x.from.Patches.Naming(k.View.Patches, func(*networking.EnvoyFilter_EnvoyConfigObjectPatch) bool { return true }) {
		rows = append(rows, incr.Row{Table: config.EnvoyFilters, Key: filter})
	}
	return rows
}

// mayPatch reports whether a patch may be one to a virtual host, or add it; without a name to the
// rest of the configuration.
func mayPatch(p *networking.EnvoyFilter_EnvoyConfigObjectPatch, of PatchedHost) bool {
	name := of.Name
	if name == "" && !of.Another || p.ApplyTo == networking.EnvoyFilter_ROUTE_CONFIGURATION {
		return name == "" && p.ApplyTo == networking.EnvoyFilter_ROUTE_CONFIGURATION
	}
	asked := p.GetMatch().GetRouteConfiguration().GetVhost().GetName()
	if p.ApplyTo == networking.EnvoyFilter_VIRTUAL_HOST && p.GetPatch().GetOperation() == networking.EnvoyFilter_Patch_ADD {
		asked = p.GetPatch().GetValue().GetFields()["name"].GetStringValue()
		return asked == name
	}
	return asked == "" || asked == name
}

func hostIn(body []byte, name string) *routev3.VirtualHost {
	m := &routev3.RouteConfiguration{}
	if proto.Unmarshal(body, m) != nil {
		return nil
	}
	for _, h := range m.VirtualHosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// plainOwners are those of a virtual host without patches.
func (x *Routes) plainOwners(k Key, h *routev3.VirtualHost, limit int) (rows []incr.Row, found bool) {
	if k.View.Gateways != "" {
		for _, of := range incr.Below(x.Configurations, k, x.services.routes) {
			if !slices.ContainsFunc(of.Value, func(r *routev3.Route) bool { return isIn(r, h) }) {
				continue
			}
			why, _ := incr.Explain(x.services.routes, of.Key, limit)
			rows, found = append(rows, why.Rows...), true
			for gateway := range of.Key.View.Gateways.All() {
				rows = append(rows, incr.Row{Table: config.Gateways, Key: gateway})
			}
		}
		return rows, found
	}
	for _, of := range incr.Below(x.Configurations, k, x.virtualHost) {
		if route.HostName(of.Key.Host, of.Key.Port) != h.Name {
			continue
		}
		why, _ := incr.Explain(x.virtualHost, of.Key, limit)
		rows, found = append(rows, why.Rows...), true
		service := incr.Observe(x.from.Scopes.Visible, scope.Host{Scope: of.Key.View.Scope, Host: of.Key.Host})
		if s, ok := service.Value(); ok {
			rows = append(rows, incr.Row{Table: state.Services, Key: s.Key})
		}
		service.Close()
	}
	return rows, found
}

// isIn reports whether a virtual host has routes of the object that a route is of.
func isIn(r *routev3.Route, h *routev3.VirtualHost) bool {
	return slices.ContainsFunc(h.Routes, func(o *routev3.Route) bool { return proto.Equal(o.Metadata, r.Metadata) })
}
