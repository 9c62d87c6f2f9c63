package sdk_test

import (
	"os"
	"os/exec"
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
