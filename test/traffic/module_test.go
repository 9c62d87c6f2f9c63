package traffic

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/scenario"
)

// module compiles testdata/module, a filter for Envoy, and returns where it is; empty where there
// is no compiler.
func module(t *testing.T) string {
	t.Helper()
	python := filepath.Join(envoy.Root(t), ".cache", "venv", "bin", "python")
	if exec.Command(python, "-c", "import ziglang").Run() != nil {
		return ""
	}
	path := filepath.Join(t.TempDir(), "header.wasm")
	compile := exec.Command(python, "-m", "ziglang", "cc", "-target", "wasm32-freestanding", "-nostdlib", "-Os", "-Wall", "-Wextra", "-Werror",
		"-Wl,--no-entry", "-s", "-o", path, "testdata/module/header.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// playable leaves scenarios out that need a module which can't be compiled.
func playable(t *testing.T, all []scenario.Scenario, module string) []scenario.Scenario {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(all), func(s scenario.Scenario) bool {
		out := module == "" && strings.Contains(s.Config, "{{.Module}}")
		if out {
			t.Logf("skipped: %s: no ziglang in .cache/venv to compile its module: make languages", s.Name)
		}
		return out
	})
}
