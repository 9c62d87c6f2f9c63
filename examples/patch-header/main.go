// Command patch-header is a patch: it makes every HTTP connection manager add the response header
// `x-patched-by: coxswain`.
package main

import (
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/sdk/wire"
)

func main() { sdk.Serve(plugin()) }

func plugin() sdk.PatchPlugin {
	return sdk.PatchPlugin{
		Name: "patch-header", Version: "1",
		Types: []sdk.Type{{Url: "type.googleapis.com/envoy.config.listener.v3.Listener"}},
		New:   sdk.WithoutConfig(func() (sdk.Patch, error) { return sdk.PatchFunc(patch), nil }),
	}
}

const (
	manager  = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
	mutation = "type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation"
	// The field http_filters of a connection manager.
	httpFilters = 5
)

// paths lead from a listener to the configs of its network filters: filter_chains or
// default_filter_chain, filters, typed_config; and to api_listener.api_listener.
var paths = [][]int{{3, 3, 4}, {25, 3, 4}, {19, 1}}

func patch(_ *state.State, _ string, _ map[string]string, given []sdk.Resource) (changed []sdk.Resource, _ []string, err error) {
	for _, r := range given {
		before := len(r.Body)
		for _, path := range paths {
			if r.Body, err = wire.Edit(r.Body, addFilter, path...); err != nil {
				return nil, nil, err
			}
		}
		if len(r.Body) > before {
			changed = append(changed, r)
		}
	}
	return changed, nil, nil
}

// addFilter puts the header's filter before those of a connection manager: what stands first in a
// message comes first in its lists.
func addFilter(config []byte) []byte {
	typeURL, value := wire.ReadAny(config)
	if typeURL != manager {
		return config
	}
	return wire.Any(typeURL, append(wire.Bytes(nil, httpFilters, filter()), value...))
}

// filter is an HttpFilter {name, typed_config: HeaderMutation {mutations: {response_mutations:
// [{append: {header: {key, value}}}]}}}.
func filter() []byte {
	header := wire.String(wire.String(nil, 1, "x-patched-by"), 2, "coxswain")
	mutations := wire.Bytes(nil, 2, wire.Bytes(nil, 2, wire.Bytes(nil, 1, header)))
	return wire.Bytes(wire.String(nil, 1, "patch-header"), 4, wire.Any(mutation, wire.Bytes(nil, 1, mutations)))
}
