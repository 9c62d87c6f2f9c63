package languages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// do runs a command in a folder, with the program in PATH, and returns what it printed.
func do(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "COXSWAIN_PROGRAM="+program, "COXSWAIN="+program), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// project writes a new project outside of this repository.
func project(t *testing.T, kind, lang string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "my-"+kind)
	args := []string{"plugins", "new", dir, "--kind", kind, "--lang", lang}
	if kind != "registry" { // which gets a copy of the SDK, as without a checkout
		args = append(args, "--sdk", root(t))
	}
	do(t, ".", nil, program, args...)
	return dir
}

// A new project's own test passes at once.
func TestNewGo(t *testing.T) {
	for _, kind := range []string{"registry", "authenticator"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			do(t, project(t, kind, "go"), nil, "make", "all", "test")
		})
	}
	for _, kind := range []string{"config", "generator", "patch", "controller"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := project(t, kind, "go")
			do(t, dir, nil, "make", "go.sum")
			do(t, dir, nil, "go", "vet", ".")
		})
	}
}

func TestNewPython(t *testing.T) {
	interpreter := python(t, "grpc")
	out := do(t, project(t, "registry", "python"), nil, "make", "test", "PYTHON="+interpreter)
	if !strings.Contains(out, " 0 failed, 0 skipped") {
		t.Error(out)
	}
}

func TestNewC(t *testing.T) {
	compiler := python(t, "ziglang") + " -m ziglang cc -target wasm32-wasi"
	out := do(t, project(t, "patch", "c"), nil, "make", "test", "WASI_CC="+compiler)
	if !strings.Contains(out, " 0 failed, 0 skipped") {
		t.Error(out)
	}
}

func TestNewRust(t *testing.T) {
	out := do(t, project(t, "patch", "rust"), rustc(t), "make", "test", "WASI_RUSTC=rustc -D warnings --target wasm32-wasi")
	if !strings.Contains(out, " 0 failed, 0 skipped") {
		t.Error(out)
	}
}

// A copy of an example elsewhere is a working plugin, in both carriers.
func TestCopiedExample(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("../../examples/registry-hello/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	const module = "github.com/coxswain-mesh/coxswain"
	do(t, dir, nil, "go", "mod", "init", "hello")
	do(t, dir, nil, "go", "mod", "edit", "-replace", module+"="+root(t))
	do(t, dir, nil, "go", "mod", "tidy")
	do(t, dir, nil, "go", "build", "-o", "hello")
	do(t, dir, []string{"GOOS=wasip1", "GOARCH=wasm"}, "go", "build", "-ldflags=-s -w", "-o", "hello.wasm")
	for _, plugin := range []string{"hello", "hello.wasm"} {
		// The four cases that change a source are skipped: there is none.
		conforms(t, 4, filepath.Join(dir, plugin), "--kind", "registry")
	}
}
