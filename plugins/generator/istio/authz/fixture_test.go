package authz_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	meshv1 "istio.io/api/mesh/v1alpha1"
	security "istio.io/api/security/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authz"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
)

// domains of the inputs that are about them.
var domains = map[string][]string{
	"simple-policy-td-aliases":              {"td1", "cluster.local"},
	"simple-policy-multiple-td-aliases":     {"td1", "cluster.local", "some-td"},
	"simple-policy-principal-with-wildcard": {"td1", "foobar"},
	"td-aliases-source-principal":           {"new-td", "old-td", "some-trustdomain"},
}

// custom are the outputs that need an authorizer of the mesh. The folder lacks inputs named
// custom-bad, custom-grpc-provider, custom-grpc-provider-no-namespace and custom-http-provider: one
// input, custom-simple-http, gives these outputs with different authorizers.
var custom = map[string]struct {
	input    string
	provider *meshv1.MeshConfig_ExtensionProvider
}{
	"custom-bad":                        {"custom-simple-http", nil},
	"custom-bad-multiple-providers":     {"custom-bad-multiple-providers", grpcProvider("foo/", true)},
	"custom-grpc-provider":              {"custom-simple-http", grpcProvider("foo/", true)},
	"custom-grpc-provider-no-namespace": {"custom-simple-http", grpcProvider("", false)},
	"custom-http-provider":              {"custom-simple-http", httpProvider()},
	"custom-both-http-tcp":              {"custom-both-http-tcp", grpcProvider("foo/", true)},
}

const authorizer = "my-custom-ext-authz.foo.svc.cluster.local"

func grpcProvider(namespace string, more bool) *meshv1.MeshConfig_ExtensionProvider {
	p := &meshv1.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider{
		Service: namespace + authorizer, Port: 9000, FailOpen: true, StatusOnError: "403",
	}
	if more {
		p.Timeout = durationpb.New(2e6)
		p.IncludeRequestBodyInCheck = &meshv1.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationRequestBody{
			MaxRequestBytes: 4096, AllowPartialMessage: true,
		}
	}
	return &meshv1.MeshConfig_ExtensionProvider{
		Name: "default", Provider: &meshv1.MeshConfig_ExtensionProvider_EnvoyExtAuthzGrpc{EnvoyExtAuthzGrpc: p},
	}
}

func httpProvider() *meshv1.MeshConfig_ExtensionProvider {
	return &meshv1.MeshConfig_ExtensionProvider{
		Name: "default",
		Provider: &meshv1.MeshConfig_ExtensionProvider_EnvoyExtAuthzHttp{
			EnvoyExtAuthzHttp: &meshv1.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider{
				Service: "foo/" + authorizer, Port: 9000, FailOpen: true, StatusOnError: "403", PathPrefix: "/check",
				Timeout:                         durationpb.New(10e9),
				IncludeRequestHeadersInCheck:    []string{"x-custom-id", "x-prefix-*", "*-suffix"},
				IncludeAdditionalHeadersInCheck: map[string]string{"x-header-1": "value-1", "x-header-2": "value-2"},
				HeadersToUpstreamOnAllow:        []string{"Authorization", "x-prefix-*", "*-suffix"},
				HeadersToDownstreamOnDeny:       []string{"Set-cookie", "x-prefix-*", "*-suffix"},
				HeadersToDownstreamOnAllow:      []string{"Set-cookie", "x-prefix-*", "*-suffix"},
				IncludeRequestBodyInCheck: &meshv1.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationRequestBody{
					MaxRequestBytes: 2048, AllowPartialMessage: true, PackAsBytes: true,
				},
			},
		},
	}
}

// former is an output for proxies before Istio 1.11, with regular expressions where those that
// there are get matches of text. Other outputs of the folder have the same field in today's form.
const former = "allow-host-before-111"

func TestFixtures(t *testing.T) {
	dir := shared.Dir(t, "fixtures/authz")
	unused := inputs(t, dir)
	for _, kind := range []string{"http", "tcp"} {
		outputs, err := filepath.Glob(filepath.Join(dir, kind, "*-out*.yaml"))
		if err != nil || len(outputs) == 0 {
			t.Fatalf("no outputs in %s: %v", dir, err)
		}
		for name, files := range byName(outputs) {
			plain := strings.TrimPrefix(name, "extended-")
			input, mesh := plain, authz.Mesh{TrustDomains: domains[plain]}
			c, needs := custom[plain]
			if needs {
				input = c.input
			}
			in := filepath.Join(dir, kind, input+"-in.yaml")
			delete(unused, in)
			t.Run(kind+"/"+name, func(t *testing.T) {
				mesh.Providers = providers(t, c.provider)
				compare(t, files, filters(policies(t, in), mesh, kind), plain == former)
			})
		}
	}
	delete(unused, filepath.Join(dir, requestsOnly))
	for in := range unused {
		t.Errorf("%s: nothing says what it gives", in)
	}
}

