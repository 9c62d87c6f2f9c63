package test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/coxswain-mesh/coxswain/"

// rule says what packages under a folder may not import. Paths are relative to the module where
// they start with a folder of it; otherwise they are import paths. A path names itself and all
// below.
type rule struct {
	of      string
	except  []string // packages below `of` that the rule doesn't bind
	forbids []string
	why     string
}

var rules = []rule{
	{of: "sdk", forbids: []string{"core", "plugins", "cmd", "examples", "test"}, why: "the SDK stands alone: authors import nothing else"},
	{
		of: "core", forbids: []string{"plugins", "cmd", "examples", "test", "sdk/simulator"},
		why: "the core knows no plugin, and nothing of what proxies make of resources",
	},
	{of: "sdk/simulator", forbids: []string{"sdk", "core", "plugins", "cmd", "examples", "test"}, why: "the simulator walks through what any Envoy has"},
	{of: "core/control", forbids: []string{"core/admin", "core/server", "core/swap"}, why: "the middle does not know who looks at it"},
	{
		of:      "core/manifest",
		forbids: []string{"core/admin", "core/control", "core/environment", "core/host", "core/server", "core/swap", "core/view", "core/xds"},
		why:     "what plugins.yaml says is known before anything of it runs",
	},
	{of: "core/control/internal/state", forbids: []string{
		"core/control/internal/calls", "core/host", "core/control/internal/members",
		"core/control/internal/pipeline", "core/control/internal/rollout", "core/control/internal/serving", "core/control/internal/status",
	}, why: "what all know knows none of them"},
	{of: "core/control/internal/serving", forbids: []string{
		"core/control/internal/calls", "core/host", "core/control/internal/members",
		"core/control/internal/pipeline", "core/control/internal/rollout", "core/control/internal/status",
	}, why: "parts know those below them alone"},
	{of: "core/control/internal/rollout", forbids: []string{
		"core/control/internal/calls", "core/host", "core/control/internal/members", "core/control/internal/middle",
		"core/control/internal/pipeline", "core/control/internal/status",
	}, why: "parts know those below them alone"},
	{
		of:      "core/control/internal/pipeline",
		forbids: []string{"core/control/internal/calls", "core/control/internal/members", "core/control/internal/rollout", "core/control/internal/status"},
		why:     "parts know those below them alone",
	},
	{
		of:      "core/control/internal/members",
		forbids: []string{"core/control/internal/calls", "core/control/internal/status"},
		why:     "parts know those below them alone",
	},
	{
		of:      "core/control/internal/status",
		forbids: []string{"core/control/internal/calls", "core/host", "core/control/internal/members", "core/control/internal/pipeline"},
		why:     "what is shown is read, and changes nothing",
	},
	{of: "core/control/internal/middle", forbids: []string{"core/control/internal/calls"}, why: "parts know those below them alone"},
	{
		of:      "core/control/internal/calls",
		forbids: []string{"core/host", "core/control/internal/members", "core/control/internal/pipeline", "core/control/internal/serving"},
		why:     "who waits for an answer knows who is there, and no more",
	},
	{of: "core/control/internal/feed", forbids: []string{
		"core/control/internal/calls", "core/control/internal/members", "core/control/internal/middle",
		"core/control/internal/pipeline", "core/control/internal/serving", "core/control/internal/state",
		"core/control/internal/status", "core/host", "core/xds",
	}, why: "machines know nothing of who drives them"},
	{of: "core/control/internal/patch", forbids: []string{
		"core/control/internal/calls", "core/control/internal/members", "core/control/internal/middle",
		"core/control/internal/pipeline", "core/control/internal/serving", "core/control/internal/state",
		"core/control/internal/status", "core/host", "core/xds",
	}, why: "machines know nothing of who drives them"},
	{of: "core/control/internal/stage", forbids: []string{
		"core/control/internal/calls", "core/control/internal/members", "core/control/internal/middle",
		"core/control/internal/pipeline", "core/control/internal/serving", "core/control/internal/state",
		"core/control/internal/status", "core/host", "core/xds",
	}, why: "machines know nothing of who drives them"},
	{of: "core/control/internal/store", forbids: []string{
		"core/control/internal/calls", "core/control/internal/members", "core/control/internal/middle",
		"core/control/internal/pipeline", "core/control/internal/serving", "core/control/internal/state",
		"core/control/internal/status", "core/host", "core/xds",
	}, why: "machines know nothing of who drives them"},
	{of: "core/control/internal/pieces", forbids: []string{
		"core/control/internal/calls", "core/control/internal/members", "core/control/internal/middle",
		"core/control/internal/patch", "core/control/internal/pipeline", "core/control/internal/serving",
		"core/control/internal/state", "core/control/internal/status", "core/host", "core/xds",
	}, why: "what takes resources apart knows nothing of who asks for it"},
	{of: "core/control/internal/trial", forbids: []string{
		"core/control/internal/calls", "core/control/internal/members", "core/control/internal/middle",
		"core/control/internal/pipeline", "core/control/internal/serving", "core/control/internal/state",
		"core/control/internal/status", "core/host", "core/xds",
	}, why: "machines know nothing of who drives them"},
	{of: "core/caller", forbids: []string{"core/control", "core/host", "core/xds"}, why: "machines know nothing of who drives them"},
	{of: "core/guard", forbids: []string{"core/control", "core/host", "core/xds"}, why: "machines know nothing of who drives them"},
	{of: "core/placement", forbids: []string{"core/control", "core/host", "core/xds"}, why: "machines know nothing of who drives them"},
	{of: "core/revision", forbids: []string{"core/control", "core/host", "core/xds"}, why: "machines know nothing of who drives them"},
	{
		of:      "core",
		forbids: []string{"github.com/knadh/koanf", "k8s.io", "sigs.k8s.io/controller-runtime", "istio.io"},
		why:     "opinions live in plugins, settings in cmd",
	},
	{
		of: "core", except: []string{"core/host/process"}, forbids: []string{"github.com/hashicorp/go-plugin"},
		why: "only core/host/process and sdk/process know go-plugin",
	},
	{
		of: "sdk", except: []string{"sdk/process"}, forbids: []string{"github.com/hashicorp/go-plugin"},
		why: "only core/host/process and sdk/process know go-plugin",
	},
	{
		of: "plugins", forbids: []string{"core", "cmd", "examples", "test", "github.com/hashicorp/go-plugin"},
		why: "a plugin sees the SDK and its own client library",
	},
	{of: "examples", except: []string{"examples/demo"}, forbids: []string{"core", "plugins", "cmd", "test"}, why: "examples are written as outsiders write"},
	{of: "", except: []string{"core/host/wasm"}, forbids: []string{"github.com/tetratelabs/wazero"}, why: "only the runner knows wazero"},
	{
		of: "", except: []string{"cmd"}, forbids: []string{"github.com/knadh/koanf", "github.com/spf13/cobra"},
		why: "flags, files and the environment belong to cmd",
	},
	{of: "", forbids: []string{"istio.io/istio"}, why: "no code of the program that this one replaces"},
	{of: "", except: []string{"cmd", "plugins"}, forbids: []string{"plugins"}, why: "only the command links plugins"},
	{of: "internal", forbids: []string{"sdk", "core", "plugins", "cmd", "examples", "test"}, why: "everything may import it"},
	{of: "test/kit/need", forbids: []string{"sdk", "core", "plugins", "cmd", "examples", "test"}, why: "tests everywhere import it"},
	{of: "test/kit/wait", forbids: []string{"sdk", "core", "plugins", "cmd", "examples", "test"}, why: "tests everywhere import it"},
	{
		of:      "plugins/shared",
		forbids: []string{"plugins/authenticator", "plugins/config", "plugins/controller", "plugins/generator", "plugins/patch", "plugins/registry"},
		why:     "what plugins and commands share is below all plugins",
	},
	{of: "plugins/shared/istio", forbids: []string{"sdk", "plugins"}, why: "what Istio's words mean depends on nothing of ours"},
	{of: "plugins/validation/finding", forbids: []string{"plugins"}, why: "what checks say imports no check"},
}

