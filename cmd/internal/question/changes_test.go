package question

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// kept is a control plane that remembers two revisions.
type kept struct {
	admin.Source
	differ []admin.DifferentBody
}

func (k kept) Diff(from, to uint64, node string) (d admin.Difference, err error) {
	if from != 6 {
		return d, errors.New("revision 5 is not kept")
	}
	return admin.Difference{From: from, To: to, Compared: 3, Came: []string{"a"}, Resources: k.differ}, nil
}

func changesOf(t *testing.T, k kept, query string) (int, *Changes, string) {
	t.Helper()
	w := httptest.NewRecorder()
	ChangesPage(k).Serve(w, httptest.NewRequest("GET", ChangesPath+query, nil))
	out := &Changes{}
	if w.Code == 200 {
		if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code, out, w.Body.String()
}

// TestChanges: what came, went and differs, with its fields; of secrets, that they differ; long
// values and lists are cut.
func TestChanges(t *testing.T) {
	rds := admin.TypeURL("rds")
	routes := func(cluster, token string) []byte {
		text := fmt.Sprintf(`{"name": "80", "virtual_hosts": [{"name": "shop", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": %q},
		 "request_headers_to_add": [{"header": {"key": "authorization", "value": %q}}]}]}]}`, cluster, token)
		return bodyOf(t, "rds", "80", text, &routev3.RouteConfiguration{}).Value()
	}
	k := kept{differ: []admin.DifferentBody{
		{
			Type: rds, Name: "80", Before: "1", After: "2", BeforeValue: routes("a", "Bearer planted-one"),
			AfterValue: routes(strings.Repeat("b", mostValue), "Bearer planted-two"), Proxies: []string{"x", "y"},
		},
		{Type: rds, Name: "new", After: "2", Proxies: []string{"x"}},
		{Type: rds, Name: "old", Before: "1", Proxies: []string{"x"}},
		{Type: rds, Name: "past", Before: "1", After: "2", Withheld: true},
	}}
	code, out, text := changesOf(t, k, "?from=6&to=7")
	if code != 200 || out.Compared != 3 || out.Came != 1 || len(out.Resources) != 4 {
		t.Fatalf("%d %s", code, text)
	}
	for i, what := range []string{"changed", "added", "removed", "changed"} {
		if out.Resources[i].What != what {
			t.Errorf("%s is %s, not %s", out.Resources[i].Name, out.Resources[i].What, what)
		}
	}
	first := out.Resources[0]
	if first.Proxies != 2 || first.Proxy != "x" || len(first.Fields) != 2 || first.Fields[0].Before != `"a"` ||
		!strings.HasSuffix(first.Fields[0].After, "bytes)") {
		t.Errorf("%+v", first)
	}
	if strings.Contains(text, "planted") {
		t.Errorf("it has a secret: %s", text)
	}
	for query, want := range map[string]int{"?from=6&to=7&name=new": 1, "?from=6&to=7&type=rds&name=80": 1, "?from=6&to=7&type=cds": 0} {
		if _, out, _ := changesOf(t, k, query); len(out.Resources) != want {
			t.Errorf("%s: %d resources", query, len(out.Resources))
		}
	}
	for query, want := range map[string]int{"": 400, "?from=6": 400, "?from=6&to=-1": 400, "?from=x&to=7": 400, "?from=5&to=7": 404} {
		if code, _, text := changesOf(t, k, query); code != want {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
	many := kept{}
	for i := range mostResources + 5 {
		many.differ = append(many.differ, admin.DifferentBody{Type: rds, Name: fmt.Sprint(i), After: "1"})
	}
	if _, out, _ := changesOf(t, many, "?from=6&to=7"); len(out.Resources) != mostResources || out.More != 5 {
		t.Errorf("%d resources, %d more", len(out.Resources), out.More)
	}
}
