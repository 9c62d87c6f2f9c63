package guides

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
)

// commands say how a block of commands is run, or who else runs it.
type commands struct {
	// Document is a file, Begins the block's first line, or as much of it as tells it apart.
	Document, Begins string
	// Setup is run before it, in bash, in a folder of its own with examples, envoy and the program.
	// serve COMMAND… starts a control plane and waits until it serves; proxy FILE starts an Envoy
	// with a bootstrap, and waits until it is ready.
	Setup string
	// Put replaces parts of it: those that stand for something of the reader's. `&` at the end of a
	// line starts what goes on, and the next line begins once it is there.
	Put map[string]string
	// Says must be printed by it, or by what follows in After, which is run behind it.
	Says  []string
	After string
	// Console: lines that begin with $ are commands, and the others what they print; …: more.
	Console bool
	// Tests run it elsewhere: FOLDER TEST. Not says why no test runs it.
	Tests []string
	Not   string
}

const edge = `mkdir -p config && cat > config/edge.yaml <<'END'
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: 18080, name: http, protocol: HTTP}, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.example]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: 18081}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: ["*"]
  gateways: [edge]
  http: [{route: [{destination: {host: web.example}}]}]
END
`

const served = edge + `serve bin/coxswain discovery --configDir ./config
bin/coxswain bootstrap --type router --name gateway --namespace shop --labels istio=ingressgateway > gateway.json
proxy gateway.json
`

