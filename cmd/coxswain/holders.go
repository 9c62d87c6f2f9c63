package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// holders says where the objects that a resource was made from have a value. That a value stands
// there does not say that it comes from there; that it stands nowhere says that it is the
// generator's. known is false for what stands in too many places to say anything, or is no single
// value.
func (a *asked) holders(ctx context.Context, rows []admin.Origin, value json.RawMessage) (found []show.Holder, known bool, err error) {
	want, ok := scalar(value)
	if !ok {
		return nil, false, nil
	}
	wanted, err := a.written(ctx, rows)
	if err != nil {
		return nil, false, err
	}
	for _, table := range slices.Sorted(maps.Keys(wanted)) {
		var list []admin.Row
		if err := a.page(ctx, "/debug/rowz?table="+url.QueryEscape(table), &list); err != nil {
			return nil, false, err
		}
		for _, row := range list {
			if !wanted[table][row.Key] {
				continue
			}
			spec, err := fieldsIn(table, row.Payload)
			if err != nil {
				return nil, false, fmt.Errorf("%s %s: %w", table, row.Key, err)
			}
			for _, path := range leaves(spec, want) {
				found = append(found, show.Holder{RowName: admin.RowName{Table: table, Key: row.Key}, Field: path, Source: row.Source})
			}
		}
	}
	return found, true, nil
}

// written are the objects that people write among rows, or that plugins derived them from, by
// table.
func (a *asked) written(ctx context.Context, rows []admin.Origin) (map[string]map[string]bool, error) {
	out, derived := map[string]map[string]bool{}, map[string]bool{}
	add := func(table, key string) {
		if out[table] == nil {
			out[table] = map[string]bool{}
		}
		out[table][key] = true
	}
	for _, r := range rows {
		switch {
		case r.Gone:
		case strings.Contains(r.Table, "/") || r.Table == state.Mesh:
			add(r.Table, r.Key)
		case r.Source != "":
			derived[r.Source] = true
		}
	}
	if len(derived) == 0 {
		return out, nil
	}
	var objects []admin.Object
	if err := a.page(ctx, "/debug/configs", &objects); err != nil {
		return nil, err
	}
	for _, o := range objects {
		if derived[o.Source] && o.Key != "" {
			add(o.Group+"/"+o.Kind, o.Key)
		}
	}
	return out, nil
}

// fieldsIn returns what is in a row's payload, as JSON has it. What has no form that is known has
// nothing.
func fieldsIn(table string, payload []byte) (any, error) {
	text, err := analysis.Fields(table, payload)
	if err != nil || text == nil {
		return nil, err
	}
	at := "spec"
	if table == state.Mesh {
		at = "mesh"
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	return map[string]any{at: v}, nil
}

// scalar is a value as text, if it is one that can be looked for.
func scalar(value json.RawMessage) (string, bool) {
	var v any
	if json.Unmarshal(value, &v) != nil {
		return "", false
	}
	return textOf(v)
}

func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, v != ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

// leaves are the paths at which a value stands.
func leaves(at any, want string) (paths []string) {
	var walk func(path string, at any)
	walk = func(path string, at any) {
		switch v := at.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(strings.TrimPrefix(path+"."+k, "."), v[k])
			}
		case []any:
			for i, e := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), e)
			}
		default:
			if text, ok := textOf(v); ok && text == want {
				paths = append(paths, path)
			}
		}
	}
	walk("", at)
	return paths
}
