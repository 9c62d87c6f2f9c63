package secrets

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/leaks"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestSecretsStaySecret: keys in files, good and broken ones, are in no log, page, metric,
// recording, environment or command line, and in the memory of no plugin but those that read and
// serve them.
func TestSecretsStaySecret(t *testing.T) {
	http, https := wait.Port(t), wait.Port(t)
	w := newWorld(t, map[string]string{"gateway.yaml": fill(gateway, "NAMESPACE", "edge", "HTTPPORT", fmt.Sprint(http), "HTTPSPORT", fmt.Sprint(https))})
	m := leaks.Marks{}
	good, other := w.pair(t, "good"), w.pair(t, "other")
	m.Of("the key", good.key)
	m.Of("another's key", other.key)
	block, _ := pem.Decode(good.key)
	m["the key's bytes"] = block.Bytes[len(block.Bytes)/3 : len(block.Bytes)/3+32]
	const broken = "marked-4e1b-neither-base64-nor-PEM-which-is-long-enough-to-be-found-wherever-it-may-stand-in-a-text"
	m.Of("a broken value", []byte(broken))
	files := map[string]string{
		"good.yaml":     good.secret("edge", "web"),
		"mismatch.yaml": pair{good.chain, other.key, nil}.secret("edge", "mismatch"),
		"broken.yaml": fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: broken, namespace: edge}\ndata:\n  tls.crt: %q\n  tls.key: %q\n",
			broken, broken),
		"text.yaml": fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: text, namespace: edge}\nstringData: {tls.crt: %s, tls.key: %s}\n",
			broken, broken),
		"syntax.yaml":    fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: syntax\n  namespace: edge\ndata:\n  tls.key: \"%s\\q\n", broken),
		"annotated.yaml": strings.Replace(good.secret("edge", "annotated"), "metadata: {", fmt.Sprintf("metadata: {annotations: {applied: %q}, ", broken), 1),
	}
	for name, text := range files {
		put(t, filepath.Join(w.dir, name), text)
	}
	e := w.gateway(t, "edge", "web", "delta")
	e.Ready(t)
	good.client(t, https, false).shows(t, good)
	w.says(t, "broken.yaml", "is not in base64")
	w.says(t, "syntax.yaml", "not YAML")
	w.says(t, "mismatch.yaml", "is not the key")

	clean := func(where string, text []byte) {
		t.Helper()
		for _, what := range m.In(text) {
			t.Errorf("%s has %s", where, what)
		}
	}
	w.recordings(t, clean, map[string]string{"files": "edge/web", "sds": "kubernetes://web"})
	good.client(t, https, false).shows(t, good)
	w.pages(t, clean)
	clean("the log", []byte(w.plane.Log()))
	for _, command := range []string{"config", "views", "plugins", "proxy-status"} {
		out, _ := exec.Command(program, command, "--addr", w.plane.HTTP).CombinedOutput()
		if len(out) == 0 {
			t.Errorf("coxswain %s says nothing", command)
		}
		clean("coxswain "+command, out)
	}
	out, _ := exec.Command(program, "validate", w.dir).CombinedOutput()
	if !bytes.Contains(out, []byte("COX1016")) {
		t.Errorf("coxswain validate says %s", out)
	}
	clean("coxswain validate", out)
	w.processes(t, m)
}

// pages looks at what the control plane shows.
func (w *world) pages(t *testing.T, clean func(where string, text []byte)) {
	t.Helper()
	for path, text := range leaks.Pages(t, w.plane.HTTP, "/debug/rowz?table=networking.istio.io/Gateway",
		"/debug/rowz?table=v1/Secret", "/debug/rowz?table=v1/ConfigMap",
		"/debug/config_dump?proxyID=router~127.0.0.21~web-delta.edge~edge.svc.cluster.local") {
		clean(path, text)
	}
	for path, text := range leaks.Monitoring(t, w.plane.Monitoring) {
		clean(path, text)
	}
}

// recordings looks at what plugins that have secrets and the core say to each other, which the
// secret's name, as each has it, is in.
func (w *world) recordings(t *testing.T, clean func(where string, text []byte), plugins map[string]string) {
	t.Helper()
	for name, secret := range plugins {
		clean("the recording of "+name, leaks.Recording(t, program, w.plane.HTTP, name, secret))
	}
}

// processes looks at what /proc shows of each.
func (w *world) processes(t *testing.T, m leaks.Marks) {
	t.Helper()
	look := func(name string, pid int) {
		for _, what := range m.In(leaks.Shown(t, pid)) {
			t.Errorf("what /proc shows of %s has %s", name, what)
		}
	}
	look("the core", w.plane.PID())
	for name, p := range w.plane.Plugins(t) {
		if p.PID == 0 {
			continue
		}
		look(name, p.PID)
		found, err := leaks.Memory(p.PID, m)
		switch {
		case errors.Is(err, os.ErrPermission):
			t.Logf("the memory of %s can't be looked at: %v", name, err)
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case name == "files", name == "sds":
			if len(found) == 0 {
				t.Errorf("%s has no secret in its memory: this test can't see it", name)
			}
		case len(found) > 0:
			t.Errorf("the memory of %s has %q", name, found)
		}
	}
}
