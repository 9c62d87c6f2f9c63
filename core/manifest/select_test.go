package manifest

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

func node(t *testing.T, text string) *corev3.Node {
	t.Helper()
	n := &corev3.Node{}
	if err := protojson.Unmarshal([]byte(text), n); err != nil {
		t.Fatal(err)
	}
	return n
}

func parse(t *testing.T, text string) *Set {
	t.Helper()
	set, err := Parse("plugins.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		glob, yes, no string
	}{
		{"a", "a", "|aa|b"},
		{"*", "|a|a/b", "-"},
		{"a*", "a|ab|a*", "b|ba|"},
		{"*a", "a|ba", "ab|"},
		{"a*b", "ab|axb|abb", "a|b|aba"},
		{"a*a", "aa|aba", "a"},
		{"*b*", "b|abc", "ac"},
		{"a*b*c", "abc|axbxc|abbcc|abcbc", "acb|ab|abcd"},
		{"*ab*ab", "abab|xabxab", "ab|aab"},
		{"a.b", "a.b", "axb"},
	} {
		for _, s := range strings.Split(c.yes, "|") {
			if !Glob(c.glob).Match(s) {
				t.Errorf("%q does not match %q", c.glob, s)
			}
		}
		for _, s := range strings.Split(c.no, "|") {
			if c.no != "-" && Glob(c.glob).Match(s) {
				t.Errorf("%q matches %q", c.glob, s)
			}
		}
	}
}

func TestSelect(t *testing.T) {
	const sidecar = `{
		"id": "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local", "cluster": "web.shop",
		"userAgentName": "envoy", "userAgentBuildVersion": {"version": {"majorNumber": 1, "minorNumber": 40, "patch": 2}},
		"locality": {"region": "eu", "zone": "eu-1"},
		"metadata": {
			"NAMESPACE": "shop", "CLUSTER_ID": "one", "MESH_ID": null, "NUMBER": 15.5, "LIST": ["a", "b"],
			"LABELS": {"app": "web", "app.kubernetes.io/name": "web", "ready": true},
			"A": {"B": {"C": "deep"}}, "A.B": {"D": "dotted"}
		}
	}`
	for _, c := range []struct {
		name, selects string
		want          bool
	}{
		{"nothing given", `{}`, true},
		{"id", `{id: "sidecar~*~shop.svc.cluster.local"}`, true},
		{"other id", `{id: "router~*"}`, false},
		{"cluster", `{cluster: web.shop}`, true},
		{"other cluster", `{cluster: web}`, false},
		{"all must match", `{cluster: web.shop, namespace: other}`, false},
		{"namespace", `{namespace: sh*}`, true},
		{"user agent", `{userAgent: envoy}`, true},
		{"user agent and version", `{userAgent: envoy/1.40.*}`, true},
		{"other version", `{userAgent: envoy/1.39.*}`, false},
		{"region", `{locality: eu}`, false},
		{"region and zone", `{locality: eu/eu-1}`, true},
		{"any zone", `{locality: eu/*}`, true},
		{"metadata", `{metadata: {CLUSTER_ID: one}}`, true},
		{"number", `{metadata: {NUMBER: 15.5}}`, true},
		{"element of a list", `{metadata: {LIST: b}}`, true},
		{"no element", `{metadata: {LIST: c}}`, false},
		{"mapping", `{metadata: {LABELS: "*"}}`, false},
		{"null", `{metadata: {MESH_ID: "*"}}`, false},
		{"absent", `{metadata: {NETWORK: "*"}}`, false},
		{"nested", `{metadata: {A.B.C: deep}}`, true},
		{"key with a dot", `{metadata: {A.B.D: dotted}}`, true},
		{"nested, absent", `{metadata: {A.B.E: "*"}}`, false},
		{"labels", `{labels: {app: web, app.kubernetes.io/name: web}}`, true},
		{"boolean label", `{labels: {ready: true}}`, true},
		{"other label", `{labels: {app: web, version: v1}}`, false},
		{"no generator", `{generator: "*"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := parse(t, "plugins: [{name: a, kind: generator, builtin: generator/a, select: "+c.selects+"}]")
			if got := set.Plugins[0].Select.Matches(node(t, sidecar)); got != c.want {
				t.Errorf("%s matches: %v", c.selects, got)
			}
		})
	}
	if new(Select).Matches(nil) != true || (&Select{ID: "*"}).Matches(nil) {
		t.Error("a missing node must match nothing that was asked for")
	}
}

func TestGenerator(t *testing.T) {
	set := parse(t, `
plugins:
  - {name: files, kind: config, builtin: config/file}
  - {name: static, kind: generator, builtin: generator/static, types: [LDS], select: {namespace: special}}
  - {name: istio, kind: generator, builtin: generator/istio}
  - {name: grpc, kind: generator, builtin: generator/grpc, types: [LDS, CDS], select: {generator: grpc}}
  - {name: names, kind: generator, builtin: generator/names, types: [NDS]}
  - {name: patch, kind: patch, builtin: patch/a, select: {namespace: special}}
`)
	all := []string{"names", "grpc", "istio", "static"}
	for _, c := range []struct {
		name, typeName, metadata string
		offering                 []string
		want                     string
	}{
		{"first that has the type", "CDS", `{}`, all, "istio"},
		{"selected goes first by the file's order", "LDS", `{"NAMESPACE": "special"}`, all, "static"},
		{"its types are limited", "CDS", `{"NAMESPACE": "special"}`, all, "istio"},
		{"not selected", "LDS", `{"NAMESPACE": "plain"}`, all, "istio"},
		{"the named generator goes first", "LDS", `{"GENERATOR": "grpc"}`, all, "grpc"},
		{"even before an earlier one that selects", "LDS", `{"GENERATOR": "grpc", "NAMESPACE": "special"}`, all, "grpc"},
		{"others make what it does not", "EDS", `{"GENERATOR": "grpc"}`, all, "istio"},
		{"asks for listeners by name", "LDS", `named`, all, "grpc"},
		{"and gets nothing from others", "EDS", `named`, all, ""},
		{"an unknown name", "LDS", `{"GENERATOR": "api"}`, all, "istio"},
		{"one that does not offer it is passed over", "NDS", `{}`, []string{"names"}, "names"},
		{"nobody", "NDS", `{}`, []string{"static"}, ""},
		{"sources don't generate", "CDS", `{}`, []string{"files"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := string(ShortTypes()[c.typeName])
			named := c.metadata == "named"
			if named {
				c.metadata = "{}"
			}
			got := set.Choose(url, node(t, `{"metadata": `+c.metadata+`}`), named, c.offering)
			if got != c.want {
				t.Errorf("%q generates, want %q", got, c.want)
			}
		})
	}
	if got := set.Patches(node(t, `{"metadata": {"NAMESPACE": "special"}}`)); len(got) != 1 || got[0].Name != "patch" {
		t.Errorf("patches: %v", got)
	}
	if got := set.Patches(node(t, `{}`)); len(got) != 0 {
		t.Errorf("patches: %v", got)
	}
}
