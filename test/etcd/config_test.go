package etcd_test

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

func dns(host string) string {
	return fmt.Sprintf("{hosts: [%s.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}", host)
}

// TestConfig: proxies follow Istio's resources of an etcd: made, changed, mistaken, mended,
// deleted; while it is away, after a compaction, and when it comes back with nothing.
func TestConfig(t *testing.T) {
	t.Parallel()
	s := etcd.Start(t)
	object(t, s, "ServiceEntry", "a", dns("a"))
	object(t, s, "ServiceEntry", "b", dns("b"))
	object(t, s, "ServiceEntry", "c", dns("c"))
	p := plane(t, set(t, fmt.Sprintf("  - {name: resources, kind: config, builtin: config/etcd, config: {endpoints: [\"http://%s\"]}}\n", s.Address)))
	hasCluster(t, p, "outbound|80||a.example", true)
	object(t, s, "ServiceEntry", "a", dns("aa"))
	hasCluster(t, p, "outbound|80||aa.example", true)
	hasCluster(t, p, "outbound|80||a.example", false)

	object(t, s, "ServiceEntry", "a", "{hosts: [], ports: []}")
	shows(t, p, "etcd:"+resources+"networking.istio.io/ServiceEntry/shop/a", "spec.hosts")
	hasCluster(t, p, "outbound|80||aa.example", true)
	object(t, s, "ServiceEntry", "a", dns("a"))
	hasCluster(t, p, "outbound|80||a.example", true)

	s.Down()
	logged(t, p, "etcd can't be reached")
	s.Up(t)
	s.Delete(t, resources+"networking.istio.io/ServiceEntry/shop/b")
	hasCluster(t, p, "outbound|80||b.example", false)
	s.Compact(t)
	object(t, s, "ServiceEntry", "d", dns("d"))
	hasCluster(t, p, "outbound|80||d.example", true)

	// Another etcd at its address, without anything: that much is held.
	s.Empty(t)
	logged(t, p, "this is another etcd")
	logged(t, p, "coxswain hold show resources")
	hasCluster(t, p, "outbound|80||a.example", true)
	for _, name := range []string{"a", "c", "d"} {
		object(t, s, "ServiceEntry", name, dns(name))
	}
	object(t, s, "ServiceEntry", "e", dns("e"))
	hasCluster(t, p, "outbound|80||e.example", true)
	hasCluster(t, p, "outbound|80||a.example", true)
}

// TestConfigIsDropped: resources of an etcd that is away for longer than onLoss allows go, whatever
// proxies lose, and come back with it.
func TestConfigIsDropped(t *testing.T) {
	t.Parallel()
	s := etcd.Start(t)
	object(t, s, "ServiceEntry", "a", dns("a"))
	object(t, s, "ServiceEntry", "b", dns("b"))
	p := plane(t, set(t,
		fmt.Sprintf("  - {name: resources, kind: config, builtin: config/etcd, onLoss: {drop-after: 2s}, config: {endpoints: [\"http://%s\"]}}\n", s.Address)))
	hasCluster(t, p, "outbound|80||a.example", true)
	for range 2 {
		p.Away(t, "resources")
		s.Down()
		p.Away(t, "resources", "its rows ")
		hasCluster(t, p, "outbound|80||a.example", false)
		hasCluster(t, p, "outbound|80||b.example", false)
		logged(t, p, "a plugin's rows are dropped")
		s.Up(t)
		hasCluster(t, p, "outbound|80||a.example", true)
		hasCluster(t, p, "outbound|80||b.example", true)
	}
	if strings.Contains(p.Log(), "much would go at once") {
		t.Error("it was held")
	}
}

// shows waits until `coxswain config` has all words in a line.
func shows(t *testing.T, p *mesh.Plane, words ...string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("coxswain config says %q", words), func() error {
		out, _ := exec.Command(program, "config", "--addr", p.HTTP).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			found := true
			for _, word := range words {
				found = found && strings.Contains(line, word)
			}
			if found {
				return nil
			}
		}
		return fmt.Errorf("it says:\n%s", out)
	})
}

func logged(t *testing.T, p *mesh.Plane, what string) {
	t.Helper()
	wait.For(t, "the log says "+what, func() error {
		if !strings.Contains(p.Log(), what) {
			return fmt.Errorf("%s", p.LastLines(5))
		}
		return nil
	})
}

// TestSourcesBesideEachOther: of two sources with the same object the first in plugins.yaml counts,
// whatever comes when, and the other one once that has it no more. Of two that take writes none is
// asked, until one says that it doesn't.
func TestSourcesBesideEachOther(t *testing.T) {
	t.Parallel()
	s := etcd.Start(t)
	object(t, s, "ServiceEntry", "same", dns("of-etcd"))
	dir := t.TempDir()
	file := filepath.Join(dir, "same.yaml")
	put(t, file, "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: same, namespace: shop}\nspec: "+dns("of-files")+"\n---\n"+
		"apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: stays, namespace: shop}\nspec: "+dns("stays")+"\n")
	controller := filepath.Join(t.TempDir(), "seen")
	if out, err := exec.Command("go", "build", "-o", controller, "../../examples/controller-seen").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	plugins := set(t, fmt.Sprintf(`
  - {name: resources, kind: config, builtin: config/etcd, config: {endpoints: ["http://%[1]s"]}}
  - {name: others, kind: config, builtin: config/etcd, config: {endpoints: ["http://%[1]s"], prefix: /others/}}
  - {name: seen, kind: controller, process: {command: %[2]q}, insecure: true, allow: {store: [networking.istio.io/ServiceEntry]}}
`, s.Address, controller))
	p := mesh.Start(t, program, dir, "--plugins", plugins)
	p.Ready(t)
	hasCluster(t, p, "outbound|80||of-files.example", true) // files come first in the set
	hasCluster(t, p, "outbound|80||of-etcd.example", false)
	logged(t, p, "plugins resources and others all take writes")

	text, err := os.ReadFile(plugins)
	if err != nil {
		t.Fatal(err)
	}
	put(t, plugins, strings.Replace(string(text), "prefix: /others/", "prefix: /others/, writes: false", 1))
	status := func() string {
		r, err := s.Client.Get(t.Context(), resources+"networking.istio.io/ServiceEntry/shop/same")
		if err != nil || len(r.Kvs) == 0 {
			t.Fatal(r, err)
		}
		return string(r.Kvs[0].Value)
	}
	put(t, file, "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: stays, namespace: shop}\nspec: "+dns("stays")+"\n")
	hasCluster(t, p, "outbound|80||of-etcd.example", true)
	wait.For(t, "its status says that it was seen", func() error {
		if text := status(); !strings.Contains(text, "example.com/Seen") || !strings.Contains(text, "of-etcd.example") {
			return fmt.Errorf("it is %s", text)
		}
		return nil
	})
}
