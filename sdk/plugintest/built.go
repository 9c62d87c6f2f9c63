//go:build !wasip1

package plugintest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/process"
)

// Built builds the Go package of a folder as a process plugin and as a WASM module, and returns
// both to be run. Modules run in the coxswain binary that COXSWAIN_PROGRAM names or that is in
// PATH; where there is none, the module is built, and the log says that it isn't run.
func Built(t *testing.T, folder string) []Target {
	t.Helper()
	dir := t.TempDir()
	program, module := filepath.Join(dir, "plugin"), filepath.Join(dir, "plugin.wasm")
	build(t, folder, program)
	build(t, folder, module, "GOOS=wasip1", "GOARCH=wasm")
	targets := []Target{Process(process.Command{Path: program})}
	runner := os.Getenv("COXSWAIN_PROGRAM")
	if runner == "" {
		runner, _ = exec.LookPath("coxswain")
	}
	if runner == "" {
		t.Log("the module is not run: there is no coxswain, neither in PATH nor as COXSWAIN_PROGRAM")
		return targets
	}
	runner, err := filepath.Abs(runner)
	if err != nil {
		t.Fatal(err)
	}
	return append(targets, Module(runner, module, filepath.Join(os.TempDir(), "coxswain-plugintest")))
}

func build(t *testing.T, folder, to string, env ...string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", to, ".")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", folder, err, out)
	}
}
