package xds_test

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/line"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestConfig: proxies follow the objects of another control plane: made, changed, deleted; while it
// is away, after it was killed, and by a line that is cut or stalls.
func TestConfig(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string]string{"a.yaml": entry("a", "a"), "b.yaml": entry("b", "b"), "c.yaml": entry("c", "c")})
	l := line.New(t, s.XDS)
	p := plane(t, set(t, source("address: \"xds://"+l.Address+"\", keepAlive: 10s, maxRetry: 1s")))
	p.Ready(t)
	hasCluster(t, p, "a", true)
	s.put(t, "a.yaml", entry("a", "aa"))
	hasCluster(t, p, "aa", true)
	hasCluster(t, p, "a", false)
	s.remove(t, "a.yaml")
	hasCluster(t, p, "aa", false)
	shows(t, p, true, "ServiceEntry", "shop/b", "ok", "xds://"+l.Address+"/networking.istio.io/ServiceEntry/shop/b", "source")

	s.Kill()
	shows(t, p, true, "xds://"+l.Address, "the server does not answer", "what is known stays")
	hasCluster(t, p, "b", true)
	p.Signal(t, "source", syscall.SIGKILL) // the plugin dies, too: what it said stays until the one that follows has asked
	wait.For(t, "it is started again", func() error {
		if got := p.Plugins(t)["source"]; got.Restarts == 0 || got.State != "syncing" {
			return fmt.Errorf("it is %s, %d restarts", got.State, got.Restarts)
		}
		return nil
	})
	hasCluster(t, p, "b", true)
	s.put(t, "d.yaml", entry("d", "d"))
	s.Plane = s.Again(t)
	s.Ready(t)
	hasCluster(t, p, "d", true)
	shows(t, p, false, "the server does not answer")

	l.Cut()
	shows(t, p, true, "xds://"+l.Address, "the server does not answer")
	s.put(t, "e.yaml", entry("e", "e"))
	hasCluster(t, p, "d", true)
	l.Open()
	hasCluster(t, p, "e", true)

	l.Stall() // the connection stays open, and nothing comes: the sign of life is missed
	s.put(t, "f.yaml", entry("f", "f"))
	hasCluster(t, p, "f", true)

	// It comes back without anything: that much is held.
	for _, name := range []string{"b.yaml", "c.yaml", "d.yaml", "e.yaml", "f.yaml"} {
		s.remove(t, name)
	}
	s.Kill()
	s.Plane = s.Again(t)
	s.Ready(t)
	logged(t, p, "coxswain hold show source")
	hasCluster(t, p, "b", true)
	if out, err := exec.Command(program, "hold", "apply", "source", "--addr", p.HTTP).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	hasCluster(t, p, "b", false)
}

// TestDropped: objects of a server that is away for longer than onLoss allows go, whatever proxies
// lose, and come back with it; away is also one that is reached and doesn't answer.
func TestDropped(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string]string{"a.yaml": entry("a", "a"), "b.yaml": entry("b", "b")})
	l := line.New(t, s.XDS)
	config := "address: \"" + l.Address + "\", keepAlive: 10s, maxRetry: 1s, wait: 1s"
	p := plane(t, set(t, strings.Replace(source(config), "kind: config,", "kind: config, onLoss: {drop-after: 2s},", 1)))
	p.Ready(t)
	gone := func() {
		t.Helper()
		p.Away(t, "source", "its rows ")
		hasCluster(t, p, "a", false)
		hasCluster(t, p, "b", false)
	}
	back := func() {
		t.Helper()
		hasCluster(t, p, "a", true)
		hasCluster(t, p, "b", true)
		p.Away(t, "source")
	}
	back()
	s.Kill()
	gone()
	s.Plane = s.Again(t)
	s.Ready(t)
	back()
	pid := s.PID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	l.Cut()
	l.Open()
	gone()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	back()
	if strings.Contains(p.Log(), "much would go at once") {
		t.Error("it was held")
	}
}

// TestServerAwayAtTheStart: the start waits for a server that isn't there, or doesn't, as the entry
// says; either way it is said, and what the server has comes when it is there.
func TestServerAwayAtTheStart(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string]string{"a.yaml": entry("a", "a")})
	s.Kill()
	address := `address: "` + s.XDS + `", maxRetry: 1s`
	waiting, going := plane(t, set(t, source(address))), plane(t, set(t, source(address+", waitFor: nothing, wait: 1s")))
	going.Ready(t)
	shows(t, going, true, "xds://"+s.XDS, "the server does not answer: Unavailable")
	logged(t, waiting, "the server does not answer: Unavailable")
	logged(t, waiting, "the start waits for it (waitFor: all)")
	logged(t, going, "the start goes on without")
	hasCluster(t, going, "a", false)
	if page, err := waiting.Get("/ready"); err == nil || !strings.Contains(err.Error()+page, "plugin source has not synced") {
		t.Errorf("/ready says %q, %v", page, err)
	}
	s.Plane = s.Again(t)
	waiting.Ready(t)
	hasCluster(t, waiting, "a", true)
	hasCluster(t, going, "a", true)
	shows(t, going, false, "the server does not answer")
}
