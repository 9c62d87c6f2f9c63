// Package skew runs the last release beside this version: its files, its state, and the two serving
// one mesh; and plugins of the last two. It builds releases from the commits that docs/releases.txt
// names.
package skew_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const root = "../.."

// binary is the path of this version's program.
var binary string

// mostOlder is how many releases plugins are tried with, the last ones.
const mostOlder = 2

// older are the releases before this version, the last one first, as they were built.
var older struct {
	once sync.Once
	all  []*made
	err  error
}

// made is a release that is built once it is asked for.
type made struct {
	program.Release
	once  sync.Once
	dir   string // with its source
	built string // with the program and its examples' plugins
	err   error
}

func TestMain(m *testing.M) {
	mesh.Plain(&binary, func() int {
		code := m.Run()
		for _, r := range older.all {
			if r.dir != "" {
				_ = os.RemoveAll(r.dir)
			}
		}
		return code
	})
}

// plugins are examples, each of another kind.
var plugins = []string{"registry-hello", "config-greetings", "generator-clusters", "patch-timeout", "controller-count", "authenticator-token"}

// releases are those that plugins are tried with, the last one first.
func releases(t *testing.T) []*made {
	t.Helper()
	need.All(t)
	older.once.Do(func() {
		var all []program.Release
		all, older.err = program.Releases(root, mostOlder)
		for _, r := range all {
			older.all = append(older.all, &made{Release: r})
		}
	})
	if older.err != nil {
		t.Fatal(older.err)
	}
	return older.all
}

// folder is that with a release's program, coxswain, and with plugins that were made with its SDK.
func (r *made) folder(t *testing.T) string {
	t.Helper()
	r.once.Do(func() { r.err = r.build() })
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.built
}

// release is the folder of the last one.
func release(t *testing.T) string {
	t.Helper()
	return releases(t)[0].folder(t)
}

func (r *made) build() (err error) {
	if r.dir, err = os.MkdirTemp("", "skew"); err != nil {
		return err
	}
	packages := []string{"./cmd/coxswain"}
	for _, p := range plugins {
		packages = append(packages, "./examples/"+p)
	}
	r.built, err = r.Build(root, r.dir, packages...)
	return err
}

