// Package static is the built-in plugin generator/static: an xDS file server. Resources of any type
// stand in YAML or JSON files, and each proxy that the entry's `select` names gets all of them.
//
// The files are a source: set.go and read.go make rows of table `static` out of them, which the
// core commits like any others and hands back in State; generator.go serves what the rows say. So a
// changed file is a revision, with all that belongs to one.
package static

import (
	"github.com/coxswain-mesh/coxswain/sdk"
)

// table holds the resources of files; rows as resource.row makes them.
const table = "static"

// Types that are always offered: those of which every Envoy has an idea, with the contract's
// traits.
const (
	typeCDS  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	typeEDS  = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	typeLDS  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	typeRDS  = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	typeSDS  = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	typeECDS = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
)

// Types that are offered with traits of their own if files hold them at start. Scoped routes are a
// full set, as Envoy takes them.
const (
	typeSRDS = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"
	typeRTDS = "type.googleapis.com/envoy.service.runtime.v3.Runtime"
)

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.GeneratorPlugin {
	return sdk.GeneratorPlugin{
		Name:      "generator/static",
		Version:   "1",
		Reads:     []string{table},
		Publishes: []string{table},
		Types:     checked(typeCDS, typeEDS, typeLDS, typeRDS, typeSDS, typeECDS),
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Generator, error) {
			return newGenerator(c), nil
		}),
	}
}

// checked are types whose resources are checked by the rules of Envoy's fields where files are
// read, so that the place can be named.
func checked(urls ...string) []sdk.Type {
	types := make([]sdk.Type, len(urls))
	for i, url := range urls {
		types[i] = sdk.Type{Url: url, Checked: true}
	}
	return types
}

// offered are the types of Plugin and those that files hold.
func offered(found []string) (all map[string]bool, more []sdk.Type) {
	all = map[string]bool{}
	for _, t := range Plugin().Types {
		all[t.Url] = true
	}
	for _, url := range found {
		if all[url] {
			continue
		}
		all[url] = true
		t := sdk.Type{Url: url, Checked: true}
		switch url {
		case typeSRDS:
			t.Traits = &sdk.Traits{FullState: true, Wildcard: true, Rank: 41}
		case typeRTDS:
			t.Traits = &sdk.Traits{Rank: 5}
		}
		more = append(more, t)
	}
	return all, more
}