// all are the blocks of README and of the documents but docs/kubernetes.md and the guides, which
// test/move and TestGuides run whole, and of what is read beside plugins and examples.
var all = []commands{
	{Document: "README.md", Begins: "make run", Tests: []string{"test/demo TestDemo"}, Not: "make test is what runs this test"},
	{Document: "README.md", Begins: "helm install istiod", Tests: []string{"test/chart TestLives", "test/release TestDebian", "test/release TestPlainBinary"}},
	{Document: "README.md", Begins: "bin/coxswain discovery --configDir ./config", Setup: edge,
		Put:  map[string]string{"./config     #": "./config & #", "envoy -c gateway.json": "envoy -c gateway.json &"},
		Says: []string{"istio", "generator", "serving"}},
	{Document: "README.md", Begins: "bin/coxswain discovery --configDir examples/gateway/config",
		Put:   map[string]string{"examples/gateway/config\n": "examples/gateway/config &\n", "envoy -c edge.json": "envoy -c edge.json &"},
		After: "bin/coxswain proxies\n", Says: []string{"edge"}},
	{Document: "README.md", Begins: "source <(bin/coxswain completion bash)", Setup: served,
		Put: map[string]string{
			"PROXY cluster NAME": `gateway.shop cluster "outbound|80||web.example"`, "KIND/NAMESPACE/NAME": "VirtualService/shop/web",
			"watch   ": "watch & ",
		},
		After: "complete -p coxswain\ntest -f inventory/go.mod\n",
		Says:  []string{"VirtualService", "shop/web", "outbound|80||web.example", "watching 127.0.0.1:8080"}},
	{Document: "README.md", Begins: "registries, config sources", Not: "a drawing"},
	{Document: "docs/architecture.md", Begins: "registries, config sources", Not: "a drawing"},
	{Document: "docs/architecture.md", Begins: "core/       manifest", Not: "a list of folders"},
	{Document: "docs/configuration.md", Begins: "the node has 1153433 bytes", Not: "what is refused, as an example"},
	{Document: "docs/configuration.md", Begins: "$ coxswain route client.shop", Tests: []string{"test/sidecars TestScenarios"}, Not: "an example of output"},
	{Document: "docs/contract.md", Begins: "coxswain plugins test PATH", Setup: "go build -C $ROOT -o $PWD/hello ./examples/registry-hello\n",
		Put: map[string]string{"PATH": "./hello", "KIND": "registry"}, Says: []string{"9 passed, 0 failed"}},
	{Document: "docs/expectations.md", Begins: "$ coxswain test examples/expectations", Console: true},
	{Document: "docs/install.md", Begins: "make run", Setup: edge, Tests: []string{"test/demo TestDemo"},
		Put: map[string]string{"make run ": "true make run ", "go build -o": "true || go build -o", "./config": "./config &"}},
	{Document: "docs/install.md", Begins: "make image",
		Tests: []string{"test/image TestTarget", "test/image TestRuns", "test/release TestSignedImage", "test/chart TestLives", "test/move TestMove"}},
	{Document: "docs/install.md", Begins: "make packages", Tests: []string{"test/release TestFiles", "test/release TestDebian"}},
	{Document: "docs/install.md", Begins: "tar xzf", Tests: []string{"test/release TestPlainBinary"}},
	{Document: "docs/install.md", Begins: "./coxswain-new upgrade check", Setup: edge + `cp -L bin/coxswain coxswain-new
printf 'configDir: %s\n' "$PWD/config" > settings.yaml
serve bin/coxswain discovery --settings settings.yaml
`, Put: map[string]string{
		"$(pidof -s coxswain)": "$SERVER", "/usr/bin/coxswain": "bin/coxswain", "/etc/coxswain/settings.yaml": "settings.yaml",
		"helm get manifest": "true || helm get manifest", "./coxswain-new upgrade check --live": "true || ./coxswain-new upgrade check --live",
	}, Tests: []string{"cmd/coxswain TestUpgradeOfADeployment", "test/kube TestUpgradeCheckLive"},
		Says: []string{"they are taken"}},
	{Document: "docs/install.md", Begins: "cosign verify-blob", Tests: []string{"test/release TestSigned", "test/release TestSignedImage"}},
	{Document: "docs/operations.md", Begins: "coxswain discovery --rolloutFirst", Setup: edge,
		Put:   map[string]string{"coxswain discovery": "coxswain discovery --configDir ./config", "[1m]))'": "[1m]))' &"},
		After: "coxswain rollout status\n"},
	{Document: "docs/operations.md", Begins: "coxswain plan -f config/",
		Setup: served + "mkdir main && cp -r config main/\nbin/coxswain record proxies -o proxies.yaml\n",
		After: "cat plan.md\n", Says: []string{"nothing"}},
	{Document: "docs/operations.md", Begins: "coxswain log set", Setup: served, After: "coxswain log\n", Says: []string{"core/xds"}},
	{Document: "docs/plugins.md", Begins: "coxswain plugins push", Tests: []string{"test/artifacts TestStory", "test/artifacts TestSigned"}},
	{Document: "docs/reliability.md", Begins: "make reliability", Tests: []string{"test/reliability TestReliability"}},
	{Document: "CONTRIBUTING.md", Begins: "make build", Not: "make check is what runs this test"},
	{Document: "examples/gateway/README.md", Begins: "bin/coxswain discovery",
		Put:   map[string]string{"examples/gateway/config\n": "examples/gateway/config &\n", "envoy -c edge.json": "envoy -c edge.json &"},
		After: "bin/coxswain proxies\n", Says: []string{"edge"}},
	{Document: "examples/gateway/README.md", Begins: "bin/coxswain config",
		Setup: `serve bin/coxswain discovery --configDir examples/gateway/config
bin/coxswain bootstrap --type router --name edge --labels gateway.networking.k8s.io/gateway-name=edge > edge.json
proxy edge.json
`, After: "bin/coxswain explain edge.default route http.18080 | tee explained\n! grep autogenerated explained\n",
		Says: []string{"1 resource, 1 proxy", "; from HTTPRoute default/shop (", "HTTPRoute default/shop, published by plugin files", "Gateway default/edge "}},
	{Document: "examples/migration/README.md", Begins: "make migration", Tests: []string{"test/migration TestMigration"}},
	{Document: "examples/migration/README.md", Begins: "make migration-to", Tests: []string{"test/migration TestMigration"}},
	{Document: "examples/migration/README.md", Begins: "2372 calls", Not: "an example of output"},
	{Document: "plugins/config/etcd/README.md", Begins: "etcdctl put", Not: "another program's command; test/etcd writes as it does"},
	{Document: "examples/mutual/README.md", Begins: "make mutual", Tests: []string{"test/mutual TestMutual"}},
	{Document: "examples/mutual/README.md", Begins: "$ curl", Tests: []string{"test/mutual TestMutual"}},
}

// found is a block of a document that may have commands: indented, or fenced as `sh` or as nothing.
type found struct{ document, text string }

func (f found) first() string { return strings.TrimSpace(strings.SplitN(f.text, "\n", 2)[0]) }

var fence = regexp.MustCompile("^ *```")

func blocks(document, text string) (out []found) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		body := ""
		switch title := strings.TrimSpace(lines[i]); {
		case fence.MatchString(lines[i]):
			for i++; i < len(lines) && !fence.MatchString(lines[i]); i++ {
				body += lines[i] + "\n"
			}
			if title != "```" && title != "```sh" {
				continue
			}
		case strings.HasPrefix(lines[i], "    ") && (i == 0 || strings.TrimSpace(lines[i-1]) == ""):
			for ; i < len(lines) && (strings.HasPrefix(lines[i], "    ") || lines[i] == "" && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "    ")); i++ {
				body += strings.TrimPrefix(lines[i], "    ") + "\n"
			}
		}
		if body != "" {
			out = append(out, found{document, body})
		}
	}
	return out
}

