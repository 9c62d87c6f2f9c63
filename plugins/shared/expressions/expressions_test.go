package expressions_test

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/shared/expressions"
)

const large = `"[a-zA-Z0-9_-]{1,64}"`

// long is a name as long as Kubernetes allows, of which a policy makes an expression.
var long = strings.Repeat("a", 63)

// TestOf: a large one is found in each field that becomes an expression of Envoy's, and in no
// other.
func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		spec proto.Message
		text string
		want []string
	}{
		"VirtualService": {&networking.VirtualService{}, `{"http":[{"match":[{"uri":{"regex":` + large + `},"headers":{"x":{"regex":` + large + `},"y":{"regex":"a+"},"z":{"exact":` + large + `}}}],
			"rewrite":{"uriRegexRewrite":{"match":` + large + `,"rewrite":"/"}}}]}`,
			[]string{"spec.http[0].match[0].uri.regex", `spec.http[0].match[0].headers["x"].regex`, "spec.http[0].rewrite.uriRegexRewrite.match"}},
		"EnvoyFilter": {&networking.EnvoyFilter{}, `{"configPatches":[{"patch":{"value":{"name":` + large + `}}},{"patch":{"value":{"route":{
			"regex_rewrite":{"pattern":{"regex":` + large + `}},
			"list":[{"safe_regex":{"google_re2":{},"regex":` + large + `}}]}}}}]}`,
			[]string{"spec.configPatches[1].patch.value.route.list[0].safe_regex.regex",
				"spec.configPatches[1].patch.value.route.regex_rewrite.pattern.regex"}},
		"AuthorizationPolicy": {&security.AuthorizationPolicy{}, `{"rules":[{
			"from":[{"source":{"namespaces":["a","` + long + `"],"notNamespaces":["` + long + `"],"principals":["*/` + long + long + `","` + long + long + `"],
			"serviceAccounts":["` + long + `"],"notTrustDomains":["*","` + long + long + `*"],"requestPrincipals":["*` + long + long + `"]}}],
			"to":[{"operation":{"paths":["/` + long + long + `*"]}}],
			"when":[{"key":"source.namespace","notValues":["` + long + `"]},{"key":"request.headers[x]","values":["` + long + long + `"]},
			{"key":"request.experimental.inline.headers[x]","values":["*","` + long + `"]}]}]}`,
			[]string{"spec.rules[0].from[0].source.principals[0]", "spec.rules[0].from[0].source.notTrustDomains[1]",
				"spec.rules[0].from[0].source.serviceAccounts[0]",
				"spec.rules[0].from[0].source.namespaces[1]", "spec.rules[0].from[0].source.notNamespaces[0]",
				"spec.rules[0].when[0].notValues[0]", "spec.rules[0].when[2].values[1]"}},
		"another kind": {&networking.Sidecar{}, `{}`, nil},
	} {
		if err := protojson.Unmarshal([]byte(c.text), c.spec); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range expressions.Of(c.spec, "shop") {
			got = append(got, e.Field)
			if e.Size <= 75 {
				t.Errorf("%s: %s has %d instructions", name, e.Field, e.Size)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestOfRoute: routes of the Gateway API say by a type what is an expression.
func TestOfRoute(t *testing.T) {
	n := &yaml.Node{}
	if err := yaml.Unmarshal([]byte(`{rules: [{matches: [{path: {type: RegularExpression, value: `+large+`}, headers: [{type: Exact, name: x, value: `+large+`}, {type: RegularExpression, name: x, value: a}]},
		{method: {type: RegularExpression, service: a, method: `+large+`}}]}]}`), n); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range expressions.OfRoute(n, "spec") {
		got = append(got, e.Field)
	}
	if want := []string{"spec.rules[0].matches[0].path.value", "spec.rules[0].matches[1].method.method"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := expressions.OfRoute(nil, ""); got != nil {
		t.Errorf("%v of nothing", got)
	}
}
