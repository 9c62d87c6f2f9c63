package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/coxswain-mesh/coxswain/cmd/internal/expectations"
	"github.com/coxswain-mesh/coxswain/cmd/internal/plan"
	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/coxswain-mesh/coxswain/internal/artifact"
	"github.com/coxswain-mesh/coxswain/sdk/simulator"
)

// answers is what each command prints with -o json. One that answers different questions has all.
var answers = map[string][]any{
	"config":           {[]show.Object{}},
	"diff":             {difference{}},
	"explain":          {admin.Proxy{}, show.Explained{}},
	"history":          {admin.History{}},
	"hold":             {[]control.Held{}},
	"hold apply":       {api.HoldOutcome{}.Hold},
	"hold drop":        {api.HoldOutcome{}.Hold},
	"hold show":        {api.HoldOutcome{}.Hold},
	"hold list":        {[]control.Held{}},
	"impact":           {admin.Impact{}},
	"log":              {api.LogLevels{}.Areas},
	"log set":          {api.LogLevels{}.Areas},
	"pin":              {api.PinOutcome{}.Pins},
	"plan":             {plan.Plan{}},
	"plugins":          {[]admin.Plugin{}},
	"plugins disable":  {api.Outcome{}},
	"plugins enable":   {api.Outcome{}},
	"plugins inspect":  {artifact.Description{}},
	"plugins log":      {audit.Kept{}},
	"plugins plan":     {api.Planned{}},
	"plugins push":     {map[string]string{}},
	"plugins restart":  {api.Outcome{}},
	"plugins rollback": {api.Outcome{}},
	"plugins swap":     {api.Outcome{}},
	"plugins search":   {[]string{}},
	"plugins show":     {api.Detail{}},
	"plugins top":      {[]admin.Plugin{}},
	"proxies":          {[]admin.ProxyStatus{}, proxyList{}},
	"proxy-status":     {[]admin.ProxyStatus{}, []xds.StreamLedger{}},
	"rollout abort":    {api.RolloutOutcome{}.Status},
	"rollout promote":  {api.RolloutOutcome{}.Status},
	"rollout status":   {admin.Rollout{}},
	"route":            {reflect.Zero(reflect.TypeOf((*simulator.Config).Walk).Out(0)).Interface()},
	"tag list":         {[]webhooks.Tag{}},
	"test":             {[]*expectations.Report{}},
	"top":              {show.Overview{}},
	"unpin":            {api.PinOutcome{}.Pins},
	"upgrade check":    {upgradeReport{}},
	"views":            {[]admin.View{}},
	"wait":             {admin.Progress{}},
	"watch":            {admin.Push{}},
}

// answerLines are the fields of what commands print with -o json.
func answerLines(t *testing.T) (lines []string) {
	t.Helper()
	rest := maps.Clone(answers)
	tree(t, func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "coxswain ")
		f := c.Flags().Lookup("output")
		if f == nil || f.DefValue != "table" {
			return
		}
		values, known := rest[name]
		if !known {
			t.Errorf("%s has -o json, and answers has no type for it", name)
		}
		delete(rest, name)
		for _, v := range values {
			fieldLines(reflect.TypeOf(v), "", nil, func(path, kind string) {
				lines = append(lines, fmt.Sprintf("answer %s: %s %s", name, path, kind))
			})
		}
	})
	for name := range rest {
		t.Errorf("answers has %s, which has no -o json", name)
	}
	return lines
}

var (
	marshals = reflect.TypeFor[json.Marshaler]()
	texts    = reflect.TypeFor[encoding.TextMarshaler]()
)

// fieldLines says the fields that a type has in JSON: paths, with [] for elements and * for keys,
// and kinds. A type that is within itself is named once.
func fieldLines(of reflect.Type, path string, within []reflect.Type, say func(path, kind string)) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	own := func(i reflect.Type) bool { return of.Implements(i) || reflect.PointerTo(of).Implements(i) }
	switch kind := of.Kind(); {
	case own(marshals):
		say(path, "any")
	case own(texts):
		say(path, "string")
	case kind == reflect.Struct:
		if slices.Contains(within, of) {
			say(path, "object")
			return
		}
		within = append(slices.Clone(within), of)
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-" || !f.IsExported() && !f.Anonymous:
			case f.Anonymous && name == "":
				fieldLines(f.Type, path, within, say)
			default:
				if name == "" {
					name = f.Name
				}
				fieldLines(f.Type, path+"."+name, within, say)
			}
		}
	case kind == reflect.Slice && of.Elem().Kind() == reflect.Uint8:
		say(path, "string")
	case kind == reflect.Slice || kind == reflect.Array:
		fieldLines(of.Elem(), path+"[]", within, say)
	case kind == reflect.Map:
		fieldLines(of.Elem(), path+".*", within, say)
	case kind == reflect.String:
		say(path, "string")
	case kind == reflect.Bool:
		say(path, "boolean")
	case kind == reflect.Interface:
		say(path, "any")
	default:
		say(path, "number")
	}
}

