package git

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// shard is a Publisher that keeps what was published.
type shard struct {
	mu     sync.Mutex
	rows   map[string]map[string]*sdk.Row
	synced bool
	lines  []string
}

func (s *shard) Update(table string, upserts []*sdk.Row, deletes []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows[table] == nil {
		s.rows[table] = map[string]*sdk.Row{}
	}
	for _, r := range upserts {
		s.rows[table][r.Key] = r
	}
	for _, k := range deletes {
		delete(s.rows[table], k)
	}
	return nil
}

func (s *shard) Synced() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = true
	return nil
}

func (s *shard) State() (*state.State, <-chan struct{}) { return &state.State{}, nil }

func (s *shard) Log(_ sdk.Level, text string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, text+" "+fmt.Sprint(args...))
}

// says is what is published: rows as KEY SOURCE, and faults.
func (s *shard) says(t *testing.T) (rows, faults string, synced bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var list, wrong []string
	for table, of := range s.rows {
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if table != state.Faults {
				list = append(list, table+" "+key+" "+of[key].Source)
				continue
			}
			var f kinds.Fault
			if err := json.Unmarshal(of[key].Payload, &f); err != nil {
				t.Fatal(err)
			}
			wrong = append(wrong, f.Error())
		}
	}
	slices.Sort(list)
	slices.Sort(wrong)
	return strings.Join(list, "\n"), strings.Join(wrong, "\n"), s.synced
}

func (s *shard) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// work is a repository made by git itself.
type work struct {
	t   *testing.T
	dir string
}

func newWork(t *testing.T) *work {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		need.Missing(t, "git")
	}
	w := &work{t, filepath.Join(t.TempDir(), "repository")}
	w.init()
	return w
}

func (w *work) init() {
	w.t.Helper()
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.git("init", "-q", "-b", "main")
	w.git("config", "http.receivepack", "false")
}

