// Package modules tries modules that proxies without an agent run: the program as users run it, and
// a gateway that is a stock Envoy.
package modules

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/coxswain-mesh/coxswain/internal/artifact/liar"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// binary is the path of the program under test.
var binary string

func TestMain(m *testing.M) { mesh.Main(&binary, m.Run) }

// module returns a module for Envoy that puts the header x-module on answers, with a value of four
// characters, and that has so many bytes more.
// testdata/header.wasm is test/traffic/testdata/module/header.c, compiled as test/traffic does.
func module(t *testing.T, value string, more int) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/header.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if len(value) != 4 || !bytes.Contains(text, []byte("here")) {
		t.Fatalf("%q can't be its value", value)
	}
	text = bytes.Replace(text, []byte("here"), []byte(value), 1)
	// A section of its own (WebAssembly, "Custom Section"), that nobody reads.
	name := []byte("\x04more")
	size := len(name) + more
	text = append(text, 0)
	for size >= 0x80 {
		text = append(text, byte(size)|0x80)
		size >>= 7
	}
	text = append(text, byte(size))
	return append(append(text, name...), make([]byte, more)...)
}

// files is a server of HTTPS that has modules, until something else is said of it.
type files struct {
	*httptest.Server
	ca string

	mu    sync.Mutex
	pages map[string][]byte
	// twist reports whether it answered.
	twist func(w http.ResponseWriter, r *http.Request) bool
}

func newFiles(t *testing.T) *files {
	t.Helper()
	f := &files{pages: map[string][]byte{}}
	f.Server = httptest.NewTLSServer(f)
	t.Cleanup(f.Close)
	f.ca = filepath.Join(t.TempDir(), "ca.pem")
	put(t, f.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})))
	return f
}

// ServeHTTP implements http.Handler.
func (f *files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	twist, page := f.twist, f.pages[r.URL.Path]
	f.mu.Unlock()
	switch {
	case twist != nil && twist(w, r):
	case page == nil:
		http.NotFound(w, r)
	default:
		_, _ = w.Write(page)
	}
}

