package mesh

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// RuntimeDir makes an empty runtime directory for what a test starts from now on, and returns its
// path, which is short, as paths of sockets must be. Compiled modules are shared by all tests of
// this user, as they are where nothing is set: to compile one takes the race detector many seconds.
func RuntimeDir(t testing.TB) string {
	t.Helper()
	shared := filepath.Join(os.TempDir(), fmt.Sprintf("coxswain-%d", os.Getuid()), "wasm")
	dir, err := os.MkdirTemp("", "cox")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	own := filepath.Join(dir, "coxswain")
	for _, d := range []string{shared, own} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(shared, filepath.Join(own, "wasm")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}
