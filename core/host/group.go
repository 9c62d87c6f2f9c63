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
	said := errSaid
	if g.tree == nil && g.failed == nil {
		if g.tree, g.failed = ownTree(); g.failed == nil {
			said = g.tree.Undivided()
		} else {
			said = g.failed
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
