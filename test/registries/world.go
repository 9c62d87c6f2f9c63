package registries

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/line"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// entry is the plugin's name in plugins.yaml.
const entry = "tried"

// world is a control plane with the plugin, its registry, an Envoy and a client.
type world struct {
	outer   *testing.T // of all steps: what is started outlives them
	trial   Trial
	server  Server
	lines   []*line.Line
	port    int // of instances
	gateway int // the Envoy's
	dir     string
	set     string // plugins.yaml's path
	plane   *mesh.Plane
	envoy   *envoy.Envoy
	client  *client
	live    map[string]Instance
}

const configuration = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: default}
spec: {selector: {app: edge}, servers: [{port: {number: %[1]d, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: default}
spec: {hosts: ["*"], gateways: [edge], http: [{route: [{destination: {host: %[2]s, port: {number: %[3]d}}}]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: default}
spec: {host: %[2]s, subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]}
`

// newWorld starts the server, registers some instances, and starts the control plane.
func newWorld(t *testing.T, tr Trial) *world {
	t.Helper()
	envoy.Binary(t) // or skip
	w := newPlane(t, tr, func(w *world) {
		w.put(t, w.web("a"), w.web("b"), w.other("x"), w.other("y"))
	})
	w.client = connect(t, w.plane.XDS, []string{w.cluster("web", ""), w.cluster("other", "")}, []string{w.cluster("web", "v1"), w.cluster("web", "v2")})
	return w
}

// newPlane starts the server, has register put the first instances there, and starts the control
// plane.
func newPlane(t *testing.T, tr Trial, register func(*world)) *world {
	t.Helper()
	w := &world{outer: t, trial: tr, server: tr.Start(t), port: wait.Port(t), gateway: wait.Port(t), dir: t.TempDir(), live: map[string]Instance{}}
	w.connect(t)
	put(t, filepath.Join(w.dir, "mesh.yaml"), fmt.Sprintf(configuration, w.gateway, w.host("web"), w.servicePort()))
	w.set = w.plugins(t, tr.Config(w.lines[0].Address))
	register(w)
	w.plane = mesh.Start(t, program, w.dir, "--plugins", w.set)
	w.plane.Ready(t)
	return w
}

// connect lays the lines: one for each port of the server, at the same distances from each other.
func (w *world) connect(t *testing.T) {
	t.Helper()
	host, text, err := net.SplitHostPort(w.server.Address())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	first := wait.Port(t)
	for _, offset := range append([]int{0}, w.trial.Offsets...) {
		w.lines = append(w.lines, line.At(t, fmt.Sprintf("127.0.0.1:%d", first+offset), fmt.Sprintf("%s:%d", host, port+offset)))
	}
}

// plugins writes a plugins.yaml: the default set, and the plugin with a config.
func (w *world) plugins(t *testing.T, config map[string]any) string {
	t.Helper()
	set, err := os.ReadFile(filepath.Join(envoy.Root(t), "plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file, what := filepath.Join(t.TempDir(), "plugins.yaml"), "builtin: "+w.trial.Builtin
	if w.trial.Entry != nil {
		what = strings.ReplaceAll(strings.TrimSpace(w.trial.Entry(w.lines[0].Address)), "\n", "\n    ")
	}
	put(t, file, fmt.Sprintf("%s\n  - name: %s\n    kind: registry\n    %s\n    limits: {sync: 20s}\n    config: %s\n", set, entry, what, text))
	return file
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) host(service string) string { return w.trial.Host(service) }

func (w *world) servicePort() int {
	if w.trial.ServicePort == nil {
		return w.port
	}
	return w.trial.ServicePort(w.port)
}

func (w *world) cluster(service, subset string) string {
	return fmt.Sprintf("outbound|%d|%s|%s", w.servicePort(), subset, w.host(service))
}

// web is an instance of the service that the Envoy asks: a to e, at 127.0.0.11 and so on.
func (w *world) web(id string) Instance {
	return Instance{
		Service: "web", ID: "web-" + id, Address: fmt.Sprintf("127.0.0.%d", 11+id[0]-'a'), Port: w.port, Weight: 1,
		Metadata: map[string]string{"version": "v1"},
	}
}

// other is one of the other service: x, y, z.
func (w *world) other(id string) Instance {
	return Instance{Service: "other", ID: "other-" + id, Address: fmt.Sprintf("127.0.0.%d", 31+id[0]-'x'), Port: w.port, Weight: 1}
}

// put registers instances.
func (w *world) put(t testing.TB, all ...Instance) {
	t.Helper()
	w.server.Put(t, all...)
	for _, i := range all {
		w.live[i.ID] = i
	}
}

// remove takes them back.
func (w *world) remove(t testing.TB, all ...Instance) {
	t.Helper()
	w.server.Remove(t, all...)
	for _, i := range all {
		delete(w.live, i.ID)
	}
}

// all are the instances that are registered.
func (w *world) all() []Instance {
	var all []Instance
	for _, i := range w.live {
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b Instance) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// has waits until web's healthy instances are these, each a letter.
func (w *world) has(t *testing.T, what, ids string) {
	t.Helper()
	w.client.until(t, what, w.cluster("web", ""), w.addresses(ids)...)
}

// keeps fails if they are not these now.
func (w *world) keeps(t *testing.T, what, ids string) {
	t.Helper()
	if got, want := w.client.healthy(w.cluster("web", "")), w.addresses(ids); !slices.Equal(got, want) {
		t.Errorf("%s: web has %v, not %v", what, got, want)
	}
}

func (w *world) addresses(ids string) (all []string) {
	for _, id := range ids {
		all = append(all, w.web(string(id)).Address)
	}
	return all
}

// serve has addresses of instances answer requests, until the test's end.
func (w *world) serve(t *testing.T, ids string) {
	t.Helper()
	for _, address := range w.addresses(ids) {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, w.port))
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{
			ReadHeaderTimeout: time.Minute,
			Handler:           http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, address) }),
		}
		var ended sync.WaitGroup
		ended.Go(func() { _ = s.Serve(l) })
		t.Cleanup(func() { _ = s.Close(); ended.Wait() })
	}
}

// edge starts the Envoy.
func (w *world) edge(t *testing.T) {
	t.Helper()
	admin := wait.Address(t)
	w.envoy = envoy.Start(t, "edge", admin, w.plane.Bootstrap(t, "--name", "edge", "--namespace", "default", "--type", "router", "--ip", "127.0.0.9",
		"--labels", "app=edge", "--admin", admin))
	w.envoy.Ready(t)
	target := w.target()
	wait.For(t, "the Envoy's requests are answered", func() error {
		code, text, err := target.Ask(t.Context())
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, text)
		}
		return err
	})
}

func (w *world) target() mesh.Target {
	return mesh.Target{Address: fmt.Sprintf("127.0.0.1:%d", w.gateway), Host: "web", Path: "/"}
}

// step does one under requests: none may fail, and nothing that was there may be lost; but for one
// that empties sets of endpoints.
func (w *world) step(t *testing.T, empties bool, do func()) {
	t.Helper()
	var traffic *mesh.Traffic
	if w.envoy != nil && !empties {
		traffic = mesh.NewSlowTraffic(t, w.target(), 20*time.Millisecond)
	}
	do()
	if traffic != nil {
		asked, failed := traffic.Stop()
		t.Logf("%d requests, %d failed", asked, len(failed))
		if asked == 0 {
			t.Error("no requests")
		}
		for _, text := range failed[:min(len(failed), 5)] {
			t.Error(text)
		}
		for _, text := range w.envoy.Unhappy(t) {
			t.Error(text)
		}
	}
	if lost := w.client.lost(); !empties {
		for _, text := range lost {
			t.Error(text)
		}
	}
	if t.Failed() {
		t.Logf("the control plane said last:\n%s", w.plane.LastLines(30))
	}
}

// plugin runs `coxswain plugins ARGS` and returns what it says; ok: it succeeded.
func (w *world) plugin(t *testing.T, args ...string) (text string, ok bool) {
	t.Helper()
	out, err := exec.Command(program, append([]string{"plugins", "--addr", w.plane.HTTP}, args...)...).CombinedOutput()
	return string(out), err == nil
}

// shows waits until `coxswain config` or the log says something.
func (w *world) shows(t *testing.T, says string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("it is shown: %q", says), func() error {
		out, _ := exec.Command(program, "config", "--addr", w.plane.HTTP).CombinedOutput()
		if strings.Contains(string(out), says) || strings.Contains(w.plane.Log(), says) {
			return nil
		}
		return fmt.Errorf("it isn't in:\n%s%s", out, w.plane.LastLines(10))
	})
}

// passes lets time pass in which nothing is to happen: the requests meanwhile are the test.
func passes(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
