// Package cgroup gives processes of plugins control groups of their own (cgroup v2, https://docs.kernel.org/admin-guide/cgroup-v2.html), so that
// the kernel itself holds them to their memory, with all that they start.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Tree is the control group of this core, in which plugins have groups. The core itself moves into one of them, because a group that divides
// memory holds no processes (the kernel's "no internal processes" rule).
type Tree struct{ path string }

const (
	own    = "core"
	prefix = "plugin-"
)

// Open divides a control group, that of this process, which must be in it alone. The error says why that can't be; then nothing has changed.
func Open(path string) (*Tree, error) {
	t := &Tree{path}
	controllers, err := os.ReadFile(t.file("cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	if !slices.Contains(strings.Fields(string(controllers)), "memory") {
		return nil, fmt.Errorf("%s has no controller of memory", path)
	}
	if err := t.alone(); err != nil {
		return nil, err
	}
	t.sweep()
	if err := t.divide(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// alone refuses a group in which there are others: they would have to be moved, too.
func (t *Tree) alone() error {
	processes, err := os.ReadFile(t.file("cgroup.procs"))
	if err != nil {
		return err
	}
	for _, pid := range strings.Fields(string(processes)) {
		if pid != strconv.Itoa(os.Getpid()) {
			return fmt.Errorf("process %s is in %s, too", pid, t.path)
		}
	}
	return nil
}

// divide moves this process down and has the kernel count the groups' memory.
func (t *Tree) divide() error {
	if err := os.Mkdir(t.file(own), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := write(t.file(own, "cgroup.procs"), strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	return write(t.file("cgroup.subtree_control"), "+memory")
}

// sweep removes what a killed core left, as far as nothing runs in it.
func (t *Tree) sweep() {
	left, _ := filepath.Glob(t.file(prefix + "*"))
	for _, dir := range left {
		_ = os.Remove(dir)
	}
}

// Close puts this process back where it was. Groups must have been removed.
func (t *Tree) Close() {
	t.sweep()
	_ = write(t.file("cgroup.subtree_control"), "-memory")
	_ = write(t.file("cgroup.procs"), strconv.Itoa(os.Getpid()))
	_ = os.Remove(t.file(own))
}

func (t *Tree) file(names ...string) string {
	return filepath.Join(append([]string{t.path}, names...)...)
}

// write writes to a file of the kernel's, which must exist.
func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
