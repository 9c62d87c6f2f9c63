package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Directories of dead cores go; those of live ones, and what is none of ours, stay.
func TestSweep(t *testing.T) {
	base := t.TempDir()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	me := os.Getpid()
	stay := []string{
		fmt.Sprintf("%d-%s", me, startTime(me)),
		fmt.Sprintf("%d-%s-2", me, startTime(me)),
		"1-" + startTime(1),
		"999999999-locked0", // Its PID is of another namespace, but its lock is held.
		"something-else",
		"12",
	}
	gone := []string{
		fmt.Sprintf("%d-abc", dead.Process.Pid),
		fmt.Sprintf("%d-1", me), // An earlier process had our PID.
		"999999999-0",
	}
	for _, name := range slices.Concat(stay, gone) {
		if err := os.MkdirAll(filepath.Join(base, name, "plugin-dir1"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "7-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := lock(filepath.Join(base, "999999999-locked0"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	sweep(base)
	for _, name := range append(stay, "7-file") {
		if _, err := os.Stat(filepath.Join(base, name)); err != nil {
			t.Errorf("swept %s", name)
		}
	}
	for _, name := range gone {
		if _, err := os.Stat(filepath.Join(base, name)); err == nil {
			t.Errorf("left %s", name)
		}
	}
}

func TestRuntimeDir(t *testing.T) {
	base := filepath.Join(t.TempDir(), "run")
	a, err := openRuntimeDir(base)
	if err != nil {
		t.Fatal(err)
	}
	b, err := openRuntimeDir(base)
	if err != nil {
		t.Fatal(err)
	}
	if a.path == b.path {
		t.Error("two have one directory")
	}
	info, err := os.Stat(a.path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	a.remove()
	b.remove()
	if left, _ := os.ReadDir(base); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := openRuntimeDir(base); err == nil {
		t.Error("a directory that others may write to was taken")
	}
}

// A directory that a cleaner has taken is made anew, with its lock, as often as it is taken.
func TestEnsureRuntimeDir(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base")
	d, err := openRuntimeDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer d.remove()
	for range 2 {
		if err := os.RemoveAll(base); err != nil {
			t.Fatal(err)
		}
		if err := d.ensure(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(d.path); err != nil || info.Mode().Perm() != 0o700 || !locked(d.path) {
			t.Errorf("%v %v, locked: %v", info, err, locked(d.path))
		}
	}
}

// What is in a directory that looked unused, and the directory itself, look used after a touch.
func TestTouch(t *testing.T) {
	base := t.TempDir()
	inner := filepath.Join(base, "own", "plugin-dir1")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	all := []string{inner, filepath.Dir(inner), base}
	for _, path := range all {
		if err := os.Chtimes(path, now.Add(-240*time.Hour), now.Add(-240*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	touch(filepath.Dir(inner), now)
	for _, path := range all {
		if info, err := os.Stat(path); err != nil || now.Sub(info.ModTime()) > time.Hour {
			t.Errorf("%s: %v %v", path, info.ModTime(), err)
		}
	}
}
