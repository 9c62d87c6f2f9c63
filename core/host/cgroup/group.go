package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/family"
)

// Group is the control group of one process of a plugin.
type Group struct {
	path string
	dir  *os.File
}

// Make makes a group for a plugin's process that may use so many bytes, if memory is divided; 0: as
// many as it likes. Its name is unique among the tree's groups, and says whose it is.
func (t *Tree) Make(plugin string, memory uint64) (*Group, error) {
	path, err := os.MkdirTemp(t.path, prefix+family.Self()+"-"+plugin+"-")
	if err != nil {
		return nil, err
	}
	g := &Group{path: path}
	if memory > 0 && t.undivided == nil {
		err = g.limit(memory)
	}
	if err == nil {
		g.dir, err = os.Open(path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return g, nil
}

// Dir is the group's directory: a process that is cloned into it begins there.
func (g *Group) Dir() *os.File { return g.dir }

// limit holds the group to its memory: no swap beyond it, and all of it ends where it needs more.
// The last two are missing in some kernels.
func (g *Group) limit(memory uint64) error {
	_ = write(g.file("memory.swap.max"), "0")
	_ = write(g.file("memory.oom.group"), "1")
	return write(g.file("memory.max"), strconv.FormatUint(memory, 10))
}

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

// Remove ends what is left in the group, a process that left its process group for example, and
// removes it. What the kernel doesn't end in time goes with the tree, or at the core's next start.
func (g *Group) Remove() {
	if g.dir != nil {
		_ = g.dir.Close()
	}
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
