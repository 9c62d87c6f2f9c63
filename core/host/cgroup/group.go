package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Group is the control group of one process of a plugin.
type Group struct{ path string }

// Make makes a group for a plugin's process that may use so many bytes. Its name is unique among the tree's groups.
func (t *Tree) Make(plugin string, memory uint64) (*Group, error) {
	path, err := os.MkdirTemp(t.path, prefix+plugin+"-")
	if err != nil {
		return nil, err
	}
	g := &Group{path}
	if err := g.limit(memory); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return g, nil
}

// limit holds the group to its memory: no swap beyond it, and all of it ends where it needs more. The last two are missing in some kernels.
func (g *Group) limit(memory uint64) error {
	_ = write(g.file("memory.swap.max"), "0")
	_ = write(g.file("memory.oom.group"), "1")
	return write(g.file("memory.max"), strconv.FormatUint(memory, 10))
}

// Join moves a process into the group; what it starts is in it, too.
func (g *Group) Join(pid int) error { return write(g.file("cgroup.procs"), strconv.Itoa(pid)) }

// Exceeded reports whether the kernel ended the group because it used more memory than it may.
func (g *Group) Exceeded() bool {
	events, _ := os.ReadFile(g.file("memory.events"))
	for line := range strings.Lines(string(events)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			return n != "0"
		}
	}
	return false
}

// Remove ends what is left in the group, a process that left its process group for example, and removes it. What the kernel doesn't end in time goes
// with the tree, or at the core's next start.
func (g *Group) Remove() {
	_ = write(g.file("cgroup.kill"), "1")
	const tries, pause = 50, 10 * time.Millisecond
	for range tries {
		if err := os.Remove(g.path); !errors.Is(err, syscall.EBUSY) {
			return
		}
		time.Sleep(pause)
	}
}

func (g *Group) file(name string) string { return filepath.Join(g.path, name) }
