package question

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

var update = flag.Bool("update", false, "write what docs/openapi.json says of the page anew")

// TestOpenAPI: docs/openapi.json says what the pages are asked and what they answer; and they
// answer so. What it says of the core's own pages core/admin holds to them.
func TestOpenAPI(t *testing.T) {
	const file = "../../../docs/openapi.json"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var is, paths map[string]json.RawMessage
	if err := json.Unmarshal(text, &is); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(is["paths"], &paths); err != nil {
		t.Fatal(err)
	}
	of, crowd := gateway{t: t}, newCrowd()
	crowd.join(t, 1, "web", 7, meshTypes(t))
	revisions := kept{differ: []admin.DifferentBody{{Type: admin.TypeURL("rds"), Name: "80", Before: "1", After: "2", Withheld: true, Proxies: []string{"a"}}}}
	ask := "?proxyID=" + url.QueryEscape(nodeID)
	for _, p := range []struct {
		page   admin.Page
		answer reflect.Type
		ask    string
	}{
		{Page(of), reflect.TypeFor[Answer](), ask + "&url=http://shop.example/beta"}, {ReachPage(of), reflect.TypeFor[Reach](), ask},
		{TopologyPage(crowd), reflect.TypeFor[Topology](), ""}, {ChangesPage(revisions), reflect.TypeFor[Changes](), "?from=6&to=7"},
	} {
		schema, err := jsonschema.ForType(p.answer, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
			reflect.TypeFor[time.Duration](): {Type: "integer", Description: "nanoseconds"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		nullable(schema)
		paths[p.page.Path] = encoded(t, map[string]any{"get": described(p.page.About, schema)})
		w := httptest.NewRecorder()
		p.page.Serve(w, httptest.NewRequest("GET", p.page.Path+p.ask, nil))
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(w.Body.Bytes(), &value); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(value); err != nil {
			t.Errorf("%s answers something else: %v\n%s", p.page.Path, err, w.Body)
		}
	}
	is["paths"] = encoded(t, paths)
	want, err := json.MarshalIndent(is, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(text, want) {
		t.Errorf("%s is not what the pages are: go test ./cmd/internal/question -run TestOpenAPI -update", file)
	}
}

// described is what the file says of a page: what it is asked, by its text, and what it answers.
func described(about string, schema *jsonschema.Schema) any {
	var parameters []any
	for _, m := range regexp.MustCompile(`[?&\[](\w+)=`).FindAllStringSubmatch(about, -1) {
		parameters = append(parameters, map[string]any{"name": m[1], "in": "query", "schema": map[string]string{"type": "string"}})
	}
	content := func(about, kind string, schema any) any {
		return map[string]any{"description": about, "content": map[string]any{kind: map[string]any{"schema": schema}}}
	}
	return map[string]any{
		"x-by": "cmd/internal/question", "summary": about, "parameters": parameters,
		"responses": map[string]any{
			"200":     content("what is asked for", "application/json", schema),
			"default": content("what is wrong, in a line", "text/plain", map[string]string{"type": "string"}),
		},
	}
}

func encoded(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
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
