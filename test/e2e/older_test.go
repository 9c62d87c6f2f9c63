package e2e

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc/codes"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// olderSet has a plugin of each kind, all of one module: it is of the kind whose variable it may
// see.
const olderSet = `
plugins:
- {name: source, kind: registry, wasm: {path: older.wasm, allow: {env: [OLDER_REGISTRY]}}, insecure: true}
- {name: greetings, kind: config, wasm: {path: older.wasm, allow: {env: [OLDER_CONFIG]}}, insecure: true, config: {hello: world}}
- {name: deriver, kind: registry, wasm: {path: older.wasm, allow: {env: [OLDER_DERIVER]}}, insecure: true}
- {name: counter, kind: controller, wasm: {path: older.wasm, allow: {env: [OLDER_CONTROLLER]}}, insecure: true}
- {name: clusters, kind: generator, wasm: {path: older.wasm, allow: {env: [OLDER_GENERATOR]}}, insecure: true}
- {name: timeout, kind: patch, wasm: {path: older.wasm, allow: {env: [OLDER_PATCH]}}, insecure: true}
- {name: door, kind: authenticator, wasm: {path: older.wasm, allow: {env: [OLDER_AUTHENTICATOR]}}, insecure: true}
`

// TestOlderPlugins: a program that was built with the SDK as it was before plugins were declared by
// kind runs as each kind, and all that they say is taken: rows, derived rows, resources, changes to
// them, identities, refusals and lines of the log. It shows nothing of engines, writes and calls,
// which the program doesn't have.
func TestOlderPlugins(t *testing.T) {
	for _, kind := range []string{"REGISTRY", "CONFIG", "DERIVER", "CONTROLLER", "GENERATOR", "PATCH", "AUTHENTICATOR"} {
		t.Setenv("OLDER_"+kind, "1")
	}
	module := unpacked(t, "testdata/older/older.wasm.gz")
	file := filepath.Join(t.TempDir(), "older.wasm")
	place(t, file, module)
	mesh.Compile(t, file)
	g := guardWith(t, olderSet, map[string]string{"older.wasm": module}, "--authPlaintext")
	g.refuses("stranger", codes.Unauthenticated, "door: the token is unknown")
	_, r, err := g.open("sesame")
	if err != nil || len(r.Resources) != 1 {
		t.Fatalf("%v, %v", r, err)
	}
	var c clusterv3.Cluster
	if err := r.Resources[0].UnmarshalTo(&c); err != nil {
		t.Fatal(err)
	}
	if c.Name != "default/older.example.com" || c.ConnectTimeout.GetSeconds() != 2 {
		t.Errorf("%v", &c)
	}
	rows := map[string]int{"source": 2, "greetings": 1, "deriver": 1}
	wait.For(t, "all have published", func() error {
		for name, p := range g.Plugins(t) {
			if p.State != "serving" || p.Restarts > 0 || p.Rows != rows[name] {
				return fmt.Errorf("%+v", p)
			}
		}
		return nil
	})
	wait.For(t, "the controller counts", func() error {
		if !strings.Contains(g.Log(), "count=1") {
			return fmt.Errorf("the log has no line of it")
		}
		return nil
	})
}

func unpacked(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