// istioLayers are the packages of generator/istio that compute incrementally, from the bottom up:
// each imports no other of its own line, and nothing of the lines below it.
var istioLayers = [][]string{
	{"tables"},
	{"contest"},
	{"mesh"},
	{"provider", "patches", "workload", "rule", "ingress", "selection"},
	{"policy", "extensions", "scope"},
	{"reports", "destination", "gateways", "clusters", "nametables"},
	{"routes", "listeners"},
	{"placement"},
	{"serving"},
}

// TestArrowsOfIstio: imports among the packages of generator/istio go one way. Those that say what
// resources look like know no graph, and nothing imports the plugin itself but who links it.
func TestArrowsOfIstio(t *testing.T) {
	const root = "plugins/generator/istio"
	layer := map[string]int{}
	for i, line := range istioLayers {
		for _, name := range line {
			layer[root+"/"+name] = i + 1
		}
	}
	seen := 0
	for _, p := range packages(t) {
		folder := local(p.ImportPath)
		if !under(folder, root) || folder == root {
			continue
		}
		if layer[folder] > 0 {
			seen++
		}
		for _, i := range p.Imports {
			at := local(i)
			switch {
			case at == root:
				t.Errorf("%s imports %s: arrows go one way", folder, at)
			case layer[folder] == 0 && (layer[at] > 0 || at == "sdk/incr"):
				t.Errorf("%s imports %s: it says what resources look like, and knows no graph", folder, at)
			case layer[at] > 0 && layer[at] >= layer[folder]:
				t.Errorf("%s imports %s: arrows go one way", folder, at)
			}
		}
	}
	if seen != len(layer) {
		t.Errorf("%d packages are there of %d with a layer", seen, len(layer))
	}
}

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestOnlyTheRunnersProcessRunsModules: of all packages the command alone links the runner, for the
// process that it starts as one.
func TestOnlyTheRunnersProcessRunsModules(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(p.Imports, module+"core/host/wasm") && local(p.ImportPath) != "cmd/coxswain" {
			t.Errorf("%s imports the runner: modules run in processes of their own", p.ImportPath)
		}
	}
}

