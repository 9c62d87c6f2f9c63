package program

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// Registry starts a registry of images, which keeps what it gets in a folder of the test's, and
// returns its address; it speaks without TLS.
func Registry(t testing.TB) string {
	t.Helper()
	tool := filepath.Join(Built(t, "test/artifacts/servers", "registry", "registry"), "registry")
	dir, addr := t.TempDir(), wait.Address(t)
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/kept}}\nhttp: {addr: %q}\n", dir, addr)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	running := Start(t, exec.Command(tool, "serve", config))
	wait.For(t, "the registry answers", func() error {
		if !running.Runs() {
			t.Fatalf("the registry has ended: %s", running.Last())
		}
		r, err := http.Get("http://" + addr + "/v2/")
		if err != nil {
			return err
		}
		return r.Body.Close()
	})
	return addr
}
