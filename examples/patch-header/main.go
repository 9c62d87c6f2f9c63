// Command patch-header is a patch: it makes every HTTP connection manager add the response header `x-patched-by: coxswain`.
package main

import (
	"encoding/json"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func main() {
	sdk.Serve(sdk.Plugin{
		Name: "patch-header", Version: "1", JSON: true,
		Types: []sdk.Type{{Url: "type.googleapis.com/envoy.config.listener.v3.Listener"}},
		Patch: func([]byte) (sdk.Patch, error) { return sdk.PatchFunc(patch), nil },
	})
}

const (
	manager = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
	header  = `{"name": "patch-header", "typedConfig": {
		"@type": "type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation",
		"mutations": {"responseMutations": [{"append": {"header": {"key": "x-patched-by", "value": "coxswain"}}}]}}}`
)

func patch(_ *state.State, _ string, _ map[string]string, given []sdk.Resource) (changed []sdk.Resource, _ []string, err error) {
	for _, r := range given {
		var listener any
		if err := json.Unmarshal(r.Body, &listener); err != nil {
			return nil, nil, err
		}
		if !walk(listener) {
			continue
		}
		if r.Body, err = json.Marshal(listener); err != nil {
			return nil, nil, err
		}
		changed = append(changed, r)
	}
	return changed, nil, nil
}

// walk puts the header filter first into every connection manager below v, and says whether there was one.
func walk(v any) (found bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			found = walk(e) || found
		}
	case map[string]any:
		if filters, ok := v["httpFilters"].([]any); ok && v["@type"] == manager {
			v["httpFilters"] = append([]any{json.RawMessage(header)}, filters...)
			return true
		}
		for _, e := range v {
			found = walk(e) || found
		}
	}
	return found
}
