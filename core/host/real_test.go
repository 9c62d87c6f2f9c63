package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"go.uber.org/goleak"
)

// TestMain makes the test's binary one that has built-in plugins.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "plugin" {
		builtin(os.Args[2])
	}
	if len(os.Args) == 3 && os.Args[1] == "core" {
		core(os.Args[2])
	}
	os.Exit(m.Run())
}

// idle publishes nothing and waits.
type idle struct{}

func (idle) Run(ctx context.Context, out sdk.Publisher) error {
	if err := out.Synced(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func builtin(name string) {
	p := sdk.RegistryPlugin{Name: name, Version: "v1", Publishes: []string{"services"}}
	p.New = sdk.WithRawConfig(nil, func([]byte) (sdk.Registry, error) { return idle{}, nil })
	switch name {
	case "registry/picky":
		fmt.Fprintln(os.Stderr, "I look at my config")
		p.New = sdk.WithRawConfig(nil, func([]byte) (sdk.Registry, error) {
			return nil, &sdk.FieldError{Field: "dir", Err: errors.New("/nowhere does not exist")}
		})
	case "registry/crash":
		fmt.Fprintln(os.Stderr, "the sky falls")
		os.Exit(3)
	case "registry/hungry":
		go func() { fmt.Fprintln(os.Stderr, hungry()) }()
	case "registry/environment":
		var names []string
		for _, pair := range os.Environ() {
			name, _, _ := strings.Cut(pair, "=")
			names = append(names, name)
		}
		slices.Sort(names)
		p.Version = strings.Join(names, " ")
	}
	sdk.Serve(p)
}

// real runs a host with real processes until the test ends.
func real(t *testing.T, dir, set string, more ...func(*Config)) (*Host, <-chan error, func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := manifest.Parse(filepath.Join(dir, "plugins.yaml"), []byte(strings.ReplaceAll(set, "EXE", exe)))
	if err != nil {
		t.Fatal(err)
	}
	core := &sessions{serves: true}
	cfg := Config{
		Set: parsed, Exe: exe, RuntimeDir: filepath.Join(dir, "run"), Environ: append(os.Environ(), "GOMAXPROCS=2", "SECRET=x"),
		Sessions: core, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range more {
		f(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	core.host = h
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	t.Cleanup(cancel)
	return h, ended, cancel
}

// core is a core with one plugin, whose PID it prints; it never ends.
func core(dir string) {
	set, err := manifest.Parse(filepath.Join(dir, "plugins.yaml"), []byte("plugins: [{name: a, kind: registry, builtin: registry/idle}]"))
	if err != nil {
		panic(err)
	}
	listener := &sessions{serves: true}
	h, err := New(Config{
		Set: set, Exe: os.Args[0], RuntimeDir: filepath.Join(dir, "run"), Sessions: listener, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	listener.host = h
	go func() {
		if err := h.WaitStarted(context.Background()); err == nil {
			fmt.Println(h.Status()[0].PID)
		}
	}()
	panic(h.Run(context.Background()))
}

// A core that is killed leaves no process behind, and what it leaves on disk goes at the next
// start.
func TestKilledCore(t *testing.T) {
	dir := short(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "core", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	_, err = fmt.Fscan(out, &pid)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the plugin is gone", func() bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		// A zombie waits for whoever is process 1 here.
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || strings.Contains(string(stat), ") Z ")
	})
	run := filepath.Join(dir, "run")
	if left, _ := os.ReadDir(run); len(left) != 1 {
		t.Errorf("left behind: %v, want the directory of the dead core", left)
	}
	next, err := openRuntimeDir(run)
	if err != nil {
		t.Fatal(err)
	}
	next.remove()
	if left, _ := os.ReadDir(run); len(left) != 0 {
		t.Errorf("not swept: %v", left)
	}
}

func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "host")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 30 s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestKilledPluginIsBack(t *testing.T) {
	defer wait.Ended(t, goleak.IgnoreCurrent())
	dir := short(t)
	h, ended, stop := real(t, dir, "plugins: [{name: a, kind: registry, builtin: registry/idle}]")
	if err := h.WaitStarted(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "serving", func() bool { return h.Status()[0].State == Serving })
	first := h.Status()[0]
	if runtime.GOOS == "linux" && first.Memory < 1<<20 {
		t.Errorf("memory %d", first.Memory)
	}
	for i := range 3 {
		before := h.Status()[0]
		if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		until(t, "back", func() bool {
			st := h.Status()[0]
			return st.State == Serving && st.Restarts == i+1 && st.PID != before.PID
		})
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	last := h.Status()[0]
	if last.State != Gone || last.PID != 0 || last.Restarts != 3 {
		t.Errorf("status %+v", last)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "run")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRealStartErrors(t *testing.T) {
	for _, c := range []struct {
		name, set string
		want      []string
	}{
		{"refused", "plugins: [{name: a, kind: registry, builtin: registry/picky, config: {dir: /nowhere}}]",
			[]string{"plugins.yaml:1:11: plugin a: it refused its config (", "plugins.yaml:1:76): dir: /nowhere does not exist", "I look at my config"}},
		{"crash", "plugins: [{name: a, kind: registry, builtin: registry/crash}]",
			[]string{"plugins.yaml:1:11: plugin a: ended (exit status 3) before", "the sky falls"}},
		{"no such command", "plugins: [{name: a, kind: registry, insecure: true, process: {command: ./a}}]",
			[]string{"plugin a: command ", "/a does not exist; relative paths start at the directory of plugins.yaml"}},
		{"not in PATH", "plugins: [{name: a, kind: registry, insecure: true, process: {command: no-such-command}}]",
			[]string{"plugin a: command no-such-command is not in PATH"}},
		{"not pinned", "plugins: [{name: a, kind: registry, process: {command: EXE}, sha256: " + strings.Repeat("0", 64) + "}]",
			[]string{"is not what plugins.yaml pins: its sha256 is "}},
		{"no handshake", "plugins: [{name: a, kind: registry, insecure: true, process: {command: echo, args: [hello]}}]",
			[]string{"plugin a: its first line of standard output is no handshake: check that "}},
		{"no plugin", "plugins: [{name: a, kind: registry, insecure: true, process: {command: \"true\"}}]",
			[]string{"plugin a: ended (exit status 0) before"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, ended, _ := real(t, short(t), c.set)
			err := <-ended
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %q", err, want)
				}
			}
			if err != nil && strings.Count(err.Error(), "plugin a:") != 1 {
				t.Errorf("says its name more than once: %v", err)
			}
		})
	}
}

// self is the test's binary.
func self(t *testing.T) []byte {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What is executed are the bytes that were hashed, and they get no environment that is not
// declared.
func TestPinnedProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		need.Impossible(t, "memory files are Linux's")
	}
	sum := sha256.Sum256(self(t))
	h, ended, stop := real(t, short(t), `
plugins:
  - name: a
    kind: registry
    process: {command: EXE, args: [plugin, registry/environment], env: {MINE: "1"}}
    sha256: `+hex.EncodeToString(sum[:])+`
    allow: {env: [SECRET]}
  - {name: b, kind: registry, builtin: registry/environment}
`)
	if err := h.WaitStarted(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, b := h.Status()[0], h.Status()[1]
	if link, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", a.PID)); err != nil || !strings.Contains(link, "memfd:") {
		t.Errorf("executes %s, %v", link, err)
	}
	for status, wants := range map[*Status][]string{&a: {"MINE", "SECRET"}, &b: {"GOMAXPROCS"}} {
		names := strings.Fields(status.Version)
		for _, want := range wants {
			if !slices.Contains(names, want) {
				t.Errorf("%s lacks %s", status.Entry.Name, want)
			}
		}
		for _, not := range []string{"HOME", "PATH", "USER", "PWD"} {
			if slices.Contains(names, not) {
				t.Errorf("%s has %s", status.Entry.Name, not)
			}
		}
	}
	if slices.Contains(strings.Fields(b.Version), "SECRET") {
		t.Error("b has SECRET")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
