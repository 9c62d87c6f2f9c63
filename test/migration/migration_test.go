// Package migration runs examples/migration by `make migration`, as a user does, and moves the
// service's calls from Dubbo on ZooKeeper to its successor on Consul, step by step, while a client
// of its own calls all the time: no call may fail.
package migration

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/makerun"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/zookeeper"
)

var demo = makerun.Demo{Target: "migration", Variable: "MIGRATION_DIR", During: walk, Steps: []string{
	"1/4 building", "starting ZooKeeper and Consul", "waiting until the service serves", "Ctrl-C stops everything",
	"calls in all, 0 failed", "stopping",
}}

func TestMain(m *testing.M) {
	demo.Main()
	os.Exit(m.Run())
}

func TestMigration(t *testing.T) {
	need.All(t) // it needs Consul, which takes minutes to build
	zookeeper.Lib(t)
	if _, err := exec.LookPath("mvn"); err != nil {
		need.Missing(t, "no mvn, which the demo needs: install it")
	}
	demo.Run(t)
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
