// Package migration runs examples/migration by `make migration`, as a user does, and moves the service's calls from Dubbo
// on ZooKeeper to its successor on Consul, step by step, while a client of its own calls all the time: no call may fail.
// The demo's ports are fixed, so that it has a network namespace of its own.
package migration

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/envoy"
	"github.com/coxswain-mesh/coxswain/test/need"
	"github.com/coxswain-mesh/coxswain/test/netns"
	"github.com/coxswain-mesh/coxswain/test/zookeeper"
)

func TestMain(m *testing.M) {
	netns.Main()
	if len(os.Args) > 4 && os.Args[1] == "visit" {
		visit(os.Args[2], os.Args[3], os.Args[4:])
		return
	}
	os.Exit(m.Run())
}

func TestMigration(t *testing.T) {
	need.All(t) // it needs Consul, which takes minutes to build
	envoy.Binary(t)
	zookeeper.Lib(t)
	root, dir := envoy.Root(t), t.TempDir()
	for _, tool := range []string{"make", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			need.Missing(t, "no %s, which the demo needs: install it", tool)
		}
	}
	short, err := os.MkdirTemp("", "cox") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	served := filepath.Join(dir, "served")
	cmd := netns.Command(t, self, "visit", root, served, "make", "--no-print-directory", "-C", root, "migration", "MIGRATION_DIR="+served)
	// What a make around this test says to its own children is not for this one.
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+short, "MAKEFLAGS=", "MAKELEVEL=", "MFLAGS=")
	raw, err := cmd.CombinedOutput()
	out := string(raw)
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
		logs, _ := filepath.Glob(filepath.Join(served, "*.log"))
		for _, log := range logs {
			b, _ := os.ReadFile(log)
			t.Logf("%s:\n%s", filepath.Base(log), b[max(0, len(b)-4000):])
		}
	}
	for _, step := range []string{"1/4 building", "starting ZooKeeper and Consul", "waiting until the service serves", "Ctrl-C stops everything", "calls in all, 0 failed", "stopping"} {
		_, rest, found := strings.Cut(out, step)
		if !found {
			t.Fatalf("it does not say %q where it should", step)
		}
		out = rest
	}
}

// TestWeights: what `make migration-to` refuses leaves the routes as they are.
func TestWeights(t *testing.T) {
	root, dir := envoy.Root(t), t.TempDir()
	program := filepath.Join(dir, "migration")
	if out, err := exec.Command("go", "build", "-o", program, "../../examples/migration").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.CopyFS(filepath.Join(dir, "config"), os.DirFS(filepath.Join(root, "examples/migration/config"))); err != nil {
		t.Fatal(err)
	}
	weights := func() (all []string) {
		f, err := os.Open(filepath.Join(dir, "config", "routes.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if line := strings.TrimSpace(lines.Text()); strings.HasPrefix(line, "weight:") {
				all = append(all, line)
			}
		}
		return all
	}
	for _, step := range []struct {
		args []string
		ok   bool
		want string
	}{
		{[]string{"to", "25"}, true, "weight: 75 # ZooKeeper weight: 25 # Consul"},
		{[]string{"to", "101"}, false, "weight: 75 # ZooKeeper weight: 25 # Consul"},
		{[]string{"to", "all"}, false, "weight: 75 # ZooKeeper weight: 25 # Consul"},
		{[]string{"from"}, false, "weight: 75 # ZooKeeper weight: 25 # Consul"},
		{[]string{"to", "100"}, true, "weight: 0 # ZooKeeper weight: 100 # Consul"},
		{[]string{"to", "0"}, true, "weight: 100 # ZooKeeper weight: 0 # Consul"},
	} {
		out, err := exec.Command(program, append([]string{"-dir", dir}, step.args...)...).CombinedOutput()
		if got := strings.Join(weights(), " "); (err == nil) != step.ok || got != step.want {
			t.Errorf("%v: %v %s: %s", step.args, err, out, got)
		}
	}
}
