// Package envoy runs real Envoys in tests. They listen on loopback addresses alone and end with the
// test.
package envoy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// Binary returns the path of Envoy: what COXSWAIN_ENVOY names, or .cache/envoy, which `make envoy`
// installs. Without one the test is skipped.
func Binary(t testing.TB) string {
	t.Helper()
	path := os.Getenv("COXSWAIN_ENVOY")
	if path == "" {
		path = filepath.Join(Root(t), ".cache", "envoy")
	}
	if _, err := os.Stat(path); err != nil {
		need.Missing(t, "no Envoy at %s: `make envoy` installs one", path)
	}
	return path
}

// Root returns the root of the repository.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

// Envoy is a running one.
type Envoy struct {
	Name, Admin string
	// Log is the path of what it says.
	Log string

	cmd     *exec.Cmd
	started time.Time
	ended   chan struct{}
}

// Start starts an Envoy with a bootstrap (JSON) whose admin address is admin, HOST:PORT or
// unix:PATH.
func Start(t testing.TB, name, admin string, bootstrap []byte) *Envoy {
	t.Helper()
	return start(t, name, admin, exec.Command(Binary(t), arguments(bootstrap)...), func(cmd *exec.Cmd, ended <-chan struct{}) error {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		return program.Begin(cmd, ended)
	})
}

// Isolated starts it in a network namespace of its own. Its admin address is a Unix socket.
func Isolated(t testing.TB, name, admin string, bootstrap []byte) *Envoy {
	t.Helper()
	return start(t, name, admin, netns.Command(t, Binary(t), arguments(bootstrap)...), func(cmd *exec.Cmd, _ <-chan struct{}) error { return cmd.Start() })
}

// InPod starts it in a pod, as a user. Its admin address is a Unix socket, in a folder that the
// user may write to.
func InPod(t testing.TB, pod *netns.Pod, uid uint32, admin string, bootstrap []byte) *Envoy {
	t.Helper()
	return start(t, pod.Name, admin, exec.Command(Binary(t), arguments(bootstrap)...),
		func(cmd *exec.Cmd, _ <-chan struct{}) error { return pod.Start(cmd, uid) })
}

// arguments have the bootstrap itself: users other than the test's may not read its files.
func arguments(bootstrap []byte) []string {
	return []string{
		"--config-yaml", string(bootstrap), "--concurrency", "1", "--disable-hot-restart", "--drain-time-s", "1",
		"--file-flush-interval-msec", "100",
	}
}

func start(t testing.TB, name, admin string, cmd *exec.Cmd, begin func(cmd *exec.Cmd, ended <-chan struct{}) error) *Envoy {
	t.Helper()
	e := &Envoy{Name: name, Admin: admin, Log: filepath.Join(t.TempDir(), "log"), cmd: cmd, ended: make(chan struct{})}
	log, err := os.Create(e.Log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	e.cmd.Stdout, e.cmd.Stderr = log, log
	e.started = time.Now()
	if err := begin(e.cmd, e.ended); err != nil {
		t.Fatal(err)
	}
	go func() { _ = e.cmd.Wait(); close(e.ended) }()
	t.Cleanup(func() {
		e.Stop()
		if t.Failed() {
			t.Logf("%s said last:\n%s", name, e.LastLines(20))
		}
	})
	return e
}

// Stop ends it. It may be called twice.
func (e *Envoy) Stop() {
	_ = e.cmd.Process.Kill()
	<-e.ended
}

// Ready waits until it serves, and returns how long that took from its start.
func (e *Envoy) Ready(t testing.TB) time.Duration {
	t.Helper()
	wait.For(t, e.Name+" is ready", func() error {
		e.lives(t)
		text, err := e.get("/server_info") // which no other server has, whose /ready answers, too
		if err != nil {
			return err
		}
		var info struct{ State string }
		if err := json.Unmarshal([]byte(text), &info); err != nil || info.State != "LIVE" {
			return fmt.Errorf("its state is %q (%v)", info.State, err)
		}
		return nil
	})
	return time.Since(e.started)
}

// lives lets the test fail if it has ended.
func (e *Envoy) lives(t testing.TB) {
	t.Helper()
	select {
	case <-e.ended:
		t.Fatalf("%s has ended:\n%s", e.Name, e.LastLines(20))
	default:
	}
}

// page waits for what its admin server answers: a busy machine may keep it from that for a while.
func (e *Envoy) page(t testing.TB, path string) (text string) {
	t.Helper()
	wait.For(t, e.Name+" answers "+path, func() (err error) {
		e.lives(t)
		text, err = e.get(path)
		return err
	})
	return text
}

// Stats returns its counters and gauges.
func (e *Envoy) Stats(t testing.TB) map[string]int {
	t.Helper()
	text := e.page(t, "/stats?type=All")
	stats := map[string]int{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if n, err := strconv.Atoi(value); err == nil {
			stats[name] = n
		}
	}
	return stats
}

// Unhappy returns the statistics of xDS that count refused and missing answers, where they are more
// than 0.
func (e *Envoy) Unhappy(t testing.TB) []string {
	t.Helper()
	var bad []string
	for name, n := range e.Stats(t) {
		if n > 0 && (strings.HasSuffix(name, ".update_rejected") || strings.HasSuffix(name, ".init_fetch_timeout")) {
			bad = append(bad, fmt.Sprintf("%s: %s = %d", e.Name, name, n))
		}
	}
	return bad
}

// ConfigDump returns what it is configured with, as JSON.
func (e *Envoy) ConfigDump(t testing.TB) string {
	t.Helper()
	return e.page(t, "/config_dump?include_eds")
}

// LastLines of its log, without the long ones about deprecated fields.
func (e *Envoy) LastLines(n int) string {
	b, err := os.ReadFile(e.Log)
	if err != nil {
		return err.Error()
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(b)), "\n"), func(line string) bool {
		return strings.Contains(line, "Deprecated field")
	})
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (e *Envoy) get(path string) (string, error) { return page.Get(e.Admin, path) }
