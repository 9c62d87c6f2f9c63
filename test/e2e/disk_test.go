package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// smallDisk mounts a disk of a size, as mount(8) writes it, and returns its directory.
func smallDisk(t *testing.T, bytes string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+bytes, "tmpfs", dir).CombinedOutput(); err != nil {
		need.Missing(t, "no tmpfs may be mounted here: run as root: %v %s", err, out)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// fill fills the disk of a directory, and returns what makes room again.
func fill(t *testing.T, dir string) (room func()) {
	t.Helper()
	file := filepath.Join(dir, "fill")
	if err := os.WriteFile(file, make([]byte, 64<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	return func() { _ = os.Remove(file) }
}

// written waits until the history's file lacks nothing.
func (s *stateful) written(t *testing.T) {
	t.Helper()
	wait.For(t, "the file has all again", func() error {
		text, err := page.Get(s.plane.Monitoring, "/metrics")
		if err == nil && !strings.Contains(text, "coxswain_history_fault 0") {
			err = errors.New("there is a fault")
		}
		return err
	})
}

// TestHistoryDiskFull: on a full disk pins hold and say what they don't outlive; with room they are
// written down.
func TestHistoryDiskFull(t *testing.T) {
	t.Parallel()
	s := newStateful(t, smallDisk(t, "2m"))
	room := fill(t, s.state)
	for range 5 {
		s.edit(t)
	}
	s.answers(t)
	s.says(fmt.Sprintf("pin %d --proxies namespace=late", s.newest), 0, "namespace=late")
	room()
	s.written(t)
	if code := s.plane.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.start(t)
	s.says("pin", 0, "namespace=nobody", "namespace=late")
}

// TestHistoryDiskHangs: a disk that does not answer, as one that is frozen (fsfreeze(8)) does not,
// keeps no command and no edit; when it answers, all is written down.
func TestHistoryDiskHangs(t *testing.T) {
	t.Parallel()
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	for _, args := range [][]string{
		{"truncate", "-s", "32M", image}, {"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			need.Impossible(t, "no disk can be mounted that can be frozen: %v: %v %s", args, err, out)
		}
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s := newStateful(t, filepath.Join(dir, "state"))
	thaw := func() error { return exec.Command("fsfreeze", "--unfreeze", dir).Run() }
	t.Cleanup(func() { _ = thaw() }) // before the control plane is killed
	if out, err := exec.Command("fsfreeze", "--freeze", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	s.answers(t)
	s.edit(t)
	s.says(fmt.Sprintf("pin %d --proxies namespace=late", s.newest), 0, "may not outlive a restart", "the disk does not answer")
	s.says("history", 0, "the disk does not answer")
	s.says("unpin --proxies namespace=other", 1, "there are pins of")
	if err := thaw(); err != nil {
		t.Fatal(err)
	}
	s.written(t)
	if code := s.plane.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.start(t)
	s.says("pin", 0, "namespace=nobody", "namespace=late")
}

// TestAuditLogUnwritable: while it can't be written down who did it nothing is changed by command,
// with the reason; edits arrive. When it can be, commands do what they say.
func TestAuditLogUnwritable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, reason string
		// harm does something to the directory or the file, and returns what mends it.
		harm func(t *testing.T, dir, file string) (mend func())
	}{
		{"disk full", "no space left", func(t *testing.T, dir, _ string) func() { return fill(t, dir) }},
		{"read-only", "read-only file system", func(t *testing.T, dir, _ string) func() {
			remount := func(how uintptr) {
				wait.For(t, "it is mounted otherwise", func() error { return unix.Mount("", dir, "", unix.MS_REMOUNT|how, "") })
			}
			remount(unix.MS_RDONLY)
			return func() { remount(0) }
		}},
		{"directory removed", "no such file", func(t *testing.T, _, file string) func() {
			sub := filepath.Dir(file)
			if err := os.RemoveAll(sub); err != nil {
				t.Fatal(err)
			}
			return func() { _ = os.Mkdir(sub, 0o700) }
		}},
		{"pipe without a reader", "no such device", func(t *testing.T, _, file string) func() {
			_ = os.Remove(file)
			if err := unix.Mkfifo(file, 0o600); err != nil {
				t.Fatal(err)
			}
			return func() { _ = os.Remove(file) }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			disk := smallDisk(t, "1m")
			file := filepath.Join(disk, "audit", "audit.jsonl")
			if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			s := newStateful(t, t.TempDir(), "--auditLog", file)
			mend := c.harm(t, disk, file)
			for _, args := range []string{"plugins restart istio", fmt.Sprintf("pin %d", s.newest), "unpin"} {
				s.says(args, 1, "nothing was changed", c.reason, file)
			}
			s.says("plugins restart istio --dry-run", 0)
			s.says("pin", 0, "namespace=nobody")
			s.edit(t)
			mend()
			s.says("unpin", 0)
			s.says("plugins restart istio", 0)
			wait.For(t, "it is written down", func() error {
				text, err := os.ReadFile(file)
				if err == nil && strings.Count(string(text), `"what":"unpin"`) != 1 {
					err = fmt.Errorf("%s", text)
				}
				return err
			})
			if code := s.plane.Stop(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}