func (f *files) page(path string, text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages[path] = text
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// world is a control plane that serves modules, and a gateway without an agent.
type world struct {
	*mesh.Plane
	dir     string
	gateway int
	envoy   *envoy.Envoy
}

const gateway = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {app: edge}
  servers: [{port: {number: %d, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge, namespace: shop}
spec:
  hosts: ["*"]
  gateways: [edge]
  http: [{directResponse: {status: 200, body: {string: hello}}}]
`

// start begins a control plane whose config/modules has a config.
func start(t *testing.T, config string) *world {
	t.Helper()
	envoy.Binary(t)
	mesh.RuntimeDir(t)
	w := &world{dir: t.TempDir(), gateway: wait.Port(t)}
	put(t, w.dir+"/config/edge.yaml", fmt.Sprintf(gateway, w.gateway))
	put(t, w.dir+"/plugins.yaml", fmt.Sprintf(`plugins:
  - {name: files, kind: config, builtin: config/file}
  - {name: mesh, kind: config, builtin: config/mesh}
  - {name: serviceentry, kind: registry, builtin: registry/serviceentry}
  - {name: istio, kind: generator, builtin: generator/istio}
  - name: modules
    kind: config
    builtin: config/modules
    config: {directory: %s/kept, retry: 50ms, maxRetry: 200ms, refresh: 100ms, %s}
`, w.dir, config))
	w.Plane = mesh.Start(t, binary, w.dir+"/config", "--plugins", w.dir+"/plugins.yaml")
	w.Ready(t)
	w.edge(t)
	w.answers(t, "200")
	return w
}

// edge starts the gateway.
func (w *world) edge(t *testing.T) {
	t.Helper()
	at := wait.Address(t)
	w.envoy = envoy.Start(t, "edge", at, w.Bootstrap(t, "--type", "router", "--name", "edge", "--namespace", "shop",
		"--ip", "127.0.0.1", "--labels", "app=edge", "--admin", at))
	w.envoy.Ready(t)
}

// plugin writes a WasmPlugin of a namespace; more are lines of its spec.
func (w *world) plugin(t *testing.T, namespace, name, url string, more ...string) {
	t.Helper()
	put(t, fmt.Sprintf("%s/config/%s-%s.yaml", w.dir, namespace, name), fmt.Sprintf(`apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata: {name: %s, namespace: %s}
spec:
  selector: {matchLabels: {app: edge}}
  url: %q
  %s
`, name, namespace, url, strings.Join(more, "\n  ")))
}

// ask returns what the gateway answers: its status and, where a module ran, what that says.
func (w *world) ask() string {
	r, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://127.0.0.1:" + strconv.Itoa(w.gateway))
	if err != nil {
		return err.Error()
	}
	_ = r.Body.Close()
	return strings.TrimSpace(fmt.Sprint(r.StatusCode, " ", strings.Join(r.Header.Values("x-module"), " ")))
}

// answers waits until the gateway answers so.
func (w *world) answers(t *testing.T, want string) {
	t.Helper()
	wait.For(t, "the gateway answers "+want, func() error {
		if got := w.ask(); got != want {
			return fmt.Errorf("it answers %s", got)
		}
		return nil
	})
}

// says waits for a line of the control plane's log with all words in it.
func (w *world) says(t *testing.T, words ...string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("the log says %q", words), func() error {
	lines:
		for line := range strings.Lines(w.Log()) {
			for _, word := range words {
				if !strings.Contains(line, word) {
					continue lines
				}
			}
			return nil
		}
		return fmt.Errorf("it ends with\n%s", w.LastLines(5))
	})
}

// TestHTTPS: a gateway without an agent runs a module that only its URL names. Until it is there
// nothing passes; it is renewed, and outlives its server, the plugin's death, and a new control
// plane.
func TestHTTPS(t *testing.T) {
	f := newFiles(t)
	w := start(t, "pull: {ca: "+f.ca+"}")
	url := f.URL + "/header.wasm"
	w.plugin(t, "shop", "header", url, "imagePullPolicy: Always")
	w.answers(t, "503")
	w.says(t, "a module cannot be fetched", "WasmPlugin/shop/header", "404")
	f.page("/header.wasm", module(t, "one!", 800<<10))
	w.answers(t, "200 one!")

	traffic := mesh.NewTraffic(t, mesh.Target{Address: "127.0.0.1:" + strconv.Itoa(w.gateway), Host: "x", Path: "/"})
	f.page("/header.wasm", module(t, "two!", 0))
	w.answers(t, "200 two!")
	asked, failed := traffic.Stop()
	if len(failed) > 0 {
		t.Errorf("while a new module came %d of %d requests failed: %q", len(failed), asked, failed)
	}

	f.Close()
	w.says(t, "a module cannot be fetched", "refused")
	before := w.Signal(t, "modules", syscall.SIGKILL)
	wait.For(t, "the plugin is there again", func() error {
		if now := w.Plugins(t)["modules"]; now.PID == before.PID || now.PID == 0 {
			return fmt.Errorf("it is %+v", now)
		}
		return nil
	})
	w.again(t, "200 two!")
	w.Kill()
	w.Plane = w.Again(t)
	w.Ready(t)
	w.again(t, "200 two!")
}

// again starts the gateway anew, which has nothing kept, and waits for what the module says.
func (w *world) again(t *testing.T, want string) {
	t.Helper()
	w.envoy.Stop()
	w.edge(t)
	w.answers(t, want)
}

// image keeps a module as an image of a container in a registry.
func image(t *testing.T, l *liar.Registry, tag string, text []byte) ocispec.Descriptor {
	t.Helper()
	return l.Artifact(t, tag, "application/vnd.module.wasm.config.v1+json", map[string]string{"type": "envoy_proxy"},
		l.Put("application/vnd.module.wasm.content.layer.v1+wasm", text), l.Put("text/plain", []byte("about it")))
}

// TestImage: a module of a registry that wants a password, which the namespace's Secret has.
func TestImage(t *testing.T) {
	l := liar.New(t)
	const login = "bWU6YS13b3JkLXRoYXQtbm9ib2R5LW1heS1zZWU=" // me:a-word-that-nobody-may-see
	l.Twist(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Basic "+login {
			return false
		}
		rw.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	})
	one := image(t, l, "1", module(t, "one!", 0))
	w := start(t, "pull: {timeout: 10s}")
	w.plugin(t, "shop", "header", l.Host()+"/team/header:1", "imagePullSecret: registry", "sha256: \""+one.Digest.Encoded()+"\"")
	w.answers(t, "503")
	w.says(t, "imagePullSecret registry")
	secret := func(namespace string) {
		auths := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, l.Host(), login)
		put(t, w.dir+"/config/secret-"+namespace+".yaml", fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: registry, namespace: %s}\n"+
			"type: kubernetes.io/dockerconfigjson\ndata: {.dockerconfigjson: %s}\n", namespace, base64.StdEncoding.EncodeToString([]byte(auths))))
	}
	secret("other")
	w.plugin(t, "other", "header", l.Host()+"/team/header:1")
	w.says(t, "WasmPlugin/other/header", "credential not found")
	w.answers(t, "503")
	secret("shop")
	w.answers(t, "200 one!")
	// What one namespace has fetched with its Secret another one has not without.
	w.plugin(t, "other", "pinned", l.Host()+"/team/header@"+one.Digest.String())
	w.says(t, "WasmPlugin/other/pinned", "credential not found")
	// A digest that isn't that of the image leaves what there is.
	w.plugin(t, "shop", "header", l.Host()+"/team/header:1", "imagePullSecret: registry", "sha256: \""+strings.Repeat("0", 64)+"\"")
	w.says(t, "it is not the one that sha256 names")
	w.answers(t, "200 one!")
	image(t, l, "2", module(t, "two!", 0))
	w.plugin(t, "shop", "header", l.Host()+"/team/header:2", "imagePullSecret: registry")
	w.answers(t, "200 two!")
	if strings.Contains(w.Log(), login) || strings.Contains(w.Log(), "a-word-that") {
		t.Error("the log has the password")
	}
}
