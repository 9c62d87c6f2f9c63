package mesh

import (
	"os"
	"path/filepath"
	"testing"
)

// RuntimeDir makes an empty runtime directory for what a test starts from now on, and returns its
// path, which is short, as paths of sockets must be. Compiled modules are shared by all tests, in
// the user's cache folder: to compile one takes the race detector many seconds. What lies there is
// executed, so it must be no place that others may make before us.
func RuntimeDir(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(cache, "coxswain", "modules")
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
