package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3" // what the patch adds
	"google.golang.org/protobuf/types/known/anypb"
)

// TestPatchOverBothCarriers runs examples/patch-header as a process and as a WASM module, with the
// demo's plugin set: proxies get the same listeners, and responses through an Envoy carry the
// header.
func TestPatchOverBothCarriers(t *testing.T) {
	t.Parallel()
	w := newPatchWorld(t)
	want := w.patched(t, "process: {command: ./patch-header}")
	got := w.patched(t, "wasm: {path: patch-header.wasm}")
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d listeners from the module, %d from the process", len(got), len(want))
	}
	for n := range got {
		if !bytes.Equal(got[n].Value, want[n].Value) {
			t.Errorf("listener %d differs:\n%s\n%s", n, got[n].Value, want[n].Value)
		}
	}
}

// patchWorld is a service behind a gateway, and the patch in both forms.
type patchWorld struct {
	*configuration
	programs, set string
}

func newPatchWorld(t *testing.T) *patchWorld {
	t.Helper()
	envoy.Binary(t) // or skip
	set, err := os.ReadFile("../../examples/demo/plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := &patchWorld{programs: t.TempDir(), set: string(set), configuration: &configuration{
		dir: t.TempDir(), WebPort: wait.Port(t), GatewayPort: wait.Port(t), Weight1: 50, Weight2: 50,
		V1: []*mesh.Backend{mesh.NewBackend(t, "v1")}, V2: []*mesh.Backend{mesh.NewBackend(t, "v2")},
	}}
	w.write(t, "gateway.yaml", "web.yaml", "routes.yaml")
	compile(t, filepath.Join(w.programs, "patch-header"), "patch-header")
	compile(t, filepath.Join(w.programs, "patch-header.wasm"), "patch-header", "GOOS=wasip1", "GOARCH=wasm")
	return w
}

// patched serves with the patch over some carrier, checks that an Envoy's answers carry the header,
// and returns the gateway's listeners.
func (w *patchWorld) patched(t *testing.T, carrier string) []*anypb.Any {
	t.Helper()
	const demo = "wasm: {path: ../../.cache/patch-header.wasm}"
	if !strings.Contains(w.set, demo) {
		t.Fatalf("the demo's plugin set has no %s", demo)
	}
	file := filepath.Join(w.programs, "plugins.yaml")
	place(t, file, strings.ReplaceAll(w.set, demo, carrier))
	plane := mesh.Start(t, program, w.dir, "--plugins", file)
	defer plane.Kill()
	plane.Ready(t)
	admin := wait.Address(t)
	bootstrap := plane.Bootstrap(t, "--name", "gateway", "--namespace", "test", "--type", "router", "--ip", "127.0.0.21",
		"--labels", "istio=ingressgateway", "--admin", admin)
	gateway := envoy.Start(t, "gateway", admin, bootstrap)
	defer gateway.Stop()
	gateway.Ready(t)
	wait.For(t, "an answer with the header", func() error { return header(local(w.GatewayPort)) })
	for _, line := range gateway.Unhappy(t) {
		t.Error(line)
	}
	return plane.Fetch(t, bootstrap, listeners)
}

// header reports whether an answer at an address has the patch's header.
func header(address string) error {
	r, err := http.NewRequest(http.MethodGet, "http://"+address+"/api", nil)
	if err != nil {
		return err
	}
	r.Host = "web.example"
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if got := resp.Header.Get("x-patched-by"); resp.StatusCode != http.StatusOK || got != "coxswain" {
		return fmt.Errorf("%s, x-patched-by: %q", resp.Status, got)
	}
	return nil
}
