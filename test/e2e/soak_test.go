package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/swap"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

var (
	soakSwaps   = flag.Int("soak.swaps", 1, "how often each kind of plugin is swapped")
	soakStreams = flag.Int("soak.streams", 20, "how many xDS streams watch")
)

// soak is a control plane with two Envoys under traffic and many streams, all of whose plugins are
// swapped again and again.
type soak struct {
	*bench
	proxies []*proxy
}

// The registry `watched` has one of these two sets of endpoints, and never anything else.
const (
	soakOld = "10.5.0.1 10.5.0.2"
	soakNew = "10.5.0.2 10.5.0.3"
)

const soakSet = `plugins:
  - {name: files, kind: config, builtin: config/file, rollback: {window: 50ms}}
  - {name: mesh, kind: config, builtin: config/mesh, rollback: {window: 50ms}}
  - {name: serviceentry, kind: registry, builtin: registry/serviceentry, rollback: {window: 50ms}}
  - {name: hello, kind: registry, process: {command: ./hello}, insecure: true, rollback: {window: 50ms}}
  - {name: watched, kind: registry, builtin: registry/memory, rollback: {window: 50ms}, config: {services: [
      {host: watched.example, namespace: test, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.5.0.1}, {address: 10.5.0.2}]}]}}
  - {name: greetings, kind: config, process: {command: ./greetings}, insecure: true, rollback: {window: 50ms}, config: {web: hello}}
  - {name: clusters, kind: generator, process: {command: ./clusters}, insecure: true, rollback: {window: 50ms}, select: {metadata: {SOAK: clusters}}}
  - {name: istio, kind: generator, builtin: generator/istio, rollback: {window: 50ms}}
  - {name: header, kind: patch, process: {command: ./patch}, insecure: true, types: [LDS], rollback: {window: 50ms}}
  - {name: count, kind: controller, process: {command: ./count}, insecure: true}
`

// soakPlugins are their names.
func soakPlugins() []string {
	return []string{"files", "mesh", "serviceentry", "hello", "watched", "greetings", "clusters", "istio", "header", "count"}
}

// newWatched is the watched registry's other config.
const newWatched = `services:
- {host: watched.example, namespace: test, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.5.0.2}, {address: 10.5.0.3}]}
`

const oldWatched = `services:
- {host: watched.example, namespace: test, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.5.0.1}, {address: 10.5.0.2}]}
`

// TestSoak swaps each kind between process and WASM where it has both, kills candidates in the
// middle, and tries invalid ones. No request fails, no proxy sees another set of endpoints than the
// old and the new, and nothing is left over.
func TestSoak(t *testing.T) {
	envoy.Binary(t) // or skip
	programs := t.TempDir()
	for name, source := range map[string]string{
		"hello": "registry-hello", "patch": "patch-header", "greetings": "config-greetings", "clusters": "generator-light", "count": "controller-count",
	} {
		compile(t, filepath.Join(programs, name), source)
		compile(t, filepath.Join(programs, name+".wasm"), source, "GOOS=wasip1", "GOARCH=wasm")
	}
	place(t, filepath.Join(programs, "broken.wasm"), "this is no module")
	c := &configuration{
		dir: t.TempDir(), WebPort: wait.Port(t), GatewayPort: wait.Port(t), Weight1: 50, Weight2: 50,
		V1: []*mesh.Backend{mesh.NewBackend(t, "v1")}, V2: []*mesh.Backend{mesh.NewBackend(t, "v2")},
	}
	c.write(t, "gateway.yaml", "web.yaml", "routes.yaml")
	s := &soak{bench: newBenchIn(t, programs, soakSet, "--configDir", c.dir)}
	if out, err := exec.CommandContext(t.Context(), program, "log", "set", "plugin/count=debug", "--addr", s.plane.HTTP).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out) // neverTwo reads its steps
	}
	place(t, filepath.Join(s.dir, "new.yaml"), newWatched)
	place(t, filepath.Join(s.dir, "old.yaml"), oldWatched)

	w := &world{configuration: c, plane: s.plane}
	w.gateway = w.proxy(t, "gateway", "delta", "--type", "router", "--ip", "127.0.0.21", "--labels", "istio=ingressgateway")
	w.client = w.proxy(t, "client", "sotw", "--type", "sidecar", "--ip", "127.0.0.20", "--labels", "app=client", "--interception", "NONE")
	for _, e := range w.envoys() {
		e.Ready(t)
	}
	for i := range *soakStreams {
		s.proxies = append(s.proxies, newProxy(t, s.plane, fmt.Sprint("watcher-", i), nil, "outbound|80||watched.example"))
	}
	// One whose clusters come from the generator that is a process now and a module then.
	static := newProxyOf(t, s.plane, "static", map[string]any{"SOAK": "clusters"}, nil)
	wait.For(t, "it has the watched service's cluster", func() error { return static.want("watched.example", true) })
	for _, p := range s.proxies {
		wait.For(t, "it has the watched endpoints", func() error { return p.want("outbound|80||watched.example", true) })
	}
	only(t, w.web("/api")[0], "v1", "v2")
	traffic := w.traffic(t)
	s.round(t, 0) // what is compiled and cached once
	s.quiet(t)
	before := s.usage(t)
	for n := range *soakSwaps {
		s.round(t, n+1)
	}
	s.quiet(t)
	w.finish(t, traffic)
	for _, p := range s.proxies {
		s.watched(t, p, "outbound|80||watched.example")
	}
	s.watched(t, static, "watched.example")
	s.neverTwo(t, "count")
	s.nothingLeft(t, before)
}

