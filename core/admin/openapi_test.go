package admin

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

var updateOpenAPI = flag.Bool("update", false, "write docs/openapi.json anew")

// answers are values of the types that pages answer with, one for each form of a page; nil: JSON
// whose form is not promised.
var answers = map[string][]any{
	"/debug/budget":      {xds.Budget{}},
	"/debug/config_dump": {nil}, // Envoy's own
	"/debug/configs":     {[]Object{}},
	"/debug/diff":        {Difference{}},
	"/debug/effects":     {Effects{}},
	"/debug/endpoints":   {nil},
	"/debug/explain":     {Proxy{}, Explanation{}, []Explanation{}},
	"/debug/history":     {History{}},
	"/debug/impact":      {Impact{}},
	"/debug/ledger":      {[]ProxyStatus{}, []xds.StreamLedger{}},
	"/debug/log":         {[]string{}},
	"/debug/nodes":       {Nodes{}},
	"/debug/pins":        {[]Pin{}},
	"/debug/plans":       {Plans{}},
	"/debug/plugins":     {[]Plugin{}},
	"/debug/progress":    {Progress{}},
	"/debug/pushes":      {[]Push{}},
	"/debug/refusals":    {[]Refusal{}},
	"/debug/rollout":     {Rollout{}},
	"/debug/rowz":        {[]Row{}},
	"/debug/served":      {[]Served{}},
	"/debug/services":    {nil},
	"/debug/streams":     {nil},
	"/debug/tables":      {[]Table{}},
	"/debug/views":       {[]View{}},
}

// questions are requests of pages that want arguments.
var questions = map[string][]string{
	"/debug/explain": {"?proxyID=a", "?proxyID=a&all=true"}, "/debug/impact": {"?row=Gateway/a/gw"}, "/debug/progress": {"?row=Gateway/a/gw"},
	"/debug/diff": {"?from=6&to=7"}, "/debug/ledger": {"", "?proxyID=a"}, "/debug/served": {"?proxyID=a"},
	"/debug/rowz":        {"?table=networking.istio.io/Gateway"},
	"/debug/config_dump": {"?proxyID=a"},
}

// operation is what can be asked of a path.
// Source: https://spec.openapis.org/oas/v3.1.0#operation-object
type operation struct {
	Summary    string           `json:"summary"`
	Parameters []map[string]any `json:"parameters,omitempty"`
	Responses  map[string]any   `json:"responses"`
}

var parameter = regexp.MustCompile(`[?&](\w+)=`)

