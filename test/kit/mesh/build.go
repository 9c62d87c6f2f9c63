package mesh

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/process"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Build builds a plugin from a Go package or file; environ makes it a module. A module is the same
// wherever its source lies and at any commit, so that it is compiled once for all tests.
func Build(t testing.TB, to, source string, environ ...string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", to, source)
	cmd.Env = append(os.Environ(), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if slices.Contains(environ, "GOARCH=wasm") {
		Compile(t, to)
	}
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
	if err := core.Send(t.Context(),
		&pb.FromCore{Hello: &pb.Hello{Versions: []uint32{session.Version}, Instance: filepath.Base(module), Limits: &pb.Limits{}}}); err != nil {
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

// modules makes the directory of compiled modules.
func modules() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "coxswain", "modules")
	return dir, os.MkdirAll(dir, 0o700)
}
