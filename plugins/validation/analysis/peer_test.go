package analysis

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// example is one of the examples that istioctl's analyzers are tested by.
type example struct {
	name, analyzer, mesh, networks string
	files                          []string
	// told are codes and resources: IST0101 Gateway default/web.
	told map[string]bool
}

// toldOf names a finding, with the namespace default where a text leaves it out.
func toldOf(code, kind, namespace, name string) string {
	switch {
	case looked[kind].cluster:
		namespace = ""
	case namespace == "":
		namespace = "default"
	}
	return code + " " + kind + " " + namespace + "/" + name
}

// examplesOf reads the examples from the tests of Istio's analyzers.
func examplesOf(t *testing.T, folder string) (all []example) {
	t.Helper()
	messages, err := os.ReadFile(filepath.Join(folder, "../msg/messages.gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+) = diag\.NewMessageType\(diag\.\w+, "(IST\d+)"`).FindAllSubmatch(messages, -1) {
		codes[string(m[1])] = string(m[2])
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, filepath.Join(folder, "analyzers_test.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := func(e ast.Expr) string {
		if l, ok := e.(*ast.BasicLit); ok {
			s, _ := strconv.Unquote(l.Value)
			return s
		}
		var b bytes.Buffer
		_ = printer.Fprint(&b, set, e)
		return b.String()
	}
	grid := file.Scope.Lookup("testGrid").Decl.(*ast.ValueSpec).Values[0].(*ast.CompositeLit)
	for _, c := range grid.Elts {
		e := example{told: map[string]bool{}}
		for _, field := range c.(*ast.CompositeLit).Elts {
			pair := field.(*ast.KeyValueExpr)
			switch text(pair.Key) {
			case "name":
				e.name = text(pair.Value)
			case "analyzer":
				e.analyzer = text(pair.Value)
			case "meshConfigFile":
				e.mesh = text(pair.Value)
			case "meshNetworksFile":
				e.networks = text(pair.Value)
			case "inputFiles":
				for _, f := range pair.Value.(*ast.CompositeLit).Elts {
					e.files = append(e.files, text(f))
				}
			case "expected":
				for _, x := range pair.Value.(*ast.CompositeLit).Elts {
					parts := x.(*ast.CompositeLit).Elts
					kind, name, _ := strings.Cut(text(parts[1]), " ")
					namespace, name, ok := strings.Cut(name, "/")
					if !ok {
						namespace, name = "", namespace
					}
					e.told[toldOf(codes[strings.TrimPrefix(text(parts[0]), "msg.")], kind, namespace, name)] = true
				}
			}
		}
		all = append(all, e)
	}
	return all
}

// missed are the fields whose IST0101 an analyzer tells: several tell that code, each of other
// references.
var missed = map[string]*regexp.Regexp{
	"&authz.AuthorizationPoliciesAnalyzer{}":    regexp.MustCompile(`[nN]amespaces\[`),
	"&gateway.IngressGatewayPortAnalyzer{}":     regexp.MustCompile(`^spec\.selector$`),
	"&gateway.SecretAnalyzer{}":                 regexp.MustCompile(`^spec\.selector$|credentialName`),
	"&sidecar.SelectorAnalyzer{}":               regexp.MustCompile(`elector$`),
	"&telemetry.SelectorAnalyzer{}":             regexp.MustCompile(`elector$`),
	"&virtualservice.DestinationHostAnalyzer{}": regexp.MustCompile(`\.(host|number)$`),
	"&virtualservice.DestinationRuleAnalyzer{}": regexp.MustCompile(`\.subset$`),
	"&virtualservice.GatewayAnalyzer{}":         regexp.MustCompile(`gateways\[`),
}

// ingressGateway is what istioctl takes for granted beside files: pods of the ingress gateway and
// their service. Source: Istio, pkg/config/analysis/local, default resources.
const ingressGateway = `
apiVersion: v1
kind: Pod
metadata: {name: istio-ingressgateway-dummypod, namespace: istio-system, labels: {istio: ingressgateway}}
spec: {containers: [{name: istio-proxy}]}
---
apiVersion: v1
kind: Service
metadata: {name: istio-ingressgateway, namespace: istio-system}
spec:
  selector: {istio: ingressgateway}
  ports:
  - {name: http2, port: 80, targetPort: 80}
  - {name: https, port: 443, targetPort: 443}
  - {name: tcp, port: 31400, targetPort: 31400}
  - {name: tls, port: 15443, targetPort: 15443}
`

// ours is what is told here about the files of an example.
func (e example) ours(t *testing.T, folder string) map[string]bool {
	t.Helper()
	r := Reader{Check: validation.New().Check}
	for _, f := range e.files {
		text, err := os.ReadFile(filepath.Join(folder, f))
		if err != nil {
			t.Fatal(err)
		}
		r.Add(f, text)
	}
	r.Add("ingress.yaml", []byte(ingressGateway))
	if e.networks != "" {
		text, err := os.ReadFile(filepath.Join(folder, e.networks))
		if err != nil {
			t.Fatal(err)
		}
		r.SetNetworks(e.networks, text)
	}
	if e.mesh != "" {
		text, err := os.ReadFile(filepath.Join(folder, e.mesh))
		if err != nil {
			t.Fatal(err)
		}
		r.SetMesh(e.mesh, text)
	}
	out := map[string]bool{}
	for _, f := range r.All() {
		if fields := missed[e.analyzer]; f.Code == "IST0101" && fields != nil && !fields.MatchString(f.Field) {
			continue
		}
		out[toldOf(f.Code, f.Kind, f.Namespace, f.Name)] = true
	}
	return out
}

// istios is the folder of Istio's analyzers.
func istios(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/istio")
	cmd.Dir, cmd.Env = "../../../test/peer", append(os.Environ(), "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in test/peer: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "pkg/config/analysis/analyzers")
}

// codeAndKind is the beginning of what toldOf makes.
func codeAndKind(told string) string { return told[:strings.LastIndexByte(told, ' ')] }

// TestIstiosExamples: about the examples of istioctl's analyzers the same codes are told of the
// same resources, but for what docs/validation.md lists.
func TestIstiosExamples(t *testing.T) {
	need.All(t)
	folder := istios(t)
	all := examplesOf(t, folder)
	tells := map[string]map[string]bool{} // the codes of each analyzer, with the kinds that they are of
	for _, e := range all {
		if tells[e.analyzer] == nil {
			tells[e.analyzer] = map[string]bool{}
		}
		for told := range e.told {
			tells[e.analyzer][codeAndKind(told)] = true
		}
	}
	type counts struct{ fewer, more int }
	differ := map[string]*counts{}
	at := func(told string) *counts {
		code := told[:len("IST0000")]
		if differ[code] == nil {
			differ[code] = &counts{}
		}
		return differ[code]
	}
	same := 0
	for _, e := range all {
		ours := e.ours(t, folder)
		maps.DeleteFunc(ours, func(told string, _ bool) bool { return !tells[e.analyzer][codeAndKind(told)] })
		if maps.Equal(ours, e.told) {
			same++
		}
		for _, told := range slices.Sorted(maps.Keys(e.told)) {
			if !ours[told] {
				at(told).fewer++
				t.Logf("%s: - %s", e.name, told)
			}
		}
		for _, told := range slices.Sorted(maps.Keys(ours)) {
			if !e.told[told] {
				at(told).more++
				t.Logf("%s: + %s", e.name, told)
			}
		}
	}
	page, err := os.ReadFile("../../../docs/validation.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(IST\\d+)` \\| (\\d+) \\| (\\d+) \\| .").FindAllStringSubmatch(string(page), -1) {
		listed[m[1]] = m[2] + " fewer, " + m[3] + " more"
	}
	found := map[string]string{}
	for code, n := range differ {
		found[code] = fmt.Sprintf("%d fewer, %d more", n.fewer, n.more)
	}
	for _, code := range slices.Sorted(maps.Keys(found)) {
		if listed[code] != found[code] {
			t.Errorf("%s: %s; docs/validation.md says %q", code, found[code], listed[code])
		}
	}
	for code := range listed {
		if found[code] == "" {
			t.Errorf("%s is listed in docs/validation.md, and there is no difference", code)
		}
	}
	if want := fmt.Sprintf("In %d of its %d examples", same, len(all)); !strings.Contains(string(page), want) {
		t.Errorf("docs/validation.md doesn't say %q", want)
	}
}

// TestIstiosExampleOfClusters: of two clusters the same Services are told as by Istio's analyzer.
func TestIstiosExampleOfClusters(t *testing.T) {
	need.All(t)
	folder := istios(t)
	test, err := os.ReadFile(filepath.Join(folder, "multicluster_analyzers_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range regexp.MustCompile(`\{msg\.MultiClusterInconsistentService, "Service (\S+)"\}`).FindAllStringSubmatch(string(test), -1) {
		want = append(want, m[1])
	}
	r := Reader{Check: validation.New().Check}
	for i, add := range []func(file string, text []byte){r.Add, func(file string, text []byte) { r.AddRemote("cluster2", file, text) }} {
		file := fmt.Sprintf("testdata/multicluster/inconsistent-service-%d.yaml", i+1)
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		add(file, text)
	}
	var told []string
	for _, f := range r.All() {
		if f.Code == otherService {
			told = append(told, f.Namespace+"/"+f.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(told)
	if len(want) < 5 || !slices.Equal(want, told) {
		t.Errorf("told are %v, and istioctl tells %v", told, want)
	}
}
