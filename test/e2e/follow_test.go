package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/swap"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestFollowedInABusyDirectory: plugins.yaml is followed while other files of its directory, such
// as a log, are written all the time; also where it is a link into a directory that is exchanged,
// and after its directory was away.
func TestFollowedInABusyDirectory(t *testing.T) {
	b := newBench(t, swapSet)
	p := newProxy(t, b.plane, "follower", nil)
	host := func(name string) string { return strings.Replace(swapSet, "b.example", name, 1) }
	sees := func(name string) {
		t.Helper()
		wait.For(t, name+" is there", func() error { return p.want("outbound|80||"+name, true) })
	}
	sees("b.example")
	quiet := busy(t, filepath.Join(b.dir, "core.log"))
	place(t, b.file, host("d.example"))
	sees("d.example")
	if err := os.WriteFile(b.file, []byte(host("e.example")), 0o600); err != nil { // in place
		t.Fatal(err)
	}
	sees("e.example")
	quiet()

	mounted := filepath.Join(b.dir, "..1")
	if err := os.Mkdir(mounted, 0o700); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(mounted, "plugins.yaml"), host("f.example"))
	if err := os.Symlink(mounted, filepath.Join(b.dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..data/plugins.yaml", b.file+"~"); err != nil {
		t.Fatal(err)
	}
	rename(t, b.file+"~", b.file)
	sees("f.example")
	next := filepath.Join(b.dir, "..2")
	if err := os.Mkdir(next, 0o700); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(next, "plugins.yaml"), host("g.example"))
	if err := os.Symlink(next, filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	rename(t, filepath.Join(b.dir, "link"), filepath.Join(b.dir, "..data"))
	sees("g.example")

	away := b.dir + "-away"
	rename(t, b.dir, away)
	wait.For(t, "it is said that the file is away", func() error {
		if !strings.Contains(b.plane.Log(), "plugins.yaml can't be followed") {
			return fmt.Errorf("the log ends with %s", b.plane.LastLines(3))
		}
		return nil
	})
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(away) })
	place(t, b.file, host("h.example"))
	sees("h.example")
	b.becomes("memory", swap.Kept)
	if !strings.Contains(b.plane.Log(), "plugins.yaml is followed again") {
		t.Error("nobody says that the file is there again")
	}
}

// busy writes to a file, some 150 times a second, until it is told to stop.
func busy(t *testing.T, path string) (stop func()) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	over := make(chan struct{})
	wg.Go(func() {
		defer func() { _ = f.Close() }()
		tick := time.NewTicker(time.Second / 150)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				_, _ = f.WriteString("a line of a log\n")
			}
		}
	})
	stop = sync.OnceFunc(func() { close(over); wg.Wait() })
	t.Cleanup(stop)
	return stop
}
