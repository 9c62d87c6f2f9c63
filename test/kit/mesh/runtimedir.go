package mesh

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// RuntimeDir makes an empty runtime directory for what a test starts from now on, and returns its
// path. Without it the tests of a package share one.
func RuntimeDir(t testing.TB) string {
	t.Helper()
	dir, remove, err := runtimeDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	t.Setenv(runtimeVariable, dir)
	return dir
}

// runtimeVariable names the runtime directory to programs.
const runtimeVariable = "XDG_RUNTIME_DIR"

// runtimeDir makes a runtime directory with a short path, as paths of sockets must be. Compiled
// modules are shared by all tests, in the user's cache folder. What lies there is executed, so it
// must be no place that others may make before us.
func runtimeDir() (dir string, remove func(), err error) {
	shared, err := modules()
	if err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp("", "cox")
	if err != nil {
		return "", nil, err
	}
	own := filepath.Join(dir, "coxswain")
	if err = os.Mkdir(own, 0o700); err == nil {
		err = os.Symlink(shared, filepath.Join(own, "wasm"))
	}
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// Remove removes a folder that others write to meanwhile. It is taken away first: what they made
// while its contents are removed would be left.
func Remove(folder string) error {
	away, err := os.MkdirTemp("", "gone")
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(folder, filepath.Join(away, "it")), os.RemoveAll(away))
}
