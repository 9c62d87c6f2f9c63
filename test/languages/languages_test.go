package languages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// program is the path of the binary under test, as users have it: plugins and runner of modules are
// what is tested here, and the race detector makes modules many times slower.
var program string

func TestMain(m *testing.M) {
	mesh.Plain(&program, m.Run)
}

// python returns the interpreter of the tools' environment, which has a module in it.
func python(t *testing.T, module string) string {
	t.Helper()
	path, err := filepath.Abs("../../.cache/venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(path, "-c", "import "+module).Run(); err != nil {
		need.Missing(t, "no %s in .cache/venv: run make languages", module)
	}
	return path
}

// conforms runs the suite and wants every case but those that may be skipped to pass.
func conforms(t *testing.T, skipped int, args ...string) {
	t.Helper()
	out, err := exec.Command(program, append([]string{"plugins", "test"}, args...)...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf(" 0 failed, %d skipped", skipped)) {
		t.Errorf("%v\n%s", err, out)
	}
}

// fill writes a CSV file of so many endpoints, $1, beside and renames it.
const fill = `awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "s%%d.example,80,127.%%d.%%d.%%d,8080\n", i/10, ` +
	`i/65536%%256, i/256%%256, i%%256 }' > %[1]s.new && mv %[1]s.new %[1]s`

func TestPythonProcess(t *testing.T) {
	interpreter := python(t, "grpc")
	csv := filepath.Join(t.TempDir(), "services.csv")
	if err := os.WriteFile(csv, []byte("a.example,80,127.0.0.1,8080\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	conforms(t, 0, interpreter, "--kind", "registry", "--config", fmt.Sprintf(`{"file": %q}`, csv), "--source", fmt.Sprintf(fill, csv),
		"--badConfig", `{}`, "--badConfig", `{"file": "/nowhere"}`, "--", "../../examples/registry-csv-python/registry.py")
}

func TestCModule(t *testing.T) {
	module := filepath.Join(t.TempDir(), "patch.wasm")
	compile := exec.Command(python(t, "ziglang"), "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-Os", "-Wall", "-Wextra", "-Werror", "-s", "-o", module,
		"../../examples/patch-timeout-c/patch.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	conforms(t, 0, module, "--kind", "patch")
}

// rustc returns the environment that has Debian's compiler for WASI.
func rustc(t *testing.T) []string {
	t.Helper()
	dir, err := filepath.Abs("../../.cache/rust/usr")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "bin/rustc")); err != nil {
		need.Missing(t, "no Rust in .cache/rust: run make languages on Debian 12")
	}
	return []string{
		"PATH=" + filepath.Join(dir, "bin") + ":" + filepath.Dir(program) + ":" + os.Getenv("PATH"),
		"LD_LIBRARY_PATH=" + filepath.Join(dir, "lib/x86_64-linux-gnu"),
	}
}

func TestRustModule(t *testing.T) {
	module := filepath.Join(t.TempDir(), "patch.wasm")
	do(t, "../../examples/patch-timeout-rust", rustc(t), "sh", "-c",
		`exec rustc --edition 2021 -D warnings --target wasm32-wasi -O -C strip=symbols -o "$0" patch.rs`, module)
	conforms(t, 0, module, "--kind", "patch")
}

// What is no plugin fails, in the report for CI too, and the exit status says so.
func TestNoPlugin(t *testing.T) {
	report := filepath.Join(t.TempDir(), "junit.xml")
	out, err := exec.Command(program, "plugins", "test", "/bin/true", "--junit", report).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "FAIL  ready") {
		t.Errorf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(report); err != nil || !strings.Contains(string(text), `failures="1"`) {
		t.Errorf("%v\n%s", err, text)
	}
}
