package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/host/family"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func says(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// A core that isn't alone, or has no controller, leaves its group as it is and says why.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct{ name, controllers, processes, want string }{
		{"no memory", "cpu io\n", "", "has no controller of memory"},
		{"not alone", "cpu memory\n", "1\n" + strconv.Itoa(os.Getpid()) + "\n", "process 1 is in"},
		{"can't divide", "memory\n", strconv.Itoa(os.Getpid()) + "\n", "no such file"}, // as no kernel makes files in a directory
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "cgroup.controllers", c.controllers)
			put(t, dir, "cgroup.procs", c.processes)
			if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if left, _ := os.ReadDir(dir); len(left) != 2 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestFind(t *testing.T) {
	const mounts = `25 20 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
26 20 0:23 /pod/x /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw
`
	for _, c := range []struct{ groups, want string }{
		{"4:memory:/a\n0::/pod/x\n", "/sys/fs/cgroup"},
		{"0::/pod/x/y\n", "/sys/fs/cgroup/y"},
		{"0::/pod/z\n", ""},
		{"4:memory:/a\n", ""},
	} {
		got, err := find(c.groups, mounts)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: got %q %v, want %q", c.groups, got, err, c.want)
		}
	}
}

// What a group is told, and what it tells.
func TestGroup(t *testing.T) {
	g := &Group{path: t.TempDir()}
	for _, file := range []string{"memory.max", "memory.oom.group", "memory.swap.max"} {
		put(t, g.path, file, "")
	}
	if err := g.limit(64 << 20); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"memory.max": "67108864", "memory.oom.group": "1", "memory.swap.max": "0"} {
		if got := says(t, g.path, file); got != want {
			t.Errorf("%s says %q, want %q", file, got, want)
		}
	}
	for text, want := range map[string]bool{"low 0\noom 1\noom_kill 0\n": false, "low 0\noom 3\noom_kill 2\noom_group_kill 1\n": true, "": false} {
		put(t, g.path, "memory.events", text)
		if g.Exceeded() != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// writable is a new group below this process's own, or the test is skipped.
func writable(t *testing.T) string {
	t.Helper()
	own, err := Own()
	if err != nil {
		need.Missing(t, "%v: run where cgroup v2 is mounted", err)
	}
	dir, err := os.MkdirTemp(own, "test-")
	if err != nil {
		need.Missing(t, "no control group can be made here: %v; run as root, or where groups are delegated", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A process in a group, and one that has left its process group and its session, end with the
// group.
func TestRemoveEnds(t *testing.T) {
	dir := writable(t)
	if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err != nil {
		need.Missing(t, "this kernel ends no groups (cgroup.kill): run on Linux 5.14 or later")
	}
	tree, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	g, err := tree.Make("a", 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("setsid", "sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.Dir().Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go g.Remove()
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it ended with %v", err)
	}
	g.Remove()
	if _, err := os.Stat(g.path); !os.IsNotExist(err) {
		t.Errorf("the group is there: %v", err)
	}
}

// What a core that was killed has left in its groups is ended by the next; what a living one runs
// is not.
func TestSweep(t *testing.T) {
	dir := writable(t)
	sleep := func(group string) *exec.Cmd {
		path := filepath.Join(dir, group)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup((&Group{path: path}).Remove)
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd := exec.Command("setsid", "sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	dead, living := sleep(prefix+"999999999-1-a-1"), sleep(prefix+family.Self()+"-a-1")
	if _, err := Open(dir); err != nil {
		t.Fatal(err)
	}
	if err := dead.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the dead core's ended with %v", err)
	}
	if err := living.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the living core's has ended: %v", err)
	}
	_ = living.Process.Kill()
	_ = living.Wait()
}