// compile builds an example's plugin.
func compile(t *testing.T, to, example string, environ ...string) {
	t.Helper()
	mesh.Build(t, to, "../../examples/"+example, environ...)
}

// round swaps each plugin once, in the background of which a candidate is killed, and then tries
// two that can't be.
func (s *soak) round(t *testing.T, n int) {
	t.Helper()
	carrier := func(name string) []string {
		if n%2 == 0 {
			return []string{"--wasm", name + ".wasm"}
		}
		return []string{"--process", "./" + name}
	}
	config := []string{"old.yaml", "new.yaml"}[(n+1)%2]
	for _, change := range [][]string{
		{"restart", "files"}, {"restart", "mesh"}, {"restart", "serviceentry"}, {"restart", "istio"},
		append([]string{"swap", "hello"}, carrier("hello")...),
		append([]string{"swap", "header"}, carrier("patch")...),
		append([]string{"swap", "greetings"}, carrier("greetings")...),
		append([]string{"swap", "clusters"}, carrier("clusters")...),
		{"swap", "watched", "--config", config},
	} {
		if n%3 == 1 {
			s.killed(t, change)
		}
		s.must("switched", append(change, "--force")...)
	}
	s.must("kept", append([]string{"swap", "count"}, carrier("count")...)...)
	s.fails("", "swap", "hello", "--process", "/bin/false", "--force")
	s.fails("", "swap", "header", "--wasm", "broken.wasm", "--force")
	s.fails("", "swap", "clusters", "--wasm", "broken.wasm", "--force")
	s.fails("", "swap", "greetings", "--process", "./clusters", "--force")
	s.fails("", "swap", "count", "--wasm", "broken.wasm", "--force")
	s.fails("services", "swap", "watched", "--config", "plugins.yaml")
}

// killed begins a change and kills the candidate's process. What becomes of it depends on the
// moment; that the core and the rest are well does not.
func (s *soak) killed(t *testing.T, change []string) {
	t.Helper()
	before := children(t, s.plane.PID())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.plugins(append(change, "--force")...)
	}()
	wait.For(t, "a candidate has started, or all is over", func() error {
		for _, pid := range children(t, s.plane.PID()) {
			if !slices.Contains(before, pid) {
				time.Sleep(rand.N(150 * time.Millisecond)) // any moment of its life will do
				_ = syscall.Kill(pid, syscall.SIGKILL)
				return nil
			}
		}
		select {
		case <-done:
			return nil
		default:
			return fmt.Errorf("it has not")
		}
	})
	<-done
	wait.For(t, "the plugin serves", func() error {
		if d := s.detail(change[1]); d.State != "serving" {
			return fmt.Errorf("it is %s: %s", d.State, d.LastError)
		}
		return nil
	})
}