// inputs are all of the folder.
func inputs(t *testing.T, dir string) map[string]bool {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*-in.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, f := range files {
		out[f] = true
	}
	return out
}

// requestsOnly is an input without output.
var requestsOnly = filepath.Join("tcp", "custom-only-http-in.yaml")

// TestRequestAuthorizerHasNoSayAboutConnections: the folder has no output for it, because there is
// none.
func TestRequestAuthorizerHasNoSayAboutConnections(t *testing.T) {
	list := policies(t, filepath.Join(shared.Dir(t, "fixtures/authz"), requestsOnly))
	mesh := authz.Mesh{Providers: providers(t, httpProvider())}
	if got := authz.BuildTCP(list, mesh); len(got.Custom)+len(got.Rest) > 0 {
		t.Errorf("%v, want nothing", got)
	}
}

var outputName = regexp.MustCompile(`^(.*)-out\d*\.yaml$`)

// byName groups outputs in the order of their numbers.
func byName(files []string) map[string][]string {
	out := map[string][]string{}
	slices.Sort(files)
	for _, f := range files {
		name := outputName.FindStringSubmatch(filepath.Base(f))[1]
		out[name] = append(out[name], f)
	}
	return out
}

func policies(t *testing.T, file string) []*authz.Policy {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []*authz.Policy
	for _, d := range kinds.Read(file, content) {
		if d.Table == "" {
			continue
		}
		spec := &security.AuthorizationPolicy{}
		if err := proto.Unmarshal(d.Row.Payload, spec); err != nil {
			t.Fatal(err)
		}
		namespace, name := kinds.SplitKey(d.Row.Key)
		out = append(out, &authz.Policy{Namespace: namespace, Name: name, DryRun: authz.IsDryRun(d.Row.Annotations), Spec: spec})
	}
	return out
}

func providers(t *testing.T, p *meshv1.MeshConfig_ExtensionProvider) map[string]authz.Provider {
	if p == nil {
		return nil
	}
	find := func(service string) (string, bool) {
		return authorizer, strings.TrimPrefix(service, "foo/") == authorizer
	}
	built, ok, err := authz.BuildProvider(p, find)
	if err != nil || !ok {
		t.Fatalf("provider: %v, %v", ok, err)
	}
	return map[string]authz.Provider{p.Name: built}
}

func filters(list []*authz.Policy, mesh authz.Mesh, kind string) []proto.Message {
	var out []proto.Message
	if kind == "http" {
		f := authz.BuildHTTP(list, mesh)
		for _, x := range append(f.Custom, f.Rest...) {
			out = append(out, x)
		}
		return out
	}
	f := authz.BuildTCP(list, mesh)
	for _, x := range append(f.Custom, f.Rest...) {
		out = append(out, x)
	}
	return out
}

func compare(t *testing.T, files []string, got []proto.Message, former bool) {
	t.Helper()
	if len(files) != len(got) {
		t.Fatalf("%d filters, want %d", len(got), len(files))
	}
	for i, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := yaml.Unmarshal(content, &want); err != nil {
			t.Fatal(err)
		}
		if former {
			want = today(want)
		}
		if have := plain(t, got[i]); !reflect.DeepEqual(want, have) {
			a, _ := yaml.Marshal(want)
			b, _ := yaml.Marshal(have)
			t.Errorf("%s: want\n%s\ngot\n%s", filepath.Base(f), a, b)
		}
	}
}

// today is a former output with matches of text for expressions that match any case.
func today(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, e := range x {
			out[key] = today(e)
		}
		if m, ok := x["safeRegexMatch"].(map[string]any); ok {
			delete(out, "safeRegexMatch")
			out["stringMatch"] = textMatch(strings.ReplaceAll(strings.TrimPrefix(m["regex"].(string), "(?i)"), `\.`, "."))
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = today(e)
		}
		return out
	}
	return v
}

func textMatch(expression string) map[string]any {
	out := map[string]any{"ignoreCase": true}
	if rest, ok := strings.CutPrefix(expression, ".*"); ok {
		out["suffix"] = rest
	} else if rest, ok := strings.CutSuffix(expression, ".*"); ok {
		out["prefix"] = rest
	} else {
		out["exact"] = expression
	}
	return out
}

func plain(t *testing.T, m proto.Message) any {
	t.Helper()
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", text, err))
	}
	return out
}
