package xds_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/etcd"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestFirstWins: of two sources with the same object the first in plugins.yaml counts, whatever
// comes when, and the other one's once that has it no more. Here xDS, etcd and files, in this
// order; who writes is etcd, for it alone takes writes.
func TestFirstWins(t *testing.T) {
	t.Parallel()
	s := newServer(t,
		map[string]string{"same.yaml": entry("same", "of-xds"), "stays.yaml": entry("stays", "stays"), "stays-too.yaml": entry("stays-too", "stays-too")})
	e := etcd.Start(t)
	const key = "/coxswain/config/networking.istio.io/ServiceEntry/shop/same"
	e.Put(t, key, strings.TrimSuffix(entry("same", "of-etcd"), "---\n"))
	controller := filepath.Join(t.TempDir(), "seen")
	if out, err := exec.Command("go", "build", "-o", controller, "../../examples/controller-seen").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "same.yaml"), entry("same", "of-files"))
	text, err := os.ReadFile("../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first := source(fmt.Sprintf("address: %q, maxRetry: 1s", s.XDS)) +
		fmt.Sprintf("  - {name: resources, kind: config, builtin: config/etcd, config: {endpoints: [\"http://%s\"]}}\n", e.Address)
	last := fmt.Sprintf("  - {name: seen, kind: controller, process: {command: %q}, insecure: true, allow: {store: [networking.istio.io/ServiceEntry]}}\n",
		controller)
	plugins := filepath.Join(t.TempDir(), "plugins.yaml")
	before, after, _ := strings.Cut(string(text), "plugins:\n")
	write(t, plugins, before+"plugins:\n"+first+after+last)
	p := mesh.Start(t, program, dir, "--plugins", plugins)
	p.Ready(t)

	only := func(host string) {
		t.Helper()
		for _, other := range []string{"of-xds", "of-etcd", "of-files"} {
			hasCluster(t, p, other, other == host)
		}
	}
	only("of-xds")
	// What is written is written to etcd, be it another one that is served.
	wait.For(t, "the object in etcd has the status", func() error {
		r, err := e.Client.Get(t.Context(), key)
		if err != nil || len(r.Kvs) == 0 || !strings.Contains(string(r.Kvs[0].Value), "example.com/Seen") {
			return fmt.Errorf("%v, %v", r, err)
		}
		return nil
	})
	e.Put(t, key, strings.TrimSuffix(entry("same", "of-etcd"), "---\n")+"# again")
	only("of-xds")
	s.remove(t, "same.yaml")
	only("of-etcd")
	e.Delete(t, key)
	only("of-files")
	s.put(t, "same.yaml", entry("same", "of-xds"))
	only("of-xds")
}
