package grpc

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/coxswain-mesh/coxswain/test/envoy"
	"github.com/coxswain-mesh/coxswain/test/need"
	"github.com/coxswain-mesh/coxswain/test/wait"
)

// script is a client of grpc-js.
type script struct {
	in  io.Writer
	out *json.Decoder
}

// result is what it says of calls.
type result struct {
	From    map[string]int
	Code    codes.Code
	Details string
}

// startScript starts one. Without Node.js, or what `make grpc-js` installs, the test is skipped.
func startScript(t *testing.T, bootstrap []byte, target string) *script {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		need.Missing(t, "no Node.js to run grpc-js with: install Node.js (node in PATH)")
	}
	modules := filepath.Join(envoy.Root(t), ".cache", "grpc-js", "node_modules")
	if _, err := os.Stat(modules); err != nil {
		need.Missing(t, "no grpc-js here: `make grpc-js` installs it")
	}
	file := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(file, bootstrap, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "testdata/client.js", "xds:///"+target)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules, "GRPC_XDS_BOOTSTRAP="+file)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
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
	return &script{in, json.NewDecoder(bufio.NewReader(out))}
}

// ask makes calls.
func (s *script) ask(n int) (r result, err error) {
	if _, err := fmt.Fprintln(s.in, n); err != nil {
		return r, err
	}
	if err := s.out.Decode(&r); err != nil {
		return r, err
	}
	if r.Code != codes.OK {
		err = fmt.Errorf("after %v: %v: %s", r.From, r.Code, r.Details)
	}
	return r, err
}

// TestJavaScript: what holds for grpc-go holds for grpc-js, which is another implementation.
// https://github.com/grpc/grpc-node/tree/master/packages/grpc-js-xds
func TestJavaScript(t *testing.T) {
	v1, v2 := start(t, "v1"), start(t, "v2")
	w := newWorld(t, echo(v1, v2), subsets, weights)
	c := startScript(t, bootstrap(t, w.plane.XDS, "javascript", proxyless(), ""), target)
	wait.For(t, "weights share calls", func() error {
		r, err := c.ask(200)
		if err == nil && (r.From["v1"] < 120 || r.From["v1"] > 180) {
			err = fmt.Errorf("%v", r.From)
		}
		return err
	})
	if err := os.Remove(filepath.Join(w.dir, "2.yaml")); err != nil {
		t.Fatal(err)
	}
	w.write(t, "0", echo(v2, 0))
	wait.For(t, "endpoints change", func() error {
		r, err := c.ask(10)
		if names := fmt.Sprint(slices.Sorted(maps.Keys(r.From))); err == nil && names != "[v2]" {
			err = fmt.Errorf("%s", names)
		}
		return err // endpoints may be there before the routes: then a subset has none for a moment
	})
}
