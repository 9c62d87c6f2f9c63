package host

import (
	"errors"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/host/cgroup"
)

// groups are the control groups of plugins, where the core may make any.
type groups struct {
	mu     sync.Mutex
	tree   *cgroup.Tree
	failed error
	said   bool // what could not be had
}

// open looks for the groups that killed cores left, which may take a moment: before plugins wait
// for theirs.
func (g *groups) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look()
}

func (g *groups) look() {
	if g.tree == nil && g.failed == nil {
		g.tree, g.failed = ownTree()
	}
}

// group makes the control group of one start of an entry; nil where there are none. What can't be
// had is said once.
func (h *Host) group(s *slot) *cgroup.Group {
	g, err := h.groups.make(s.entry.Name, uint64(h.launcher.allowance(s.entry)))
	if err != nil && !errors.Is(err, errSaid) {
		h.cfg.Log.Info("memory is watched without control groups", "why", err)
	}
	return g
}

// errSaid is that there are no groups, which was said.
var errSaid = errors.New("no control groups")

// make makes a group. There may be one and an error: the kernel doesn't hold it to its memory.
func (g *groups) make(name string, limit uint64) (*cgroup.Group, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look()
	said := errSaid
	if !g.said {
		g.said = true
		if said = g.failed; said == nil {
			said = g.tree.Undivided()
		}
	}
	if g.failed != nil {
		return nil, said
	}
	made, err := g.tree.Make(name, limit)
	return made, errors.Join(err, said)
}

func ownTree() (*cgroup.Tree, error) {
	path, err := cgroup.Own()
	if err != nil {
		return nil, err
	}
	return cgroup.Open(path)
}

// close undoes what was made of the core's own group.
func (g *groups) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tree != nil {
		g.tree.Close()
	}
}