// TestFieldLines: fields are named as encoding/json writes them.
func TestFieldLines(t *testing.T) {
	type inner struct {
		Name string   `json:"name"`
		More []*inner `json:"more,omitempty"`
	}
	type all struct {
		inner
		Of     map[string]inner `json:"of"`
		Hidden int              `json:"-"`
		Raw    json.RawMessage  `json:"raw"`
		Bytes  []byte
		own    int
	}
	var got []string
	fieldLines(reflect.TypeOf(&all{own: 1}), "", nil, func(path, kind string) { got = append(got, path+" "+kind) })
	want := []string{".name string", ".more[] object", ".of.*.name string", ".of.*.more[] object", ".raw any", ".Bytes string"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// schemaLines are the keys that a JSON Schema has, with their types.
func schemaLines(t *testing.T, file, word string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	keyLines(root, root, "", nil, func(path, kind string) { lines = append(lines, word+" "+path+" "+kind) })
	return lines
}

// partOf is a part of a schema that is one, or nil.
func partOf(v any) map[string]any { m, _ := v.(map[string]any); return m }

// referred is what a $ref leads to: the whole, or one of its $defs.
func referred(root map[string]any, ref string) map[string]any {
	if ref == "#" {
		return root
	}
	return partOf(partOf(root["$defs"])[strings.TrimPrefix(ref, "#/$defs/")])
}

// keyLines says the keys of a schema: their paths and types. Keys of a plugin's config are said
// with the name of its builtin.
func keyLines(root, of map[string]any, path string, within []string, say func(path, kind string)) {
	if ref, ok := of["$ref"].(string); ok {
		if !slices.Contains(within, ref) {
			keyLines(root, referred(root, ref), path, append(slices.Clone(within), ref), say)
		}
		return
	}
	for name, sub := range partOf(of["properties"]) {
		at := path + "." + name
		for _, kind := range typesOf(root, partOf(sub)) {
			say(at, kind)
		}
		keyLines(root, partOf(sub), at, within, say)
	}
	for key, mark := range map[string]string{"items": "[]", "additionalProperties": ".*"} {
		if sub := partOf(of[key]); sub != nil {
			keyLines(root, sub, path+mark, within, say)
		}
	}
	for _, key := range []string{"allOf", "anyOf"} {
		subs, _ := of[key].([]any)
		for _, sub := range subs {
			builtin, _ := partOf(partOf(partOf(partOf(sub)["if"])["properties"])["builtin"])["const"].(string)
			at := path
			if builtin != "" {
				at += "(" + builtin + ")"
			}
			keyLines(root, partOf(sub), at, within, say)
			if then := partOf(partOf(sub)["then"]); then != nil {
				keyLines(root, then, at, within, say)
			}
		}
	}
}

// typesOf are the types that a schema takes. Each has a line of its own: one that comes to them
// takes no line away.
func typesOf(root, of map[string]any) (all []string) {
	if ref, ok := of["$ref"].(string); ok {
		of = referred(root, ref)
	}
	switch is := of["type"].(type) {
	case string:
		return []string{is}
	case []any:
		for _, one := range is {
			all = append(all, fmt.Sprint(one))
		}
		return all
	}
	return []string{anyType}
}

// anyType is what a line says of a key that takes whatever there is.
const anyType = "any"

// TestKeyLines: keys are found wherever a schema has them.
func TestKeyLines(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal([]byte(`{"$defs":{"E":{"type":"object","properties":{"name":{"type":"string"},"in":{"$ref":"#/$defs/E"}},
		"allOf":[{"if":{"properties":{"builtin":{"const":"x/y"}}},
		"then":{"properties":{"config":{"type":"object","properties":{"a":{"type":["null","integer"]}}}}}}]}},
		"properties":{"all":{"type":"array","items":{"$ref":"#/$defs/E"}},"free":{"additionalProperties":{"properties":{"b":{}}}}}}`), &root); err != nil {
		t.Fatal(err)
	}
	var got []string
	keyLines(root, root, "", nil, func(path, kind string) { got = append(got, path+" "+kind) })
	slices.Sort(got)
	want := []string{".all array", ".all[](x/y).config object", ".all[](x/y).config.a integer", ".all[](x/y).config.a null",
		".all[].in object", ".all[].name string",
		".free any", ".free.*.b any"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