// TestOpenAPI: docs/openapi.json says of each debug page of the core's own what it is asked, and
// what it answers; and they answer so.
func TestOpenAPI(t *testing.T) {
	const file = "../../docs/openapi.json"
	s, err := New(Config{Source: twin{}, Registry: prometheus.NewRegistry(), Version: "v1.2.3", Log: slog.New(slog.DiscardHandler), Naming: caller.Naming{},
		Budget: func() any { return xds.Budget{} }})
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]any{}
	for _, p := range s.pages() {
		forms, ok := answers[p.path]
		if !ok {
			t.Errorf("%s: no row says what it answers", p.path)
			continue
		}
		op := operation{Summary: p.about, Responses: map[string]any{"200": responseOf(t, p.path, forms), "default": plain("what is wrong, in a line")}}
		for _, m := range parameter.FindAllStringSubmatch(p.about, -1) {
			op.Parameters = append(op.Parameters, map[string]any{"name": m[1], "in": "query", "schema": map[string]string{"type": "string"}})
		}
		paths[p.path] = map[string]operation{"get": op}
		played(t, s, p.path, forms)
	}
	paths["/ready"] = map[string]operation{"get": {Summary: "whether proxies are served; with Accept: application/json as JSON",
		Responses: map[string]any{"200": plain("ready"), "503": plain("why not, a reason a line")}}}
	others(t, file, paths)
	want, err := json.MarshalIndent(map[string]any{
		"openapi": "3.1.0", "paths": paths,
		"info": map[string]string{
			"title": "Coxswain: debug pages", "version": "1",
			"description": "Pages of the HTTP port and, but for /ready, of the monitoring port. docs/stability.md says what is promised of them.",
		},
	}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *updateOpenAPI {
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(file); err != nil || !bytes.Equal(is, want) {
		t.Errorf("%s is not what the pages are (%v): go test ./core/admin -run TestOpenAPI -update", file, err)
	}
}

// others adds what the file says of pages that are not the core's own: whoever has such a page
// writes it there, with x-by, and holds it to what the page answers.
func others(t *testing.T, file string, paths map[string]any) {
	t.Helper()
	var is struct {
		Paths map[string]struct {
			Get json.RawMessage `json:"get"`
		} `json:"paths"`
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return // it is made
	}
	if err := json.Unmarshal(text, &is); err != nil {
		t.Fatal(err)
	}
	for path, of := range is.Paths {
		var by struct {
			By string `json:"x-by"`
		}
		if json.Unmarshal(of.Get, &by) == nil && by.By != "" && paths[path] == nil {
			paths[path] = map[string]json.RawMessage{"get": of.Get}
		}
	}
}

func plain(about string) map[string]any {
	return map[string]any{"description": about, "content": map[string]any{"text/plain": map[string]any{"schema": map[string]string{"type": "string"}}}}
}

// responseOf describes JSON of one of some types.
func responseOf(t *testing.T, path string, forms []any) map[string]any {
	t.Helper()
	var all []*jsonschema.Schema
	for _, f := range forms {
		all = append(all, schemaOf(t, path, f))
	}
	schema := all[0]
	if len(all) > 1 {
		schema = &jsonschema.Schema{AnyOf: all}
	}
	return map[string]any{"description": "what is asked for", "content": map[string]any{"application/json": map[string]any{"schema": schema}}}
}

func schemaOf(t *testing.T, path string, value any) *jsonschema.Schema {
	t.Helper()
	if value == nil {
		return &jsonschema.Schema{}
	}
	schema, err := jsonschema.ForType(reflect.TypeOf(value), &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[[]byte]():          {Types: []string{"string", "null"}, ContentEncoding: "base64"},
		reflect.TypeFor[time.Duration]():   {Type: "integer", Description: "nanoseconds"},
	}})
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return &jsonschema.Schema{}
	}
	nullable(schema)
	return schema
}

// nullable lets a map be null, as Go writes one that isn't there.
func nullable(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Type == "object" && s.Properties == nil {
		s.Type, s.Types = "", []string{"null", "object"}
	}
	for _, p := range s.Properties {
		nullable(p)
	}
	nullable(s.Items)
	nullable(s.AdditionalProperties)
}

// played asks a page, and holds what it answers to the forms.
func played(t *testing.T, s *Server, path string, forms []any) {
	t.Helper()
	asked, ok := questions[path]
	if !ok {
		asked = []string{""}
	}
	for _, q := range asked {
		w := httptest.NewRecorder()
		s.HTTP().ServeHTTP(w, here(path+q))
		var value any
		if err := json.Unmarshal(w.Body.Bytes(), &value); w.Code != http.StatusOK || err != nil {
			t.Errorf("%s%s: %d %v %.200s", path, q, w.Code, err, w.Body)
			continue
		}
		var why []string
		fits := slices.ContainsFunc(forms, func(f any) bool {
			r, err := schemaOf(t, path, f).Resolve(nil)
			if err == nil {
				err = r.Validate(value)
			}
			if err != nil {
				why = append(why, err.Error())
			}
			return err == nil
		})
		if !fits {
			t.Errorf("%s%s answers something else: %s\n%.400s", path, q, strings.Join(why, "; "), w.Body)
		}
	}
}

// TestAnswersArePages: no row of answers is of a page that is gone.
func TestAnswersArePages(t *testing.T) {
	s := &Server{}
	there := map[string]bool{}
	for _, p := range s.pages() {
		there[p.path] = true
	}
	for _, path := range slices.Sorted(maps.Keys(answers)) {
		if !there[path] {
			t.Errorf("there is no %s", path)
		}
	}
}
