package mesh

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/process"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
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

// modules makes the directory of compiled modules.
func modules() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "coxswain", "modules")
	return dir, os.MkdirAll(dir, 0o700)
}

// Compile compiles a module into the cache that runtime directories share, by a program without the
// race detector: with it a module takes ten times as long, and what comes of it is the same.
func Compile(t testing.TB, module string) {
	t.Helper()
	if !Race {
		return
	}
	cache, err := modules()
	if err != nil {
		t.Fatal(err)
	}
	l, err := process.Launch(process.Command{
		Path: PlainProgram(t), Args: []string{"wasm-runner", "-module", module, "-cache", cache}, Stderr: io.Discard, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Stop()
	core := session.NewCore(l)
	if err := core.Send(t.Context(), &pb.FromCore{Hello: &pb.Hello{Versions: []uint32{session.Version}, Instance: filepath.Base(module), Limits: &pb.Limits{}}}); err != nil {
		t.Fatal(err)
	}
	for {
		m, _, err := core.Recv(t.Context())
		if err != nil { // one may end that is granted nothing; what can't be compiled is seen where it is used
			t.Logf("%s, once compiled: %v", module, err)
			return
		}
		if m.Progress == nil { // it runs
			return
		}
	}
}
