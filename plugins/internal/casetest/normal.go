package casetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// JSON is a resource as plain values, in a form that equal meaning makes equal.
func JSON(m proto.Message) (any, error) {
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	return normal("", "", v), nil
}

// Equal compares what was expected with what was made.
func Equal(want, got any) bool { return reflect.DeepEqual(normal("", "", want), got) }

// unordered are lists whose order means nothing to a proxy, as FIELD or PARENT.FIELD.
func unordered() []string {
	return []string{
		"virtual_hosts", "domains", "filter_chains", "lb_endpoints", "endpoints", "prefix_ranges", "source_prefix_ranges",
		"server_names", "application_protocols", "match_subject_alt_names", "match_typed_subject_alt_names", "ips",
		"match.headers", "match.query_parameters", "retriable_status_codes", "allow_origin_string_match",
		"permissions", "principals", "and_rules.rules", "or_rules.rules", "and_ids.ids", "or_ids.ids",
		"audiences", "custom_tags", "tags_to_remove",
	}
}

func normal(parent, field string, v any) any {
	switch x := v.(type) {
	case map[string]any:
		if x["runtime_key"] == "(" {
			delete(x, "runtime_key")
		}
		delete(x, pluginVersion)
		for k, e := range x {
			x[k] = normal(field, k, e)
		}
		return x
	case []any:
		for i, e := range x {
			x[i] = normal(parent, field, e)
		}
		if slices.Contains(unordered(), field) || slices.Contains(unordered(), parent+"."+field) {
			sort.SliceStable(x, func(i, j int) bool { return text(x[i]) < text(x[j]) })
		}
		return x
	case string:
		return strings.TrimSuffix(x, PluginMark)
	}
	return v
}

// PluginMark ends names of extensions that were made of WasmPlugins; recorded answers lack it.
const PluginMark = "~istio-translated-wasmplugin"

// pluginVersion tells agents that a WasmPlugin has changed.
const pluginVersion = "ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION"

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Differences are the paths at which two values differ, at most limit.
func Differences(want, got any, limit int) []string {
	var out []string
	differ("", normal("", "", want), got, &out)
	if len(out) > limit {
		out = append(out[:limit], fmt.Sprintf("… and %d more", len(out)-limit))
	}
	return out
}

func differ(path string, want, got any, out *[]string) {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			for _, k := range keys(w, g) {
				differ(path+"."+k, w[k], g[k], out)
			}
			return
		}
	case []any:
		if g, ok := got.([]any); ok && len(g) == len(w) {
			for i := range w {
				differ(fmt.Sprintf("%s[%d]", path, i), w[i], g[i], out)
			}
			return
		}
	}
	if !reflect.DeepEqual(want, got) {
		*out = append(*out, fmt.Sprintf("%s: want %.200s, got %.200s", path, text(want), text(got)))
	}
}

func keys(maps ...map[string]any) []string {
	var out []string
	for _, m := range maps {
		for k := range m {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
