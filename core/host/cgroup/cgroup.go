// Package cgroup gives processes of plugins control groups of their own (cgroup v2,
// https://docs.kernel.org/admin-guide/cgroup-v2.html), so that the kernel itself ends all that they
// start with them and, where it may, holds them to their memory.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/host/family"
)

// Tree is the control group of this core, in which plugins have groups. To divide its memory the
// core itself moves into one of them, because a group that does holds no processes (the kernel's
// "no internal processes" rule).
type Tree struct {
	path string
	// undivided is why memory isn't divided; nil: it is.
	undivided error
}

const (
	own    = "core"
	prefix = "plugin-"
)

// Open takes a control group, that of this process. If the process is in it alone, and it may
// divide memory, it does. The error says why plugins can't even have groups; then nothing has
// changed.
func Open(path string) (*Tree, error) {
	t := &Tree{path: path}
	t.sweep()
	if t.undivided = t.divisible(); t.undivided == nil {
		if err := t.divide(); err != nil {
			t.merge()
			t.undivided = err
		}
	}
	if err := t.probe(); err != nil {
		t.Close()
		return nil, errors.Join(t.undivided, err)
	}
	return t, nil
}

// Undivided is why the kernel doesn't hold groups to their memory; nil: it does.
func (t *Tree) Undivided() error { return t.undivided }

// divisible reports whether memory can be divided.
func (t *Tree) divisible() error {
	controllers, err := os.ReadFile(t.file("cgroup.controllers"))
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(controllers)), "memory") {
		return fmt.Errorf("%s has no controller of memory", t.path)
	}
	return t.alone()
}

// probe makes a group, to see that it can be done and that the kernel ends groups.
func (t *Tree) probe() error {
	g, err := t.Make("probe", 0)
	if err != nil {
		return err
	}
	defer os.Remove(g.path)
	if _, err := os.Stat(g.file("cgroup.kill")); err != nil {
		return fmt.Errorf("this kernel ends no groups (Linux 5.14): %w", err)
	}
	return nil
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

// owner matches a group's name: the core that made it.
var owner = regexp.MustCompile(`^` + prefix + `([0-9]+-[0-9]+)-`)

// sweep ends and removes what a killed core left. What is no living core's is nobody's.
func (t *Tree) sweep() {
	left, _ := filepath.Glob(t.file(prefix + "*"))
	for _, dir := range left {
		if m := owner.FindStringSubmatch(filepath.Base(dir)); m == nil || !family.Lives(m[1]) {
			(&Group{path: dir}).Remove()
		}
	}
}

// Close puts this process back where it was. Groups must have been removed.
func (t *Tree) Close() {
	if t.undivided == nil {
		t.merge()
	}
}

func (t *Tree) merge() {
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
