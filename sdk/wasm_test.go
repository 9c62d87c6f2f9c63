package sdk_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A WASM plugin links neither the network nor go-plugin: it would double in size.
func TestWASMBuildIsLight(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "../examples/registry-hello")
	list.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, heavy := range []string{"net", "github.com/hashicorp/go-plugin", "google.golang.org/grpc", "google.golang.org/protobuf/proto"} {
		for dep := range strings.FieldsSeq(string(out)) {
			if dep == heavy {
				t.Errorf("it links %s", heavy)
			}
		}
	}
	vet := exec.Command("go", "vet", ".")
	vet.Env = list.Env
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("the SDK does not build as WASM: %s", out)
	}
}

// TestWASMModulesAreSmall: each byte of a module is compiled at its first start, which takes a
// second for 3 MB.
func TestWASMModulesAreSmall(t *testing.T) {
	const most = 3_040_000
	for _, example := range []string{"registry-hello", "patch-header"} {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "module.wasm")
			build := exec.Command("go", "build", "-ldflags=-s -w", "-o", file, "../examples/"+example)
			build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes", info.Size())
			if info.Size() >= most {
				t.Errorf("%d bytes, the most is %d; docs/decisions/wasm-runner.md says what modules are made of", info.Size(), most)
			}
		})
	}
}