func TestLayers(t *testing.T) {
	for _, p := range packages(t) {
		folder := local(p.ImportPath)
		for _, i := range append(append(p.Imports, p.TestImports...), p.XTestImports...) {
			if slices.Contains([]string{"test/kit/need", "test/kit/wait", "test/kit/otlp", "test/kit/mutated"}, local(i)) {
				continue // every test may lack something, have to wait, need somebody who takes traces, or spoil objects
			}
			for _, r := range rules {
				if r.breaks(folder, local(i)) {
					t.Errorf("%s imports %s: %s", folder, local(i), r.why)
				}
			}
			if bothPlugins(folder, local(i)) {
				t.Errorf("%s imports %s: a plugin imports no other plugin; what two share belongs into plugins/internal or plugins/shared", folder, local(i))
			}
		}
	}
}

// mostRooms is how many folders core/ may have at its top: what is nobody else's lies below the
// one that uses it.
const mostRooms = 29

// TestRooms: the top of core/ stays small enough to be read at once.
func TestRooms(t *testing.T) {
	rooms := map[string]bool{}
	for _, p := range packages(t) {
		if in, ok := strings.CutPrefix(local(p.ImportPath), "core/"); ok {
			room, _, _ := strings.Cut(in, "/")
			rooms[room] = true
		}
	}
	if len(rooms) > mostRooms || len(rooms) < 10 {
		t.Errorf("core/ has %d rooms, want at most %d", len(rooms), mostRooms)
	}
}

func (r rule) breaks(folder, imported string) bool {
	return under(folder, r.of) && !anyUnder(folder, r.except) && anyUnder(imported, r.forbids)
}

// bothPlugins reports whether two folders are of different plugins, plugins/<kind>/<name>.
// plugins/shared and plugins/validation are libraries, which the command uses too.
func bothPlugins(a, b string) bool {
	return plugin(a) != "" && plugin(b) != "" && plugin(a) != plugin(b)
}

func plugin(folder string) string {
	s := strings.Split(folder, "/")
	if len(s) < 3 || s[0] != "plugins" || slices.Contains([]string{"internal", "shared", "validation"}, s[1]) {
		return ""
	}
	return strings.Join(s[:3], "/")
}

// local returns a path relative to the module, where it is of the module.
func local(path string) string { return strings.TrimPrefix(path, module) }

func under(path, of string) bool {
	return of == "" || path == of || strings.HasPrefix(path, of+"/")
}

func anyUnder(path string, of []string) bool {
	for _, o := range of {
		if under(path, o) {
			return true
		}
	}
	return false
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		folder, imported string
		bad              bool
	}{
		{"core/xds", "sdk/proto", false},
		{"core/xds", "plugins/config/file", true},
		{"core/host/process", "github.com/hashicorp/go-plugin", false},
		{"core/host", "github.com/hashicorp/go-plugin/runner", true},
		{"core/hosting", "github.com/hashicorp/go-plugins", false},
		{"plugins/config/file", "sdk", false},
		{"plugins/config/file", "core/view", true},
		{"examples/registry-hello", "core/view", true},
		{"cmd/coxswain", "plugins/config/file", false},
		{"test/e2e", "plugins/config/file", true},
		{"plugins/shared/istio", "plugins/generator/istio/config", true},
		{"plugins/generator/grpc", "plugins/shared/istio", false},
		{"sdk/state", "core/view", true},
	} {
		bad := false
		for _, r := range rules {
			bad = bad || r.breaks(c.folder, c.imported)
		}
		if bad != c.bad {
			t.Errorf("%s imports %s: breach %v, want %v", c.folder, c.imported, bad, c.bad)
		}
	}
}

// TestWhatTheSDKLinks: the modules are listed in docs/rationale.md, and neither Kubernetes nor a
// WASM runtime is among them.
func TestWhatTheSDKLinks(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}} {{.ImportPath}}", module+"sdk", module+"sdk/plugintest")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	rationale, err := os.ReadFile("../docs/rationale.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(rationale), "\n## What must the SDK link?\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(string(out)) {
		of, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case of == "":
		case under(path, module+"core"), strings.HasPrefix(path, "k8s.io/"), strings.Contains(path, "wazero"), strings.Contains(path, "envoy"):
			t.Errorf("the SDK links %s", path)
		case of+"/" != module && !strings.Contains(section, "`"+of+"`"):
			t.Errorf("the SDK links %s, which docs/rationale.md does not list", of)
		}
	}
}