// here is a folder with this version's program and plugins.
func here(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"build", "-buildvcs=false", "-o", dir + "/"}
	for _, p := range plugins {
		args = append(args, "./examples/"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// place writes files into a folder.
func place(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// set is a plugins.yaml of examples: a service, made into a cluster that a patch changes, for who
// has the token "sesame".
func set(dir string) string {
	var b strings.Builder
	b.WriteString("plugins:\n")
	for _, e := range []struct{ name, kind, more string }{
		{"registry-hello", "registry", ""},
		{"config-greetings", "config", "config: {hello: world}"},
		{"generator-clusters", "generator", ""},
		{"patch-timeout", "patch", ""},
		{"controller-count", "controller", ""},
	} {
		fmt.Fprintf(&b, "- {name: %s, kind: %s, process: {command: %s}, insecure: true, %s}\n", e.name, e.kind, filepath.Join(dir, e.name), e.more)
	}
	return b.String()
}

// serves runs a set of plugins' programs by a program of another version, and asks for what they
// make.
func serves(t *testing.T, program, with string) {
	t.Helper()
	dir := t.TempDir()
	place(t, dir, map[string]string{"plugins.yaml": set(with)})
	p := mesh.Start(t, program, "", "--plugins", filepath.Join(dir, "plugins.yaml"))
	p.Ready(t)
	bootstrap := p.Bootstrap(t, "--type", "sidecar", "--name", "one")
	all := p.Fetch(t, bootstrap, "type.googleapis.com/envoy.config.cluster.v3.Cluster")
	if len(all) != 1 {
		t.Fatalf("there are %d clusters", len(all))
	}
	var c clusterv3.Cluster
	if err := proto.Unmarshal(all[0].Value, &c); err != nil || c.Name != "hello.example.com" || c.ConnectTimeout.GetSeconds() != 2 {
		t.Errorf("%v: %v", err, &c)
	}
	wait.For(t, "all serve", func() error {
		for name, of := range p.Plugins(t) {
			if of.State != "serving" || of.Restarts > 0 {
				return fmt.Errorf("%s is %s, after %d restarts", name, of.State, of.Restarts)
			}
		}
		return nil
	})
}

// TestOlderPluginsHere: programs that were made with the SDKs of the last releases run on this
// version.
func TestOlderPluginsHere(t *testing.T) {
	t.Parallel()
	for _, r := range releases(t) {
		t.Run(r.Version, func(t *testing.T) { serves(t, binary, r.folder(t)) })
	}
}

// TestPluginsOnOlder: programs that are made with this version's SDK run on the last releases.
func TestPluginsOnOlder(t *testing.T) {
	t.Parallel()
	for _, r := range releases(t) {
		t.Run(r.Version, func(t *testing.T) { serves(t, filepath.Join(r.folder(t), "coxswain"), here(t)) })
	}
}

// mine is a mesh of files: a gateway that leads to one backend.
func mine(port int, edge string) map[string]string {
	_, listen, _ := strings.Cut(edge, ":")
	return map[string]string{"mesh.yaml": fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 127.0.0.1, ports: {http: %d}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {istio: ingressgateway}
  servers: [{bind: 127.0.0.1, port: {number: %s, name: http, protocol: HTTP}, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: ["*"]
  gateways: [edge]
  http: [{route: [{destination: {host: web.shop, port: {number: 80}}}]}]
`, port, listen)}
}

// said runs a program, and returns what it prints.
func said(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// TestFilesAndState: settings, plugins.yaml and a state directory that the last release ran with
// are this version's, too: it refuses nothing, and a pin and the revisions are still there.
func TestFilesAndState(t *testing.T) {
	t.Parallel()
	old := filepath.Join(release(t), "coxswain")
	dir := t.TempDir()
	place(t, filepath.Join(dir, "mesh"), mine(1, "127.0.0.1:18080"))
	place(t, dir, map[string]string{"settings/settings.yaml": "plugins: plugins.yaml\nstateDir: " + dir + "/state\ndebounceAfter: 50ms\n"})
	was, err := program.LastRelease(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command("git", "-C", root, "show", was.Commit+":plugins.yaml").Output()
	if err != nil {
		t.Fatal(err)
	}
	place(t, dir, map[string]string{
		"settings/plugins.yaml": strings.ReplaceAll(string(text), "builtin: config/file", "builtin: config/file\n    config: {dir: "+dir+"/mesh}"),
	})
	args := []string{"--settings", filepath.Join(dir, "settings/settings.yaml")}
	p := mesh.Start(t, old, "", args...)
	p.Ready(t)
	p.Follow(t, p.Bootstrap(t, "--type", "router", "--name", "edge", "--labels", "istio=ingressgateway"), "type.googleapis.com/envoy.config.cluster.v3.Cluster")
	revision := newest(t, old, p.HTTP)
	said(t, old, "pin", revision, "--addr", p.HTTP)
	if out := said(t, binary, append([]string{
		"upgrade", "check", "--old", old, "--",
	}, args...)...); strings.Contains(out, "\notherwise ") || !strings.Contains(out, "and 1 pins") {
		t.Errorf("it says\n%s", out)
	}
	if code := p.Stop(t); code != 0 {
		t.Fatalf("it ends with %d", code)
	}
	next := mesh.Start(t, binary, "", args...)
	next.Ready(t)
	if out := said(t, binary, "pin", "--addr", next.HTTP); !strings.Contains(out, revision) {
		t.Errorf("revision %s is not pinned any more:\n%s", revision, out)
	}
	if strings.Contains(next.Log(), "begins anew") {
		t.Errorf("the state was not read:\n%s", next.Log())
	}
}

// newest is the number of the newest revision of a history.
func newest(t *testing.T, program, addr string) (revision string) {
	t.Helper()
	wait.For(t, "there is a revision that somebody has", func() error {
		out := said(t, program, "history", "--addr", addr, "-o", "json")
		var h struct {
			Revisions []struct {
				Push struct{ Revision json.Number }
				Kept bool
			}
		}
		if err := json.Unmarshal([]byte(out), &h); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for _, r := range h.Revisions {
			if r.Kept {
				revision = r.Push.Revision.String()
			}
		}
		if revision == "" {
			return fmt.Errorf("there is none: %s", out)
		}
		return nil
	})
	return revision
}

// switched is an address from which connections go to one of several servers.
type switched struct {
	listener net.Listener

	mu    sync.Mutex
	to    string
	conns []net.Conn
}

func newSwitched(t *testing.T, to string) *switched {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &switched{listener: l, to: to}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.carry(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); s.lead(""); running.Wait() })
	return s
}

// carry leads one connection to where they go now.
func (s *switched) carry(c net.Conn) {
	defer func() { _ = c.Close() }()
	s.mu.Lock()
	to := s.to
	s.conns = append(s.conns, c)
	s.mu.Unlock()
	if to == "" {
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(server, c); _ = server.Close() })
	_, _ = io.Copy(c, server)
	_ = c.Close()
	both.Wait()
}

// lead ends all connections; those that come go elsewhere.
func (s *switched) lead(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.to, s.conns = to, nil
}

// TestTwoVersions: two control planes of one mesh, one of them the last release's, tell a proxy the
// same. An Envoy that goes from one to the other and back is told changes by both, and no request
// of its clients fails.
func TestTwoVersions(t *testing.T) {
	t.Parallel()
	old := filepath.Join(release(t), "coxswain")
	dir, one, other := t.TempDir(), mesh.NewBackend(t, "one"), mesh.NewBackend(t, "other")
	edge := wait.Address(t)
	place(t, dir, mine(one.Port, edge))
	is, was := mesh.Start(t, binary, dir), mesh.Start(t, old, dir)
	is.Ready(t)
	was.Ready(t)
	admin := wait.Address(t)
	ads := newSwitched(t, was.XDS)
	bootstrap := said(t, old, "bootstrap", "--xds", ads.listener.Addr().String(), "--type", "router", "--name",
		"edge", "--labels", "istio=ingressgateway", "--admin", admin)
	for _, kind := range []string{"cluster.v3.Cluster", "listener.v3.Listener"} {
		url := "type.googleapis.com/envoy.config." + kind
		same(t, kind, was.Fetch(t, []byte(bootstrap), url), is.Fetch(t, []byte(bootstrap), url))
	}
	e := envoy.Start(t, "edge", admin, []byte(bootstrap))
	e.Ready(t)
	target := mesh.Target{Address: edge, Host: "web.shop", Path: "/"}
	answers(t, target, "one")
	traffic := mesh.NewTraffic(t, target)
	for i, to := range []*mesh.Plane{is, was, is} {
		ads.lead(to.XDS)
		backend := []*mesh.Backend{other, one}[i%2]
		place(t, dir, mine(backend.Port, edge))
		answers(t, target, backend.Name)
	}
	if asked, failed := traffic.Stop(); asked == 0 || len(failed) > 0 {
		t.Errorf("of %d requests %d failed: %q", asked, len(failed), failed)
	}
}

// same fails where two planes' resources are not the same.
func same(t *testing.T, kind string, a, b []*anypb.Any) {
	t.Helper()
	if len(a) == 0 || len(a) != len(b) {
		t.Errorf("of %s there are %d and %d", kind, len(a), len(b))
	}
	for _, r := range a {
		if !slices.ContainsFunc(b, func(o *anypb.Any) bool { return proto.Equal(r, o) }) {
			t.Errorf("%s is another one here: %v", kind, r)
		}
	}
}

func answers(t *testing.T, target mesh.Target, want string) {
	t.Helper()
	wait.For(t, want+" answers", func() error {
		if code, body, err := target.Ask(t.Context()); err != nil || code != 200 || body != want {
			return fmt.Errorf("%d %q: %v", code, body, err)
		}
		return nil
	})
}
