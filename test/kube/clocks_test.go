package kube_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// ahead is by how much clocks differ.
const ahead = 3 * time.Hour

// programAhead builds the program with a clock that is ahead: with another package time than Go's.
func programAhead(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(strings.TrimSpace(string(root)), "src/time/time.go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const reads = "	sec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(text), reads) != 1 {
		t.Fatalf("%s reads the clock elsewhere", file)
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "time.go"), strings.Replace(string(text), reads, reads+fmt.Sprintf("	sec += %d\n", int(ahead.Seconds())), 1))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: filepath.Join(dir, "time.go")}})
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "overlay.json"), string(overlay))
	binary := filepath.Join(dir, "coxswain")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./cmd/coxswain")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// TestClocksApart: replicas whose clocks are hours apart answer the same, and one of them leads:
// nobody takes the Lease of one whose clock is behind, nor waits for one whose clock is ahead.
func TestClocksApart(t *testing.T) {
	need.All(t)
	binary := programAhead(t)
	l := newLeaders(t)
	l.cluster.Apply(t, documents(gateway, service, pod("web-1", first), slice("web-1", first)))
	stays := func(p *mesh.Plane) {
		t.Helper()
		if is := l.leader(); is != p {
			t.Fatal("another one leads")
		}
		seen := map[string]bool{}
		wait.For(t, "the Lease is renewed", func() error {
			seen[lockOf(t, l.cluster, addressesLock).RenewTime] = true
			if len(seen) < 10 { // for more than twice as long as it lasts
				return fmt.Errorf("%d times", len(seen))
			}
			return nil
		})
		if is := l.leader(); is != p {
			t.Fatal("another one leads after some time")
		}
	}
	behind := l.start()
	l.leader()
	before := l.startOf(binary, ahead)
	if text := before.LastLines(1); !strings.Contains(text, "time="+time.Now().Add(ahead).UTC().Format("2006-01-02T15")) && !strings.Contains(text, "time="+time.Now().Add(ahead-time.Minute).UTC().Format("2006-01-02T15")) {
		t.Fatalf("its clock is not ahead: %s", text)
	}
	stays(behind)
	for _, kind := range []string{"envoy.config.cluster.v3.Cluster", "envoy.config.listener.v3.Listener"} {
		bootstrap := before.Bootstrap(t, "--type", "router", "--name", "edge", "--namespace", "shop", "--ip", "10.244.0.1", "--labels", "app=edge")
		a, b := behind.Fetch(t, bootstrap, "type.googleapis.com/"+kind), before.Fetch(t, bootstrap, "type.googleapis.com/"+kind)
		if diff := cmp.Diff(a, b, protocmp.Transform()); diff != "" || len(a) == 0 {
			t.Errorf("%d of %s: %s", len(a), kind, diff)
		}
	}
	l.kill(behind)
	if is := l.leader(); is != before {
		t.Fatal("nobody follows")
	}
	again := l.start()
	stays(before)
	l.kill(before)
	if is := l.leader(); is != again {
		t.Fatal("nobody follows who was ahead")
	}
	l.apart()
}