// quiet waits until all windows are closed and no process but the plugins' is there.
func (s *soak) quiet(t *testing.T) {
	t.Helper()
	for _, name := range soakPlugins() {
		wait.For(t, name+"'s last change is over", func() error {
			d := s.detail(name)
			if c := d.Changes; len(c) > 0 && !c[len(c)-1].State.Over() {
				return fmt.Errorf("it is %s", c[len(c)-1].State)
			}
			if d.State != "serving" {
				return fmt.Errorf("the plugin is %s", d.State)
			}
			return nil
		})
	}
	wait.For(t, "each plugin has one process", func() error {
		if pids := children(t, s.plane.PID()); len(pids) != len(soakPlugins()) {
			return fmt.Errorf("there are %v", pids)
		}
		return nil
	})
}

// children returns the processes that a process has started.
func children(t *testing.T, pid int) []int {
	t.Helper()
	var all []int
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for _, word := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// watched checks the sets of endpoints that a stream has seen.
func (s *soak) watched(t *testing.T, p *proxy, name string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		t.Errorf("the stream ended: %v", p.err)
	}
	sets := p.sets[name]
	for i, set := range sets {
		if set != soakOld && set != soakNew {
			t.Errorf("a proxy saw the endpoints %q", set)
		}
		if i > 0 && set == sets[i-1] {
			t.Errorf("a proxy was sent %q twice", set)
		}
	}
	if len(sets) < *soakSwaps {
		t.Errorf("a proxy saw %d sets of endpoints in %d swaps", len(sets), *soakSwaps)
	}
}

// neverTwo reads in the log that a controller's process was gone each time that the next one
// started.
func (s *soak) neverTwo(t *testing.T, name string) {
	t.Helper()
	runs, starts := false, 0
	for line := range strings.Lines(s.plane.Log()) {
		switch {
		case !strings.Contains(line, "plugin="+name+" "):
		case strings.Contains(line, `msg="plugin starting"`):
			if starts++; runs {
				t.Errorf("two of %s: %s", name, line)
			}
			runs = true
		case strings.Contains(line, `msg="plugin gone"`), strings.Contains(line, `msg="plugin failed"`), strings.Contains(line, `msg="plugin was killed"`):
			runs = false
		}
	}
	if starts < 2*(*soakSwaps) {
		t.Errorf("%s was started %d times in %d swaps", name, starts, *soakSwaps)
	}
}

// usage of the core.
type usage struct {
	goroutines, files, sockets int
	heap                       float64
}

func (s *soak) usage(t *testing.T) (u usage) {
	t.Helper()
	if _, err := page.Get(s.plane.HTTP, "/debug/pprof/heap?gc=1"); err != nil {
		t.Fatal(err)
	}
	text, err := page.Get(s.plane.Monitoring, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metric := func(name string) float64 {
		m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no metric %s", name)
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	u.goroutines, u.files, u.heap = int(metric("go_goroutines")), int(metric("process_open_fds")), metric("go_memstats_heap_alloc_bytes")
	sockets, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "coxswain", "[0-9]*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	u.sockets = len(sockets)
	return u
}

// nothingLeft waits until the core uses what it used before.
func (s *soak) nothingLeft(t *testing.T, before usage) {
	t.Helper()
	wait.For(t, "nothing is left over", func() error {
		now := s.usage(t)
		t.Logf("before %+v, now %+v", before, now)
		// Streams of pages and commands come and go.
		if now.goroutines > before.goroutines+10 || now.files > before.files+5 || now.sockets > before.sockets || now.heap > before.heap*1.5+8e6 {
			time.Sleep(200 * time.Millisecond)
			return fmt.Errorf("it used %+v, and uses %+v", before, now)
		}
		return nil
	})
	if d := s.detail("watched"); len(d.Changes) == 0 || d.Changes[len(d.Changes)-1].State == swap.Switched {
		t.Errorf("%+v", d.Changes)
	}
}