// TestBlocks: a fenced block of another language is none, and text in lists is.
func TestBlocks(t *testing.T) {
	got := blocks("d", "a\n\n    one\n    two\n\nb\n    no block\n```yaml\nno: one\n```\n```sh\nthree\n```\n```\nfour\n```\n")
	if want := []found{{"d", "one\ntwo\n"}, {"d", "three\n"}, {"d", "four\n"}}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestCommandBlocks runs each block of commands of README, of the documents, and of what is read
// beside plugins and examples, or knows who does.
func TestCommandBlocks(t *testing.T) {
	root := envoy.Root(t)
	var files []string
	for _, glob := range []string{"*.md", "docs/*.md", "examples/*/README.md", "plugins/*/*/README.md", "plugins/*/*/*/README.md"} {
		some, err := filepath.Glob(filepath.Join(root, glob))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, some...)
	}
	known := slices.Clone(all)
	n := 0
	for _, file := range files {
		document, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		if document == "docs/kubernetes.md" {
			continue // test/move
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks(filepath.ToSlash(document), string(text)) {
			i := slices.IndexFunc(known, func(c commands) bool { return c.Document == b.document && strings.HasPrefix(b.first(), c.Begins) })
			if i < 0 {
				t.Errorf("%s: nobody runs the block that begins with %q: say how in this test", b.document, b.first())
				continue
			}
			c := known[i]
			known = slices.Delete(known, i, i+1)
			n++
			for _, test := range c.Tests {
				c.isTested(t, root, test)
			}
			if c.Not == "" && len(c.Tests) == 0 || c.Put != nil {
				t.Run(strings.NewReplacer("/", "_", " ", "-").Replace(b.document+" "+c.Begins), func(t *testing.T) { c.run(t, root, b.text) })
			}
		}
	}
	for _, c := range known {
		t.Errorf("%s has no block that begins with %q", c.Document, c.Begins)
	}
	if n < 20 {
		t.Errorf("%d blocks were found, which is too few to be all", n)
	}
}

// isTested sees that there is a test in a folder.
func (c commands) isTested(t *testing.T, root, test string) {
	t.Helper()
	folder, name, _ := strings.Cut(test, " ")
	sources, _ := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	for _, s := range sources {
		if text, err := os.ReadFile(s); err == nil && strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return
		}
	}
	t.Errorf("%s %q: %s has no test %s", c.Document, c.Begins, folder, name)
}

// shell is what scripts begin with. A command that goes on is there once it can be asked, or has
// printed something.
const shell = `set -eu
n=0
page() { (exec 3<>"/dev/tcp/127.0.0.1/$1" && printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$2" >&3 && grep -q ' 200 ' <&3) 2>/dev/null; }
there() {
  until case "$1" in *discovery*) page 8080 /ready;; *envoy*) page 15000 /ready;; *) test -s "log.$n";; esac; do
    kill -0 "$2" || { cat "log.$n"; exit 1; }
    sleep 0.1
  done
}
goes() {
  n=$((n+1))
  "$@" > "log.$n" 2>&1 & pid=$!
  there "$*" "$pid"
}
serve() { goes "$@"; SERVER=$pid; }
proxy() { goes envoy -c "$1"; }
`

// goesOn is a line that ends with a command which goes on; what it prints is printed at the end.
var goesOn = regexp.MustCompile(`(?m)^(.*[^&\\])& *(#.*)?$`)

// run runs a block in a network namespace of its own, where the ports that it names are free.
func (c commands) run(t *testing.T, root, text string) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for at, path := range map[string]string{"bin/coxswain": program, "bin/envoy": envoy.Binary(t), "examples": filepath.Join(root, "examples")} {
		if err := os.Symlink(path, filepath.Join(dir, at)); err != nil {
			t.Fatal(err)
		}
	}
	says := slices.Clone(c.Says)
	if c.Console {
		lines := ""
		for line := range strings.Lines(text) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				lines += command
			} else if printed := strings.TrimSpace(line); printed != "…" {
				says = append(says, printed)
			}
		}
		text = lines
	}
	for old, now := range c.Put {
		if !strings.Contains(text, old) {
			t.Fatalf("it has no %q any more:\n%s", old, text)
		}
		text = strings.ReplaceAll(text, old, now)
	}
	text = strings.ReplaceAll(text, "\\\n", " ")
	script := shell + c.Setup + goesOn.ReplaceAllString(text, "goes $1") + c.After + "tail -n 5 log.* 2>/dev/null || true\n! grep -s 'config rejected' log.*\n"
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := netns.Command(t, "/bin/bash", "-c", "trap 'kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT\n"+script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "ROOT="+root, "COXSWAIN_SDK="+root, "XDG_RUNTIME_DIR="+mesh.RuntimeDir(t))
	cmd.SysProcAttr.Setpgid = true
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	defer end()
	defer context.AfterFunc(ctx, end)()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out.String())
	}
	for _, want := range says {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it doesn't say %q:\n%s", want, out.String())
		}
	}
	t.Log(out.String())
}
