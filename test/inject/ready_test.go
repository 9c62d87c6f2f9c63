package inject

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// orderedSet has a source for which the first revision waits, and one that proxies aren't to be
// served without.
const orderedSet = `plugins:
- {name: far, kind: registry, builtin: registry/eureka, config: {servers: ["%s"], interval: 1s, allowEmpty: true}}
- {name: files, kind: config, builtin: config/file, config: {dir: config}, onFailure: block}
- {name: ca, kind: controller, builtin: controller/ca, config: {keep: file, file: ca.pem, distribute: nowhere}}
- name: injector
  kind: controller
  builtin: controller/injector
  config: {from: files, configFile: inject.yaml, nativeSidecars: "true"}
- {name: validator, kind: controller, builtin: controller/validator}
`

// TestReadinessInOrder: as with istiod the page /ready is there from the beginning, and says why
// not: a source has said nothing yet; there is no certificate. The webhook port is closed until
// then, and is open once /ready is 200. What follows doesn't close it: while the injector has no
// settings, or has gone, pods are refused with why, and objects are judged; while a plugin is away
// that blocks, /ready says so and webhooks answer.
func TestReadinessInOrder(t *testing.T) {
	o := newOrdered(t)
	o.unready(t, "a source has said nothing", "far")
	o.closed(t)
	o.far.Store(true)
	o.unready(t, "there is no certificate", "certificate of port")
	o.closed(t)

	if err := os.Remove(filepath.Join(o.dir, "ca.pem")); err != nil {
		t.Fatal(err)
	}
	o.plane.Ready(t)
	o.open(t, "it is ready") // at once
	o.refuses(t, "there are no settings", "what is to be injected can't be used")
	o.put(t, "inject.yaml", "policy: enabled\n")
	o.injects(t, "there are settings")

	wait.For(t, "a plugin that blocks is away", func() error {
		if is := o.plane.Plugins(t)["files"]; is.PID > 0 {
			_ = syscall.Kill(is.PID, syscall.SIGKILL) // it may have ended since
		}
		return o.says("plugin files is away")
	})
	o.open(t, "a plugin that blocks is away")
	o.plane.Ready(t)

	hung := o.plane.Signal(t, "injector", syscall.SIGSTOP)
	t.Cleanup(func() { _ = syscall.Kill(hung.PID, syscall.SIGKILL) })
	o.refuses(t, "the injector hangs", "")
	o.open(t, "the injector hangs")
	if _, err := o.plane.Get("/ready"); err != nil {
		t.Errorf("the injector hangs, and /ready says %v", err)
	}
	code, text, err := o.ask("/validate", []byte(object))
	if code != http.StatusOK || err != nil || !strings.Contains(text, "http, tcp or tls must be provided") {
		t.Errorf("the injector hangs, and an object is judged %d %s %v", code, text, err)
	}
	if err := syscall.Kill(hung.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o.injects(t, "the injector was killed")
}

// object is a review of a VirtualService without routes.
const object = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"7","operation":"CREATE","object":{` +
	`"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"a","namespace":"shop"},"spec":{"hosts":["a"]}}}}`

// ordered is a control plane that becomes ready step by step.
type ordered struct {
	plane  *mesh.Plane
	dir    string
	at     string
	client *http.Client
	pod    []byte
	far    atomic.Bool // the source answers
}

func newOrdered(t *testing.T) *ordered {
	t.Helper()
	o := &ordered{dir: t.TempDir(), at: wait.Address(t), client: from(t, "127.0.0.1"), pod: podReview(t, "shop", nil, nil)}
	if err := os.Mkdir(filepath.Join(o.dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !o.far.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"applications": {"versions__delta": "1", "apps__hashcode": "", "application": []}}`)
	}))
	t.Cleanup(far.Close)
	o.put(t, "plugins.yaml", fmt.Sprintf(orderedSet, far.URL))
	o.put(t, "ca.pem", "no key\n")
	o.plane = mesh.Start(t, binary, "", "--plugins", filepath.Join(o.dir, "plugins.yaml"), "--httpsAddr", o.at)
	return o
}

func (o *ordered) put(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(o.dir, name)
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// says is nil once /ready is 503 with a word.
func (o *ordered) says(word string) error {
	said, err := http.Get("http://" + o.plane.HTTP + "/ready")
	if err != nil {
		return err
	}
	defer func() { _ = said.Body.Close() }()
	text, err := io.ReadAll(said.Body)
	if err == nil && (said.StatusCode != http.StatusServiceUnavailable || !bytes.Contains(text, []byte(word))) {
		err = fmt.Errorf("/ready says %d %s", said.StatusCode, text)
	}
	return err
}

func (o *ordered) unready(t *testing.T, why, word string) {
	t.Helper()
	wait.For(t, "/ready says that "+why, func() error { return o.says(word) })
}

// closed sees that nobody listens at the webhook port.
func (o *ordered) closed(t *testing.T) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", o.at, 5*time.Second)
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the webhook port is open: %v", err)
	}
}

// open sees that the webhook port says so.
func (o *ordered) open(t *testing.T, when string) {
	t.Helper()
	for _, path := range []string{"/httpsReady", "/ready"} {
		said, err := o.client.Get("https://" + o.at + path)
		if err != nil {
			t.Errorf("%s, and the webhook port says %v", when, err)
			continue
		}
		_ = said.Body.Close()
		if said.StatusCode != http.StatusOK {
			t.Errorf("%s, and %s of the webhook port is %s", when, path, said.Status)
		}
	}
}

func (o *ordered) ask(path string, body []byte) (code int, text string, err error) {
	said, err := o.client.Post("https://"+o.at+path+"?timeout=2s", "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = said.Body.Close() }()
	all, err := io.ReadAll(said.Body)
	return said.StatusCode, string(all), err
}

// refuses sees that a review of a pod fails, for which an API server does what the failure policy
// says.
func (o *ordered) refuses(t *testing.T, when, why string) {
	t.Helper()
	code, text, err := o.ask("/inject", o.pod)
	if err != nil || code != http.StatusServiceUnavailable && code != http.StatusGatewayTimeout || !strings.Contains(text, why) {
		t.Errorf("%s, and a pod is answered %d %s %v", when, code, text, err)
	}
}

func (o *ordered) injects(t *testing.T, when string) {
	t.Helper()
	wait.For(t, "pods get proxies once "+when, func() error {
		code, text, err := o.ask("/inject", o.pod)
		if err == nil && (code != http.StatusOK || !strings.Contains(text, `"patch":`)) {
			err = fmt.Errorf("%d %s", code, text)
		}
		return err
	})
}
