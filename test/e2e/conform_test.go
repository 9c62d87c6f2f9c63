package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// oneEach makes a folder's file have so many resources, $1.
const oneEach = `awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "---\napiVersion: extensions.istio.io/v1alpha1\nkind: WasmPlugin\nmetadata: {name: w%%d, namespace: d}\nspec: {url: \"oci://example.com/w\"}\n", i }' > %[1]s.new && mv %[1]s.new %[1]s`

// TestBuiltinsConform runs the suite that others' plugins are tried with against those that come
// with the program, as the processes that they are.
func TestBuiltinsConform(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		place(t, path, text)
		return path
	}
	resources := filepath.Dir(file("resources/all.yaml", ""))
	for _, c := range []struct {
		name    string
		skipped int
		args    []string
	}{
		{"registry/memory", 4, []string{"--badConfig", `{"services": 1}`, "--config",
			`{"services": [{"host": "a.example", "ports": [{"number": 80, "protocol": "HTTP"}], "endpoints": [{"address": "127.0.0.1", "port": 8080}]}]}`}},
		{"registry/serviceentry", 2, nil},
		{"config/file", 0, []string{"--many", "1000", "--config", fmt.Sprintf(`{"dir": %q}`, resources), "--source", fmt.Sprintf(oneEach, filepath.Join(resources, "all.yaml")), "--badConfig", `{}`}},
		{"config/mesh", 4, []string{"--config", fmt.Sprintf(`{"meshConfig": %q}`, file("mesh.yaml", "{}"))}},
		{"config/jwks", 5, nil},
		{"config/modules", 5, nil},
		{"generator/grpc", 1, nil},
		{"generator/istio", 1, nil},
		{"generator/static", 4, []string{"--config", fmt.Sprintf(`{"dir": %q}`, filepath.Dir(file("static/a.yaml", ""))), "--badConfig", `{}`}},
		{"generator/api", 2, []string{"--config", `{"authentication": false}`}},
		{"authenticator/certificate", 0, nil},
		{"authenticator/token", 0, []string{"--token", "9f1c2a7e0b6d4c35a8e1", "--config", fmt.Sprintf(`{"file": %q}`,
			file("tokens.yaml", "tokens: [{token: 9f1c2a7e0b6d4c35a8e1, identities: [spiffe://cluster.local/ns/shop/sa/web]}]"))}},
		{"patch/mosn", 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			kind, _, _ := strings.Cut(c.name, "/")
			args := append([]string{"plugins", "test", program, "--kind", kind, "--many", "5000", "--env", "GORACE"}, c.args...)
			out, err := exec.Command(program, append(args, "--", "plugin", c.name)...).CombinedOutput()
			text := string(out)
			if skipped := strings.Count(text, "\nskip "); err != nil || !strings.Contains(text, " 0 failed, ") || skipped > c.skipped {
				t.Errorf("%v, %d cases were skipped, at most %d may be\n%s", err, skipped, c.skipped, text)
			}
		})
	}
}
