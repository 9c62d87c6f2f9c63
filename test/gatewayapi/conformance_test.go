package gatewayapi

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

var (
	update   = flag.Bool("update", false, "write what was reported into docs/gateway-conformance.md")
	only     = flag.String("only", "", "the suite's test to run")
	profiles = flag.String("profiles", "", "the suite's profiles to run, of those for gateways or for meshes")
	log      = flag.String("suite-log", "", "file for all that the suite says")
)

// report is what counts of the suite's own.
// Source: ConformanceReport of sigs.k8s.io/gateway-api/conformance/apis/v1
type report struct {
	GatewayAPIVersion string `yaml:"gatewayAPIVersion"`
	GatewayAPIChannel string `yaml:"gatewayAPIChannel"`
	Profiles          []profile
}

type profile struct {
	Name     string
	Core     result
	Extended struct {
		Result      result   `yaml:",inline"`
		Unsupported []string `yaml:"unsupportedFeatures"`
	}
}

type result struct {
	Statistics struct {
		Passed  int `yaml:"Passed"`
		Skipped int `yaml:"Skipped"`
		Failed  int `yaml:"Failed"`
	}
	FailedTests  []string `yaml:"failedTests"`
	SkippedTests []string `yaml:"skippedTests"`
}

// run runs the suite with flags, and returns its report and the names of tests that passed and
// failed, those with parts by the names of these, too.
func (w *world) run(t *testing.T, flags ...string) (r report, passed, failed []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.yaml")
	cmd := exec.Command(filepath.Join(w.tools, "suite"), append([]string{
		"-test.v", "-test.run=^TestConformance$", "-test.timeout=1h", "-report-output=" + file, "-organization=coxswain-mesh", "-project=coxswain",
		"-url=https://github.com/coxswain-mesh/coxswain", "-version=" + version(), "-contact=@coxswain-mesh/maintainers", "-cleanup-base-resources=false",
	}, flags...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.cluster.Kubeconfig)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	keep := os.Stderr
	if *log != "" {
		if keep, err = os.Create(*log); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = keep.Close() }()
	}
	lines := bufio.NewScanner(out)
	for lines.Buffer(nil, 1<<24); lines.Scan(); {
		line := lines.Text()
		if *log != "" {
			fmt.Fprintln(keep, line)
		}
		outcome, name, ok := strings.Cut(strings.TrimSpace(line), ": TestConformance/")
		if name, _, _ = strings.Cut(name, " "); !ok {
			continue
		}
		switch outcome {
		case "--- PASS":
			passed = append(passed, name)
		case "--- FAIL":
			failed = append(failed, name)
			t.Log(name, "failed")
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // failures are in its report
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("the suite has reported nothing (-suite-log FILE keeps what it says): %v", err)
	}
	t.Logf("%s", text)
	if err := yaml.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r, passed, failed
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "development"
}

// document keeps the reports.
const document = "../../docs/gateway-conformance.md"

// profilesOf are the suite's profiles that are asked for, or all.
func profilesOf(all string) string {
	if *profiles != "" {
		return *profiles
	}
	return all
}

// gateways are what a run of the suite on gateways is told. The addresses are names of services in
// front of what serves a Gateway, as with istiod.
func gateways(profiles string) []string {
	return []string{
		"-gateway-class=istio", "-conformance-profiles=" + profiles,
		"-usable-address=infra-backend-v1.gateway-conformance-infra.svc.cluster.local", "-unusable-address=nowhere.gateway-conformance-infra.svc.cluster.local",
	}
}

// forGateways are the suite's profiles for gateways.
const forGateways = "GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TCP,GATEWAY-TLS,GATEWAY-UDP"

// TestConformance runs the suite's profiles for gateways. What it reports is what
// docs/gateway-conformance.md says.
func TestConformance(t *testing.T) {
	need.All(t)
	if *only != "" && strings.HasPrefix(*only, "Mesh") {
		need.Left(t, "TestMeshConformance runs %s", *only)
	}
	newWorld(t).judge(t, "gateways", gateways(profilesOf(forGateways)))
}

// some of the suite's tests are run by CI: one of each kind of routes, and those of what istiod
// doesn't serve.
var some = []string{
	"BackendTLSPolicy", "GRPCExactMethodMatching", "GatewayTLSBackendClientCertificate", "HTTPRouteHTTPSListener",
	"HTTPRouteHTTPSListenerDetectMisdirectedRequests", "HTTPRouteListenerHostnameMatching", "HTTPRouteMatchingAcrossRoutes",
	"HTTPRouteReferenceGrant", "HTTPRouteRewritePath", "TCPRouteReferenceGrant", "TLSRouteSimpleSameNamespace",
	"UDPRouteReferenceGrant", "UDPRouteWeightedRouting",
}

// TestSomeConformance: some of the suite's tests pass.
func TestSomeConformance(t *testing.T) {
	if need.Long() {
		need.Left(t, "TestConformance runs all of them")
	}
	_, passed, failed := newWorld(t).run(t, append(gateways(forGateways), "-chosen="+strings.Join(some, ","))...)
	for _, name := range some {
		if !slices.Contains(passed, name) {
			t.Errorf("%s has not passed", name)
		}
	}
	if len(failed) > 0 {
		t.Error(failed, "failed")
	}
}

// TestMeshConformance runs the suite's profiles for meshes, as TestConformance those for gateways.
func TestMeshConformance(t *testing.T) {
	need.All(t)
	if *only != "" && !strings.HasPrefix(*only, "Mesh") {
		need.Left(t, "TestConformance runs %s", *only)
	}
	w := newMesh(t)
	var features []string
	for _, f := range w.features(t) {
		if strings.HasPrefix(f, "Mesh") {
			features = append(features, f)
		}
	}
	w.judge(t, "meshes", []string{
		"-conformance-profiles=" + profilesOf("MESH-HTTP,MESH-GRPC"), "-supported-features=" + strings.Join(features, ","),
		"-namespace-labels=istio-injection=enabled",
	})
}

// judge runs the suite, or the test of it that is asked for, and compares its report with a part of
// the document.
func (w *world) judge(t *testing.T, part string, flags []string) {
	t.Helper()
	if *only != "" {
		if _, passed, failed := w.run(t, append(flags, "-run-test="+*only)...); len(failed) > 0 || !slices.Contains(passed, *only) {
			t.Error(failed, "failed")
		}
		return
	}
	r, _, failed := w.run(t, flags...)
	for _, p := range r.Profiles {
		if p.Core.Statistics.Passed == 0 {
			t.Errorf("no test of %s has passed: is the report read?", p.Name)
		}
	}
	if len(failed) > 0 {
		t.Log(failed, "failed")
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+part+" -->\n", "<!-- end of "+part+" -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	kept, after, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("%s has no place for what is reported of %s", document, part)
	}
	if is := r.String(); is != kept && *update {
		if err := os.WriteFile(document, []byte(before+begin+is+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if is != kept {
		t.Errorf("%s says\n%s, the suite\n%s; -update writes it", document, kept, is)
	}
}

// String is a table of the report.
func (r report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"\nAPI %s, channel %s.\n\n| profile | core: passed, skipped, failed | extended: passed, skipped, failed | not claimed |\n|---|---|---|---|\n",
		r.GatewayAPIVersion, r.GatewayAPIChannel)
	slices.SortFunc(r.Profiles, func(a, b profile) int { return strings.Compare(a.Name, b.Name) })
	var failed []string
	for _, p := range r.Profiles {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.Name, p.Core, p.Extended.Result, strings.Join(p.Extended.Unsupported, ", "))
		failed = append(append(failed, p.Core.FailedTests...), p.Extended.Result.FailedTests...)
	}
	slices.Sort(failed)
	if failed = slices.Compact(failed); len(failed) > 0 {
		fmt.Fprintf(&b, "\nFailed: %s.\n", strings.Join(failed, ", "))
	}
	b.WriteString("\n")
	return b.String()
}

func (r result) String() string {
	s := r.Statistics
	return fmt.Sprintf("%d, %d, %d", s.Passed, s.Skipped, s.Failed)
}
