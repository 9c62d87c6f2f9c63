package analysis

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// TestLargeRegexes: expressions are found wherever they stand, in files as something to know, and
// live where a proxy is connected that may refuse them.
func TestLargeRegexes(t *testing.T) {
	const large = `"[a-zA-Z0-9_-]{1,64}"`
	spec := &networking.VirtualService{}
	if err := protojson.Unmarshal([]byte(`{"http":[{"match":[{"uri":{"regex":`+large+`},"headers":{"x":{"regex":`+large+`},"y":{"regex":"a+"}}}],
		"rewrite":{"uriRegexRewrite":{"match":`+large+`,"rewrite":"/"}},"corsPolicy":{"allowOrigins":[{"exact":"a"},{"regex":`+large+`}]}}]}`), spec); err != nil {
		t.Fatal(err)
	}
	r := Resource{Resource: finding.Resource{Kind: "VirtualService", Namespace: "shop", Name: "v", Spec: spec}}
	const fields = `spec.http[0].match[0].uri.regex spec.http[0].match[0].headers["x"].regex ` +
		`spec.http[0].rewrite.uriRegexRewrite.match spec.http[0].corsPolicy.allowOrigins[1].regex`
	for _, c := range []struct {
		name     string
		proxies  []Proxy
		severity finding.Severity
		fields   []string
		who      string
	}{
		{"files", nil, finding.Info, strings.Fields(fields), "Envoys whose bootstraps say nothing of it"},
		{"nobody is connected", []Proxy{}, 0, nil, ""},
		{"proxies that allow it", []Proxy{{Name: "a"}}, 0, nil, ""},
		{"a stock proxy", []Proxy{{Name: "a"}, {Name: "b", Stock: true}}, finding.Warning, strings.Fields(fields), "(b)"},
		{"many", []Proxy{{Name: "e", Stock: true}, {Name: "d", Stock: true}, {Name: "c", Stock: true}, {Name: "b", Stock: true}},
			finding.Warning, strings.Fields(fields), "(b, c, d and 1 more)"},
	} {
		want := map[string]bool{}
		for _, f := range c.fields {
			want[f] = true
		}
		for _, f := range Analyze(Input{Resources: []Resource{r}, Proxies: c.proxies}) {
			if f.Code != largeRegex {
				continue
			}
			if !want[f.Field] || f.Severity != c.severity || !strings.Contains(f.Message, c.who) {
				t.Errorf("%s: %+v", c.name, f.Finding)
			}
			delete(want, f.Field)
		}
		if len(want) > 0 {
			t.Errorf("%s: nothing is said of %v", c.name, want)
		}
	}
}
