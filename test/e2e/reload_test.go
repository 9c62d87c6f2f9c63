package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestReload: SIGHUP ends nothing, and takes up the log level and plugins.yaml; of settings that
// count from the start on it says so, and mistakes change nothing.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	settings := filepath.Join(dir, "settings.yaml")
	place(t, settings, "logLevel: warn\n")
	b := newBenchIn(t, dir, swapSet, "--settings", settings)
	p := newProxy(t, b.plane, "reload", nil)
	wait.For(t, "it has the first clusters", func() error { return p.want("outbound|80||b.example", true) })
	pids := [2]int{b.detail("memory").PID, b.detail("istio").PID}
	says := func(n int, line string) {
		t.Helper()
		wait.For(t, line, func() error {
			if got := strings.Count(b.plane.Log(), line); got < n {
				return fmt.Errorf("%d times; the log ends with %s", got, b.plane.LastLines(5))
			}
			return nil
		})
	}
	hangup(t, b)
	place(t, settings, "logLevel: debug\nholdMax: 3s\n")
	place(t, b.file, strings.Replace(swapSet, "b.example", "d.example", 1))
	hangup(t, b)
	wait.For(t, "plugins.yaml is applied", func() error { return p.want("outbound|80||d.example", true) })
	says(1, "count from the next start on\" settings=[holdMax]")
	says(1, "msg=reloaded")
	place(t, b.file, strings.Replace(swapSet, "b.example", "e.example", 1))
	wait.For(t, "the file is followed as before", func() error { return p.want("outbound|80||e.example", true) })
	says(1, "level=DEBUG")
	place(t, settings, "logLevel: loud\n")
	hangup(t, b)
	says(1, "the settings can't be read again; they stay as they were")
	if _, err := p.got(); err != nil {
		t.Error("the stream ended:", err)
	}
	if now := b.detail("istio").PID; now != pids[1] {
		t.Errorf("the generator was started anew: %d, %d", pids[1], now)
	}
	if code := b.plane.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func hangup(t *testing.T, b *bench) {
	t.Helper()
	if err := syscall.Kill(b.plane.PID(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}
