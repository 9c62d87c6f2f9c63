package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// mostHolders is how many places of a value are shown.
const mostHolders = 20

// holder is a place at which an object that a resource was made from has the value of one of the
// resource's fields.
type holder struct {
	admin.RowName
	// Field is a path in the object, as people write it.
	Field  string `json:"field"`
	Source string `json:"source,omitempty"`
}

// holders says where the objects that a resource was made from have a value. That a value stands
// there does not say that it comes from there; that it stands nowhere says that it is the
// generator's. known is false for what stands in too many places to say anything, or is no single
// value.
func (a *asked) holders(ctx context.Context, rows []admin.Origin, value json.RawMessage) (found []holder, known bool, err error) {
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
				found = append(found, holder{admin.RowName{Table: table, Key: row.Key}, path, row.Source})
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

// holdersTable says where a value stands.
func holdersTable(w io.Writer, found []holder, wide bool) {
	if len(found) == 0 {
		fmt.Fprintln(w, "no object that it was made from has this value: its generator makes it, from others or as a default")
		return
	}
	fmt.Fprintln(w, "\nTHE VALUE STANDS IN\tFIELD\tSOURCE")
	most := mostHolders
	if wide {
		most = len(found)
	}
	for _, h := range found[:min(most, len(found))] {
		fmt.Fprintf(w, "%s\t%s\t%s\n", rowText(h.RowName), h.Field, cmp.Or(h.Source, "-"))
	}
	more(w, len(found)-most, false)
}
