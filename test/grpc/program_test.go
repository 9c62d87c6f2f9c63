package grpc

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// order is a line that a client of another language reads: calls to make, one after the other.
type order struct {
	Target  string            `json:"target"`
	Calls   int               `json:"calls"`
	Headers map[string]string `json:"headers,omitempty"`
}

// answer is the line that it prints: how often each server answered, and the code of the first call
// that failed, after which it makes no more.
type answer struct {
	From    map[string]int
	Code    codes.Code
	Details string
}

// caller makes calls.
type caller func(t *testing.T, o order) answer

// started starts a client's program. It ends with its standard input, so with the test at the
// latest.
func started(t *testing.T, bootstrap []byte, environ []string, name string, args ...string) caller {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(file, bootstrap, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Env = append(append(os.Environ(), "GRPC_XDS_BOOTSTRAP="+file), environ...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := json.NewDecoder(bufio.NewReader(out))
	return func(t *testing.T, o order) (a answer) {
		t.Helper()
		if err := json.NewEncoder(in).Encode(o); err != nil {
			t.Fatal(err)
		}
		if err := lines.Decode(&a); err != nil {
			t.Fatalf("asked for %+v it ends: %v, %v", o, err, cmd.Wait())
		}
		return a
	}
}

// tool returns the path of something that a target of the Makefile fetches. Without it the test is
// skipped.
func tool(t *testing.T, target string, path ...string) string {
	t.Helper()
	file := filepath.Join(append([]string{envoy.Root(t), ".cache"}, path...)...)
	if _, err := os.Stat(file); err != nil {
		need.Missing(t, "no %s here: `make %s` fetches it", filepath.Join(path...), target)
	}
	return file
}

func interpreter(t *testing.T, name, what string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		need.Missing(t, "no %s to run %s with: install it (%s in PATH)", name, what, name)
	}
	return path
}