func (w *work) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git",
		append([]string{"-C", w.dir, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files (empty text: removes them) and commits all. It returns the commit's short
// name.
func (w *work) commit(files map[string]string, more ...string) string {
	w.t.Helper()
	for name, text := range files {
		path := filepath.Join(w.dir, name)
		if text == "" {
			if err := os.Remove(path); err != nil {
				w.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	w.git("add", "-A")
	w.git(append([]string{"commit", "-q", "--allow-empty", "-m", "change"}, more...)...)
	return w.git("rev-parse", "HEAD")[:12]
}

func entry(name, host string) string {
	return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: %s, namespace: "+
		"shop}\nspec:\n  hosts: [%s.example]\n  resolution: DNS\n  ports: [{number: 80, name: http, protocol: HTTP}]\n", name, host)
}

// run runs the plugin until the test's end.
func run(t *testing.T, config map[string]any) *shard {
	t.Helper()
	return runFor(t, 0, config)
}

// runFor is run with a time for each look at the branch; 0: the usual one.
func runFor(t *testing.T, patience time.Duration, config map[string]any) *shard {
	t.Helper()
	whole := map[string]any{"interval": "1s"}
	maps.Copy(whole, config)
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	c, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	out := &shard{rows: map[string]map[string]*sdk.Row{}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := (&source{c, patience}).Run(ctx, out); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return out
}

// wants waits until rows are published: KEY PATH@COMMIT each, of ServiceEntries (of any commit,
// where it says none), and faults that have a text (empty: there are none).
func (s *shard) wants(t *testing.T, fault string, rows ...string) {
	t.Helper()
	of := regexp.MustCompile(`@[0-9a-f]{12}`)
	any := !strings.Contains(strings.Join(rows, ""), "@")
	for i, r := range rows {
		key, place, _ := strings.Cut(r, " ")
		rows[i] = fmt.Sprintf("%s shop/%s git:%s:1:1", kinds.ServiceEntry, key, place)
	}
	want := strings.Join(rows, "\n")
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		got, faults, _ := s.says(t)
		if any {
			got = of.ReplaceAllString(got, "")
		}
		if got == want && (fault == "" && faults == "" || fault != "" && strings.Contains(faults, fault)) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("rows\n%s\nwanted\n%s\nfaults %q, wanted %q\nlog\n%s", got, want, faults, fault, s.log())
		}
	}
}

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 3)
	c, err := parse(config)
	if err != nil {
		t.Fatal(err)
	}
	w := newWork(t)
	w.git("checkout", "-q", "-b", c.Branch)
	hash := w.commit(map[string]string{strings.TrimPrefix(blocks[1].Title, "yaml "): blocks[1].Text})
	out := run(t, map[string]any{"repository": w.dir, "branch": c.Branch, "folder": c.Folder})
	want := strings.ReplaceAll(strings.TrimSpace(blocks[2].Text), "COMMIT", hash)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		rows, faults, synced := out.says(t)
		if rows == want && faults == "" && synced {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%q, wanted %q; %s", rows, want, faults)
		}
	}
}

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{}`: "repository", `{"repository": "mesh"}`: "repository",
		`{"repository": "https://u:p@a/b"}`: "repository", `{"repository": "ssh://a/b"}`: "repository",
		`{"repository": "https:///b"}`:                              "repository",
		`{"repository": "/a", "interval": "1ms"}`:                   "interval",
		`{"repository": "/a", "folder": "../b"}`:                    "folder",
		`{"repository": "/a", "branch": "refs/heads/a"}`:            "branch",
		`{"repository": "/a", "branch": "--upload-pack=x"}`:         "branch",
		`{"repository": "/a", "tls": {}}`:                           "tls",
		`{"repository": "https://a/b", "tls": {"cert": "a"}}`:       "tls.cert",
		`{"repository": "https://a/b", "tls": {"serverName": "a"}}`: "tls.serverName",
		`{"repository": "http://a.example/b", "passwordFile": "a"}`: "passwordFile",
		`{"repository": "git://127.0.0.1/b", "passwordFile": "a"}`:  "passwordFile",
		`{"repository": "/a", "limits": {"bytes": 0}}`:              "limits.bytes",
		`{"repository": "/a", "limits": {"files": 0}}`:              "limits.files",
		`{"repository": "/a", "limits": {"fileBytes": 0}}`:          "limits.fileBytes",
		`{"repository": "/a", "repo": "/b"}`:                        "repo",
	} {
		_, err := parse([]byte(config))
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v, not of %s", config, err, field)
		}
	}
	for _, config := range []string{
		`{"repository": "/a", "folder": "/a/b/", "branch": "team/main"}`, `{"repository": "file:///a"}`,
		`{"repository": "http://127.0.0.1:1/a", "passwordFile": "b"}`,
	} {
		if _, err := parse([]byte(config)); err != nil {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// reached are the ways in which a repository is reached: of each, its address once it serves a
// folder of repositories.
var reached = map[string]func(t *testing.T, root string) string{
	"path": func(_ *testing.T, root string) string { return root },
	"file": func(_ *testing.T, root string) string { return "file://" + root },
	"git":  daemon,
	"http": func(t *testing.T, root string) string {
		s := httptest.NewServer(backend(t, root))
		t.Cleanup(s.Close)
		return s.URL
	},
}

// backend is git's own server, as a CGI program.
func backend(t *testing.T, root string) http.Handler {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(strings.TrimSpace(string(path)), "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		need.Missing(t, "git-http-backend")
	}
	return &cgi.Handler{
		Path:   program,
		Env:    []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=" + safe(t), "GIT_CONFIG_NOSYSTEM=1"},
		Stderr: os.Stderr,
	}
}

// safe is a configuration by which git serves repositories of whatever owner.
func safe(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(file, []byte("[safe]\n\tdirectory = *\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// daemon serves by git's own protocol.
func daemon(t *testing.T, root string) string {
	t.Helper()
	port := wait.Port(t)
	cmd := exec.Command("git", "daemon", "--listen=127.0.0.1", "--port="+strconv.Itoa(port), "--base-path="+root, "--export-all", "--reuseaddr")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+safe(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return fmt.Sprintf("git://127.0.0.1:%d", port)
}

// TestBranch: a branch is followed, by whatever way it is reached: commits, mistakes, a push by
// force, a branch that goes and comes back, a repository that is away at the start and later.
func TestBranch(t *testing.T) {
	for name, serve := range reached {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWork(t)
			if err := os.RemoveAll(w.dir); err != nil {
				t.Fatal(err)
			}
			out := run(t, map[string]any{"repository": serve(t, filepath.Dir(w.dir)) + "/repository", "branch": "main", "folder": "mesh"})
			out.wants(t, "the branch can't be read")
			w.init()
			first := w.commit(map[string]string{
				"mesh/a.yaml": entry("a", "a"), "mesh/deep/b.yaml": entry("b", "b"), "other.yaml": entry("c", "c"),
				"mesh/README.md": "# text", "mesh/.hidden.yaml": entry("d", "d"),
			})
			out.wants(t, "", "a a.yaml@"+first, "b deep/b.yaml@"+first)

			second := w.commit(map[string]string{"mesh/a.yaml": entry("a", "aa")})
			out.wants(t, "", "a a.yaml@"+second, "b deep/b.yaml@"+first)
			third := w.commit(map[string]string{
				"mesh/a.yaml": strings.Replace(entry("a", "a"), "hosts", "hots", 1), "mesh/c.yaml": entry("c", "c"),
				"mesh/deep/b.yaml": "",
			})
			out.wants(t, "git:a.yaml@"+third+":5:3: ServiceEntry shop/a: spec.hots: unknown field", "a a.yaml@"+second, "c c.yaml@"+third)
			fourth := w.commit(map[string]string{"mesh/a.yaml": "kind: [\n"})
			out.wants(t, "git:a.yaml@"+fourth+":", "a a.yaml@"+second, "c c.yaml@"+third)

			w.git("reset", "-q", "--hard", first) // as a push by force
			out.wants(t, "", "a a.yaml@"+first, "b deep/b.yaml@"+first)
			fifth := w.commit(map[string]string{"mesh/e.yaml": entry("e", "e")}, "--amend")
			out.wants(t, "", "a a.yaml@"+first, "b deep/b.yaml@"+first, "e e.yaml@"+fifth)

			w.git("checkout", "-q", "-b", "elsewhere")
			w.git("branch", "-q", "-D", "main")
			out.wants(t, `there is no branch "main"`, "a a.yaml@"+first, "b deep/b.yaml@"+first, "e e.yaml@"+fifth)
			sixth := w.commit(map[string]string{"mesh/e.yaml": ""})
			w.git("branch", "-q", "main")
			out.wants(t, "", "a a.yaml@"+first, "b deep/b.yaml@"+first)
			if !strings.Contains(out.log(), "a commit is read commit"+sixth) {
				t.Error(out.log())
			}

			if err := os.Rename(w.dir, w.dir+".away"); err != nil {
				t.Fatal(err)
			}
			out.wants(t, "the branch can't be read", "a a.yaml@"+first, "b deep/b.yaml@"+first)
			if err := os.Rename(w.dir+".away", w.dir); err != nil {
				t.Fatal(err)
			}
			w.git("checkout", "-q", "main")
			w.commit(map[string]string{"mesh/deep/b.yaml": ""})
			out.wants(t, "", "a a.yaml@"+first)
			w.git("mv", "mesh", "elsewhere")
			w.commit(nil)
			out.wants(t, "has no folder mesh", "a a.yaml@"+first)
		})
	}
}

// Without a branch the one that HEAD names counts.
func TestHead(t *testing.T) {
	for name, serve := range reached {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWork(t)
			w.git("checkout", "-q", "-b", "trunk")
			hash := w.commit(map[string]string{"a.yaml": entry("a", "a")})
			run(t, map[string]any{"repository": serve(t, filepath.Dir(w.dir)) + "/repository"}).wants(t, "", "a a.yaml@"+hash)
		})
	}
}

// What is beyond the limits is refused, with the limit's name, and loses nothing.
func TestLimits(t *testing.T) {
	for name, serve := range reached {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWork(t)
			w.commit(map[string]string{"a.yaml": entry("a", "a"), "b.yaml": entry("b", "b")})
			out := run(t, map[string]any{
				"repository": serve(t, filepath.Dir(w.dir)) + "/repository",
				"limits":     map[string]any{"bytes": 20_000, "files": 3, "fileBytes": 5000},
			})
			both := func() []string { return []string{"a a.yaml", "b b.yaml"} }
			out.wants(t, "", both()...)
			large := w.commit(map[string]string{"b.yaml": entry("b", "bb") + strings.Repeat("# b\n", 2000)})
			out.wants(t, "git:b.yaml@"+large+":1:1: cannot be read: it has 8", both()...)
			w.commit(map[string]string{"a.yaml": "", "b.yaml": entry("b", "b"), "c.yaml": "# c\n", "d.yaml": "# d\n", "e.yaml": "# e\n"})
			out.wants(t, "more files than limits.files, 3", both()...)
			w.commit(map[string]string{"a.yaml": entry("a", "a"), "c.yaml": "", "d.yaml": "", "e.yaml": ""})
			out.wants(t, "", both()...)
			w.commit(map[string]string{"b.yaml": "", "large.txt": strings.Repeat("0123456789", 3000)})
			if name == "path" || name == "file" { // nothing is fetched, and nobody reads large.txt
				out.wants(t, "", "a a.yaml")
				return
			}
			out.wants(t, "limits.bytes", both()...)
		})
	}
}

// The password is sent, read anew each time, and stands in no text that anybody sees.
func TestPassword(t *testing.T) {
	w := newWork(t)
	hash := w.commit(map[string]string{"a.yaml": entry("a", "a")})
	git := backend(t, filepath.Dir(w.dir))
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "robot" || password != "right-one" {
			rw.Header().Set("WWW-Authenticate", "Basic")
			http.Error(rw, "not "+password, http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(rw, r)
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "password")
	out := run(t, map[string]any{"repository": s.URL + "/repository", "username": "robot", "passwordFile": file})
	out.wants(t, "passwordFile: open")
	for _, p := range []struct{ text, fault string }{{"wrong-one\n", "authentication required"}, {"right-one\n", ""}} {
		if err := os.WriteFile(file, []byte(p.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if p.fault != "" {
			out.wants(t, p.fault)
		}
	}
	out.wants(t, "", "a a.yaml@"+hash)
	if log := out.log(); strings.Contains(log, "wrong-one") || strings.Contains(log, "right-one") {
		t.Error(log)
	}
}

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// A server is known by its certificate.
func TestTLS(t *testing.T) {
	w := newWork(t)
	hash := w.commit(map[string]string{"a.yaml": entry("a", "a")})
	s := httptest.NewTLSServer(backend(t, filepath.Dir(w.dir)))
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pemOf(s), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, map[string]any{"repository": s.URL + "/repository", "tls": map[string]any{"ca": ca}}).wants(t, "", "a a.yaml@"+hash)
	run(t, map[string]any{"repository": s.URL + "/repository"}).wants(t, "certificate signed by unknown authority")
}

// TestGateways: kinds of the Gateway API and Ingresses of a commit are rows, and go with their
// file.
func TestGateways(t *testing.T) {
	w := newWork(t)
	const objects = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: mine}
spec: {controllerName: istio.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec: {parentRefs: [{name: edge}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: web, namespace: shop}
spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: edge}], to: [{group: "", kind: Service}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
`
	hash := w.commit(map[string]string{"edge.yaml": objects, "entry.yaml": entry("a", "a")})
	out := run(t, map[string]any{"repository": w.dir})
	until := func(want ...string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			rows, faults, _ := out.says(t)
			if rows == strings.Join(want, "\n") && faults == "" {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s\nwanted\n%s\n%s", rows, strings.Join(want, "\n"), faults)
			}
		}
	}
	at := " git:edge.yaml@" + hash
	stays := "networking.istio.io/ServiceEntry shop/a git:entry.yaml@" + hash + ":1:1"
	until("gateway.networking.k8s.io/GatewayClass mine"+at+":1:1",
		"gateway.networking.k8s.io/HTTPRoute shop/web"+at+":6:1",
		"gateway.networking.k8s.io/ReferenceGrant shop/web"+at+":11:1",
		stays, "networking.k8s.io/Ingress shop/web"+at+":16:1")
	w.git("rm", "-q", "edge.yaml")
	w.commit(nil)
	until(stays)
}
